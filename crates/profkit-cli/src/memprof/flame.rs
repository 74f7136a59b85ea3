//! Flame graphs as files.
use crate::exit::Failure;
use crate::io::write_view;
use clap::ValueEnum;
use profkit_merge::files::{Content, Input, Output};
use profkit_report::flame::HeapWeight;
use std::path::Path;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Weight {
    /// Bytes allocated
    #[default]
    Bytes,
    /// Number of allocations
    Allocations,
    /// Number of accesses
    Accesses,
    /// Bytes times average lifetime in milliseconds
    ByteLifetime,
    /// Of sample profiles: number of samples
    Samples,
}

impl From<Weight> for HeapWeight {
    fn from(weight: Weight) -> Self {
        match weight {
            Weight::Bytes | Weight::Samples => HeapWeight::Bytes,
            Weight::Allocations => HeapWeight::Allocations,
            Weight::Accesses => HeapWeight::Accesses,
            Weight::ByteLifetime => HeapWeight::ByteLifetime,
        }
    }
}

/// Writes a flame graph. `svg` is `None` if there is nothing to draw because the sum of all weights is 0. `nothing` is
/// the name of the weight, for the error message.
pub fn write(
    path: &Path,
    input: &Input,
    svg: Option<String>,
    nothing: &str,
) -> Result<(), Failure> {
    let output = Output::new(path, Content::Text)?;
    let svg = svg.ok_or_else(|| {
        let name = input.name();
        Failure::input(format_args!(
            "{name}: there is nothing to draw: the sum of its {nothing} is 0"
        ))
    })?;
    write_view(output, path, svg.as_bytes())
}

pub fn title(input: &Input) -> String {
    let file = Path::new(input.name()).file_name();
    file.map_or(input.name().into(), |name| name.to_string_lossy())
        .into_owned()
}
