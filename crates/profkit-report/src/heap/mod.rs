//! Heap profiles as text and as JSON.
mod notes;
mod show;

pub use notes::{module_name, modules, notes};
pub use show::HeapShow;

use crate::{Console, Style, cut_middle};
use profkit_analysis::heap::{ContextSum, HeapFrame, HeapProfile};
use profkit_analysis::names::{self, Spelling};
use profkit_data::memprof::{Hotness, StackId};
use profkit_data::releases::display_range;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// A heap profile with facts about its file.
#[derive(Clone, Copy, Debug)]
pub struct HeapView<'a> {
    /// The name of the file.
    pub path: &'a str,
    /// The size of the file in bytes.
    pub size: u64,
    /// The profile.
    pub heap: &'a HeapProfile,
    /// Notes about what was read and what was left out.
    pub notes: &'a [String],
    /// How names are printed.
    pub spelling: Spelling,
}

/// The word for contexts of this hotness.
pub fn hotness_name(hotness: Hotness) -> &'static str {
    match hotness {
        Hotness::Cold => "cold",
        Hotness::Warm => "warm",
        Hotness::Hot => "hot",
    }
}

/// The style of contexts of this hotness.
fn hotness_style(hotness: Hotness) -> Style {
    match hotness {
        Hotness::Cold => Style::Cold,
        Hotness::Warm => Style::Warm,
        Hotness::Hot => Style::Hot,
    }
}

impl HeapView<'_> {
    /// Describes the file, for example "heap profile, indexed version 4 (LLVM 21 to 22)".
    pub fn describe(&self) -> String {
        let mut text = format!("heap profile, {}", self.heap.form);
        if let Some(version) = self.heap.version {
            text += &format!(" version {version}");
        }
        if let Some(writers) = self.heap.writers() {
            text += &format!(" ({})", display_range(&writers));
        }
        text
    }

    /// The name of a function for people, or its GUID if the name is not known.
    pub fn name(&self, function: u64) -> Cow<'_, str> {
        match self.heap.name(function) {
            Some(name) => names::spelled(name, self.spelling),
            None => Cow::Owned(format!("{function:#018x}")),
        }
    }

    /// Prints a call stack, one line per frame. The frame that allocates comes first. On a terminal, long names are cut.
    pub(crate) fn print_stack<W: Write>(
        &self,
        stack: StackId,
        out: &mut Console<W>,
    ) -> io::Result<()> {
        const INDENT: usize = 8;
        for HeapFrame {
            frame, location, ..
        } in self.heap.frames(stack)
        {
            let inlined = if frame.is_inline { " (inlined)" } else { "" };
            let mut place = match location {
                Some(place) => {
                    let file = names::printable(&place.file);
                    format!(" {file}:{}:{}", place.line, place.column)
                }
                None => format!(" +{}:{}", frame.line_offset.cast_signed(), frame.column),
            };
            let mut name = self.name(frame.function);
            if let Some(width) = out.look().width {
                // The source location gets at most half of the line, and the function name gets the rest.
                let half = width.saturating_sub(INDENT + inlined.len()) / 2;
                place = cut_middle(&place, half.max(20)).into_owned();
                let used = INDENT + inlined.len() + place.chars().count();
                name = Cow::Owned(cut_middle(&name, width.saturating_sub(used).max(20)).into());
            }
            write!(out, "{:INDENT$}{name}", "")?;
            out.styled(Style::Dim, format_args!("{inlined}{place}"))?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// The frames of a call stack for JSON. The frame that allocates comes first.
    pub(crate) fn json_stack(&self, stack: StackId) -> Vec<JsonFrame> {
        let frames = self.heap.frames(stack).map(|known| JsonFrame {
            guid: format!("{:#018x}", known.frame.function),
            name: known.name.map(|name| names::printable(name).into_owned()),
            demangled: known.name.and_then(names::demangle),
            line_offset: known.frame.line_offset,
            column: known.frame.column,
            inlined: known.frame.is_inline,
            file: known
                .location
                .map(|place| names::printable(&place.file).into_owned()),
            line: known.location.map(|place| place.line),
            discriminator: known.location.map(|place| place.discriminator),
        });
        frames.collect()
    }
}

/// A frame in JSON, as [docs/formats/show-json.md] describes it.
///
/// [docs/formats/show-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/show-json.md
#[derive(Serialize)]
pub(crate) struct JsonFrame {
    guid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    line_offset: u32,
    column: u32,
    inlined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discriminator: Option<u32>,
}

/// A sum of contexts, as JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct JsonSum {
    contexts: u64,
    allocations: u64,
    bytes: u64,
}

impl From<ContextSum> for JsonSum {
    fn from(sum: ContextSum) -> Self {
        JsonSum {
            contexts: sum.contexts,
            allocations: sum.allocations,
            bytes: sum.bytes,
        }
    }
}
