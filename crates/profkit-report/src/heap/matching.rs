//! The output of `profkit match` for heap profiles. [docs/formats/match-json.md] describes the JSON.
//!
//! [docs/formats/match-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/match-json.md
use super::{HeapView, JsonFrame};
use crate::annotations::{Annotation, Annotations, Level};
use crate::document::write_json;
use crate::{Answer, Cell, Document, Style, Table, grouped, percent, percent_beside, plural};
use profkit_analysis::heap::{
    ContextState, ContextSum, FrameLoss, HeapMatch, LostContext, LostFrame, ProgramFrames,
};
use profkit_data::memprof::Field;
use serde::Serialize;
use std::io::{self, Write};

/// Version of the JSON. It is raised when a member is renamed or removed, or changes its meaning.
const SCHEMA_VERSION: u32 = 2;

/// The comparison of a heap profile with programs, in the form in which it is printed.
#[derive(Debug)]
pub struct HeapMatchReport<'a> {
    /// The profile and its file.
    pub view: HeapView<'a>,
    /// The programs with which the profile was compared.
    pub programs: &'a ProgramFrames,
    /// The result of the comparison.
    pub result: &'a HeapMatch,
    /// The largest number of lost frames and of lost contexts to show.
    pub top: usize,
}

impl HeapMatchReport<'_> {
    /// Says why `--fail-under` is not met: the contexts of which the programs have all frames hold less than `least`
    /// percent of all bytes.
    pub fn gate(&self, least: f64) -> Option<String> {
        let Some(share) = self.result.matched_percent() else {
            return Some(format!(
                "the contexts of the profile hold no bytes: no share of them can match, so --fail-under {least} is not met"
            ));
        };
        (share < least).then(|| {
            format!(
                "{} of all bytes are of contexts that the binaries still have, but --fail-under requires {least}%",
                percent_beside(share, least)
            )
        })
    }

    /// A warning for each lost frame that is shown.
    pub fn annotations(&self) -> Annotations {
        let mut list = Annotations::default();
        for lost in self.shown_frames() {
            let share = percent(lost.contexts.bytes.into(), self.result.total.bytes.into());
            list.push(Annotation {
                level: Level::Warning,
                file: Some(self.view.path.to_owned()),
                title: "profkit match: lost frame".to_owned(),
                text: format!(
                    "{} {}: contexts with {share} of all bytes are affected",
                    self.frame_text(lost),
                    match lost.loss {
                        FrameLoss::Function => "is in none of the binaries",
                        FrameLoss::Line => "is no longer a line with code",
                    }
                ),
            });
        }
        list
    }

    fn shown_frames(&self) -> &[LostFrame] {
        let list = &self.result.lost_frames;
        list.get(..self.top).unwrap_or(list)
    }

    fn shown_contexts(&self) -> &[LostContext] {
        let list = &self.result.lost;
        list.get(..self.top).unwrap_or(list)
    }

    /// The function of a frame, and its place in the file or in the function.
    fn frame_text(&self, lost: &LostFrame) -> String {
        let heap = self.view.heap;
        let frame = &heap.profile.frames()[lost.frame];
        let name = self.view.name(frame.function);
        match heap.profile.locations.get(frame) {
            Some(place) if !place.file.is_empty() => {
                let file = profkit_analysis::names::printable(&place.file);
                format!("{name} {file}:{}:{}", place.line, place.column)
            }
            _ => format!(
                "{name} +{}:{}",
                frame.line_offset.cast_signed(),
                frame.column
            ),
        }
    }

    fn add_programs(&self, document: &mut Document) {
        for program in &self.programs.programs {
            let functions = plural(program.functions, "function");
            document.wrapped(
                "  ",
                format_args!("{}: debug info of {functions}", program.path),
            );
            for warning in program.warnings.iter().take(3) {
                document.wrapped("    ", format_args!("warning: {warning}"));
            }
            if program.missing_split > 0 {
                let units = plural(program.missing_split as u64, "compile unit");
                document.wrapped(
                    "    ",
                    format_args!("warning: the split debug info of {units} is missing, so their frames look lost"),
                );
            }
        }
        for (path, reason) in &self.programs.skipped {
            document.wrapped("  ", format_args!("{path}: skipped: {reason}"));
        }
        for note in self.view.notes {
            document.wrapped("  ", format_args!("note: {note}"));
        }
    }

    fn add_lost(&self, document: &mut Document) {
        let total = self.result.total.bytes;
        let all = self.result.lost_frames.len();
        document.section(format_args!(
            "Frames lost: {} of {}",
            grouped(all),
            grouped(self.result.frames)
        ));
        let mut table = Table::new([">share", "<?", ">contexts", "<what", "<frame"]);
        for lost in self.shown_frames() {
            let what = match lost.loss {
                FrameLoss::Function => "function gone",
                FrameLoss::Line => "line gone",
            };
            table.row([
                percent(lost.contexts.bytes.into(), total.into()).into(),
                Cell::bar(Style::Bar, lost.contexts.bytes, total),
                lost.contexts.contexts.into(),
                what.into(),
                self.frame_text(lost).into(),
            ]);
        }
        document.table(table);
        let more = all.saturating_sub(self.top);
        if more > 0 {
            document.line(format_args!("  … and {} more", grouped(more)));
        }
        document.section("Contexts lost");
        for (number, lost) in (1..).zip(self.shown_contexts()) {
            let block = &lost.context.block;
            document.line(format_args!(
                "{number:>4}. {} in {}, {}",
                plural(block.get(Field::TotalSize), "byte"),
                plural(block.get(Field::AllocCount), "allocation"),
                match lost.state {
                    ContextState::Gone => "allocation gone",
                    _ => "callers gone",
                }
            ));
            self.view.add_stack(lost.context.stack, document);
        }
        let more = self.result.lost.len().saturating_sub(self.top);
        if more > 0 {
            document.line(format_args!("  … and {} more", grouped(more)));
        }
    }
}

/// Adds a table of the parts of a whole. Each part has a row with a bar.
fn add_parts(document: &mut Document, whole: u64, parts: [u64; 3]) {
    let mut table = Table::new(["<", ">", ">", "<"]);
    let rows = [
        ("still there", Style::Hot),
        ("callers gone", Style::Warm),
        ("allocation gone", Style::Cold),
    ];
    for ((what, style), part) in rows.into_iter().zip(parts) {
        let share = match whole {
            0 => String::new(),
            _ => percent(part.into(), whole.into()),
        };
        let bar = Cell::bar(style, part, whole);
        table.row([what.into(), part.into(), share.into(), bar]);
    }
    document.table(table);
}

impl Answer for HeapMatchReport<'_> {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let binaries = match self.programs.programs.len() {
            1 => "1 binary".to_owned(),
            count => format!("{} binaries", grouped(count)),
        };
        document.title(
            self.view.path,
            format_args!("{}, compared with {binaries}", self.view.describe()),
        );
        self.add_programs(&mut document);
        let HeapMatch {
            total,
            kept,
            callers_gone,
            gone,
            ..
        } = self.result;
        let parts = |of: fn(&ContextSum) -> u64| [of(kept), of(callers_gone), of(gone)];
        document.section(format_args!("Contexts: {}", grouped(total.contexts)));
        add_parts(&mut document, total.contexts, parts(|sum| sum.contexts));
        document.section(format_args!("Allocations: {}", grouped(total.allocations)));
        add_parts(
            &mut document,
            total.allocations,
            parts(|sum| sum.allocations),
        );
        document.section(format_args!("Bytes: {}", grouped(total.bytes)));
        add_parts(&mut document, total.bytes, parts(|sum| sum.bytes));
        if kept.contexts == 0 && callers_gone.contexts == 0 && total.contexts > 0 {
            document.wrapped(
                "  ",
                "The binaries have no allocation of the profile. They are of another program, or their debug info has no columns or no first lines of functions.",
            );
        }
        if !self.result.lost_frames.is_empty() {
            self.add_lost(&mut document);
        }
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let HeapMatch {
            total,
            kept,
            callers_gone,
            gone,
            frames,
            lost_frames,
            lost,
        } = self.result;
        let programs = self.programs.programs.iter();
        let report = JsonMatch {
            schema: "profkit-match-heap",
            schema_version: SCHEMA_VERSION,
            profile: self.view.path,
            form: self.view.heap.form.to_string(),
            version: self.view.heap.version,
            indexed_version: self.view.heap.indexed_version,
            notes: self.view.notes,
            binaries: programs
                .map(|program| JsonBinary {
                    path: &program.path,
                    build_id: program.build_id.as_ref().map(ToString::to_string),
                    functions: program.functions,
                    missing_split: program.missing_split,
                    warnings: program.warnings.iter().map(ToString::to_string).collect(),
                })
                .collect(),
            skipped: self
                .programs
                .skipped
                .iter()
                .map(|(path, error)| JsonSkipped {
                    path,
                    reason: error.to_string(),
                })
                .collect(),
            total: *total,
            kept: *kept,
            callers_gone: *callers_gone,
            gone: *gone,
            matched_share: self.result.matched_percent().map(|one| one / 100.0),
            frames: *frames,
            frames_lost: lost_frames.len() as u64,
            lost_frames: self
                .shown_frames()
                .iter()
                .map(|lost| JsonLostFrame {
                    frame: self.view.json_frame(lost.frame),
                    loss: lost.loss,
                    contexts: lost.contexts,
                })
                .collect(),
            lost_contexts: self
                .shown_contexts()
                .iter()
                .map(|lost| JsonLostContext {
                    state: lost.state,
                    bytes: lost.context.block.get(Field::TotalSize),
                    allocations: lost.context.block.get(Field::AllocCount),
                    lost_frames: lost.lost_frames,
                    stack: self.view.json_stack(lost.context.stack),
                })
                .collect(),
            lost_contexts_more: lost.len().saturating_sub(self.top) as u64,
        };
        write_json(out, &report)
    }
}

#[derive(Serialize)]
struct JsonMatch<'a> {
    schema: &'static str,
    schema_version: u32,
    profile: &'a str,
    form: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    indexed_version: Option<u32>,
    notes: &'a [String],
    binaries: Vec<JsonBinary<'a>>,
    skipped: Vec<JsonSkipped<'a>>,
    total: ContextSum,
    kept: ContextSum,
    callers_gone: ContextSum,
    gone: ContextSum,
    matched_share: Option<f64>,
    frames: u64,
    frames_lost: u64,
    lost_frames: Vec<JsonLostFrame>,
    lost_contexts: Vec<JsonLostContext>,
    lost_contexts_more: u64,
}

#[derive(Serialize)]
struct JsonBinary<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<String>,
    functions: u64,
    missing_split: usize,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct JsonSkipped<'a> {
    path: &'a str,
    reason: String,
}

#[derive(Serialize)]
struct JsonLostFrame {
    #[serde(flatten)]
    frame: JsonFrame,
    loss: FrameLoss,
    #[serde(flatten)]
    contexts: ContextSum,
}

#[derive(Serialize)]
struct JsonLostContext {
    state: ContextState,
    bytes: u64,
    allocations: u64,
    lost_frames: u64,
    stack: Vec<JsonFrame>,
}
