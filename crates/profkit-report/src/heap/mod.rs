//! Heap profiles as text and as JSON.
mod dumps;
mod matching;
mod notes;
mod show;

pub use dumps::DumpsShow;
pub use matching::HeapMatchReport;
pub use notes::{completed_notes, module_name, modules, notes};
pub use show::HeapShow;

use crate::{Document, Style, plural};
use profkit_analysis::heap::{HeapFrame, HeapProfile};
use profkit_analysis::names::{self, Spelling};
use profkit_data::memprof::{FrameId, Hotness, StackId};
use profkit_data::releases::display_range;
use serde::Serialize;
use std::borrow::Cow;

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
    /// Whether call stacks are shown whole, and whether a context is named after its innermost function. Otherwise it is
    /// named after the first function that belongs to no standard library, and the frames of such libraries are counted.
    pub whole_stacks: bool,
}

/// The word for contexts of this hotness.
pub fn hotness_name(hotness: Hotness) -> &'static str {
    match hotness {
        Hotness::Cold => "cold",
        Hotness::Warm => "warm",
        Hotness::Hot => "hot",
    }
}

fn hotness_style(hotness: Hotness) -> Style {
    match hotness {
        Hotness::Cold => Style::Cold,
        Hotness::Warm => Style::Warm,
        Hotness::Hot => Style::Hot,
    }
}

impl HeapView<'_> {
    /// Describes the file, for example "heap profile, indexed version 13 (LLVM 22), MemProf section version 4".
    pub fn describe(&self) -> String {
        let mut text = format!("heap profile, {}", self.heap.form);
        let HeapProfile {
            version,
            indexed_version,
            ..
        } = self.heap;
        if let Some(version) = indexed_version.or(*version) {
            text += &format!(" version {version}");
        }
        if let Some(writers) = self.heap.writers() {
            text += &format!(" ({})", display_range(&writers));
        }
        if let (Some(_), Some(version)) = (indexed_version, version) {
            text += &format!(", MemProf section version {version}");
        }
        if self.heap.portable {
            text += ", with names and source lines";
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

    /// The names of the functions of a call stack. The one that allocates comes first.
    pub(crate) fn names(&self, stack: StackId) -> Vec<String> {
        let frames = self.heap.frames(stack);
        frames
            .map(|known| self.name(known.frame.function).into_owned())
            .collect()
    }

    /// The name of the function that stands for a context in a table.
    pub(crate) fn site(&self, stack: StackId) -> String {
        let site = self.heap.site(stack, self.whole_stacks);
        let frame = self.heap.frames(stack).nth(site);
        frame.map_or_else(String::new, |known| {
            self.name(known.frame.function).into_owned()
        })
    }

    /// Adds a call stack, one line per frame. The frame that allocates comes first.
    pub(crate) fn add_stack(&self, stack: StackId, document: &mut Document) {
        let frames: Vec<_> = self.heap.frames(stack).collect();
        let folded = |frame: &HeapFrame<'_>| !self.whole_stacks && frame.is_of_standard_library();
        // If all frames are of libraries, there is nothing else to show.
        let all = frames.iter().all(folded);
        for run in frames.chunk_by(|one, other| !all && folded(one) && folded(other)) {
            let known = match run {
                [one] => one,
                run => {
                    let frames = plural(run.len() as u64, "frame");
                    document.line(format_args!("        … {frames} of standard libraries"));
                    continue;
                }
            };
            let frame = known.frame;
            let inlined = if frame.is_inline { " (inlined)" } else { "" };
            let place = match (known.location, known.binary) {
                (Some(place), _) => {
                    let file = names::printable(&place.file);
                    format!(" {file}:{}:{}", place.line, place.column)
                }
                (None, Some(binary)) => binary_note(binary, known.name)
                    .map_or_else(String::new, |note| format!(" {note}")),
                (None, None) => {
                    format!(" +{}:{}", frame.line_offset.cast_signed(), frame.column)
                }
            };
            document.frame(self.name(frame.function).into_owned(), inlined, place);
        }
    }

    /// The frames of a call stack for JSON. The frame that allocates comes first.
    pub(crate) fn json_stack(&self, stack: StackId) -> Vec<JsonFrame> {
        self.heap.frames(stack).map(json_frame).collect()
    }

    /// A frame for JSON.
    pub(crate) fn json_frame(&self, id: FrameId) -> JsonFrame {
        json_frame(self.heap.frame(id))
    }
}

/// The binary of a frame that no debug info covers, as `(libc.so.6)`; `None` if the name of the frame begins with it.
pub fn binary_note(binary: &str, name: Option<&[u8]>) -> Option<String> {
    let is_named = name.is_some_and(|name| name.starts_with(binary.as_bytes()));
    (!is_named).then(|| format!("({})", names::printable(binary.as_bytes())))
}

fn json_frame(known: HeapFrame<'_>) -> JsonFrame {
    JsonFrame {
        guid: format!("{:#018x}", known.frame.function),
        function: known.name.map(|name| names::printable(name).into_owned()),
        demangled: known.name.and_then(names::demangle),
        line_offset: known.frame.line_offset,
        column: known.frame.column,
        inlined: known.frame.is_inline,
        file: known
            .location
            .map(|place| names::printable(&place.file).into_owned()),
        binary: known
            .binary
            .map(|binary| names::printable(binary.as_bytes()).into_owned()),
        line: known.location.map(|place| place.line),
        discriminator: known.location.map(|place| place.discriminator),
    }
}

/// A frame in JSON, as [docs/formats/show-json.md] describes it.
///
/// [docs/formats/show-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/show-json.md
#[derive(Serialize)]
pub(crate) struct JsonFrame {
    guid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    line_offset: u32,
    column: u32,
    inlined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The binary of a frame that no debug info covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    binary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discriminator: Option<u32>,
}
