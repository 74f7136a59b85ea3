//! The report of a merge of any kind, as text ([`MergeReport::document`]) and as JSON ([`serde::Serialize`]).
mod advice;
mod correlation;
mod losses;
mod text;

use profkit_analysis::filter::Filtered;
use profkit_data::instr::Target;
use profkit_merge::Report;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

pub use advice::{name_commands, way_out};
pub use correlation::{CorrelationReport, ProgramReport};
pub use losses::{
    fitted_notes, indexed_losses, left_out, sample_losses, stable_notes, text_losses,
    unread_contexts,
};
pub(crate) use text::add_target_names;

/// A profile that was written.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Written {
    /// The path of the profile; `-` for standard output.
    pub path: String,
    /// The size of the profile in bytes.
    pub bytes: u64,
    /// The format of the profile: `indexed`, `text`, `MIP` and so on.
    pub format: &'static str,
    /// The version of an indexed profile; `None` for other formats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexed_version: Option<u32>,
    /// The number of functions in the profile; of a heap profile those with a record.
    pub functions: u64,
    /// The number of contexts of the heap profile; `None` if the profile has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<u64>,
    /// The number of functions that at least one run entered; `None` if the profile is not a MIP profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered: Option<u64>,
    /// The number of runs; `None` if the profile is not a MIP profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// The build ids of the programs to which the profile belongs.
    pub build_ids: Vec<String>,
    /// Messages about data that the format cannot represent.
    pub losses: Vec<String>,
}

impl Written {
    /// The name of the output in messages.
    pub fn name(&self) -> &str {
        output_name(&self.path)
    }
}

/// The name of an output in messages. The path `-` is standard output.
pub fn output_name(path: &str) -> &str {
    if path == "-" { "standard output" } else { path }
}

/// A module (program or library) of raw heap profiles, and how many of its addresses were symbolised.
#[derive(Clone, Debug, Serialize)]
pub struct HeapModule {
    /// The module's name in messages: the build id, or else the mapping. `None` for addresses that are in no module.
    pub module: Option<String>,
    /// The path of the binary that supplied the module's functions; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// The number of addresses in call stacks that are in this module.
    pub addresses: u64,
    /// The number of addresses in this module that could not be symbolised.
    pub unknown: u64,
    /// The number of contexts with an address in this module that could not be symbolised.
    pub contexts: u64,
    /// The reason why addresses could not be symbolised; `None` if there is no such reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The whole report: what happened to the inputs, and the facts that a front end adds to it.
///
/// ```
/// use profkit_merge::{MergeOptions, merge_instr};
/// use profkit_report::merge::MergeReport;
/// use profkit_report::{Console, Look};
///
/// let inputs = [("good", b"main\n1234\n1\n90\n".as_slice()), ("cut", b"main\n1234\n2\n90\n")];
/// let merged = merge_instr(&inputs, &MergeOptions::new())?;
/// let mut out = Vec::new();
/// MergeReport::new(&merged.report).document().print(&mut Console::text(&mut out, Look::default()))?;
/// assert!(out.starts_with(b"warning: cut: dropped"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Serialize)]
pub struct MergeReport<'a> {
    /// The library's report: what happened to the inputs.
    #[serde(flatten)]
    pub report: &'a Report,
    /// The report of which binary belongs to which raw profile; `None` if no profile needed a binary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<&'a CorrelationReport>,
    /// Whether `correlation` has been printed already.
    #[serde(skip)]
    pub correlation_printed: bool,
    /// The modules of raw heap profiles.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub heap_modules: &'a [HeapModule],
    /// The targets of the inputs, by the names of their files, each with the number of its inputs; empty if all inputs are
    /// of the host.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "by_name")]
    pub targets: &'a BTreeMap<Target, u64>,
    /// What was cut from the result, first of its functions, then of its heap profile.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub filtered: &'a [Filtered],
    /// Notes about the inputs and the merge, one line each.
    pub notes: &'a [String],
    /// The profiles that were written. Empty if an error stopped the merge.
    pub outputs: &'a [Written],
    /// The reasons why nothing was written, or why the result cannot be trusted.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub errors: &'a [String],
    /// Whether to print warnings only.
    #[serde(skip)]
    pub quiet: bool,
    /// Whether `--dry-run` was given, so that no profile is written.
    #[serde(skip)]
    pub dry_run: bool,
}

impl<'a> MergeReport<'a> {
    /// Makes a report from the library's report alone. The front end adds its facts by setting the other fields.
    pub fn new(report: &'a Report) -> Self {
        MergeReport {
            report,
            correlation: None,
            correlation_printed: false,
            heap_modules: &[],
            targets: const { &BTreeMap::new() },
            filtered: &[],
            notes: &[],
            outputs: &[],
            errors: &[],
            quiet: false,
            dry_run: false,
        }
    }
}

fn by_name<S: Serializer>(
    targets: &BTreeMap<Target, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let named = targets.iter();
    serializer.collect_map(named.map(|(target, inputs)| (target.to_string(), inputs)))
}
