//! The first screen for a recording of Linux perf: how it was made, its events, the binaries and processes with the
//! most samples, and what is missing.
mod functions;

pub use functions::{
    FunctionChoice, flame_graph_of_recording, graph_of_recording, print_folded_recording,
    recorded_name, unnamed_notes,
};

use crate::document::write_json;
use crate::show::json::SCHEMA_VERSION;
use crate::{
    Answer, Cell, Document, RowForm, Rows, Style, Table, grouped, numbered, percent, plural, tenths,
};
use profkit_analysis::names;
use profkit_data::bytes::Endian;
use profkit_data::printable;
use profkit_perf::{Binary, BinaryFigures, Figures, Losses, Mode, RecordKind, Recording};
use profkit_profgen::stacks::FunctionStacks;
use serde_json::{Value, json};
use std::io::{self, Write};

/// A recording, and the options for showing it.
#[derive(Debug)]
pub struct RecordingShow<'a> {
    /// The name of the file.
    pub path: &'a str,
    /// The size of the file in bytes.
    pub size: u64,
    /// The recording.
    pub recording: &'a Recording<'a>,
    /// The figures of the recording.
    pub figures: &'a Figures,
    /// The functions of the samples.
    pub stacks: &'a FunctionStacks,
    /// Which functions are shown.
    pub choice: FunctionChoice,
    /// The largest number of binaries and of processes in the lists; `None` for the usual number.
    pub top: Option<usize>,
}

const MOST: usize = 10;

const COLUMNS: [&str; 7] = [
    "event",
    "name",
    "demangled",
    "binary",
    "build_id",
    "samples",
    "samples_with_callees",
];

/// One message for each kind of damage in a recording, without a full stop.
pub fn recording_damage(losses: &Losses) -> Vec<String> {
    let mut list = Vec::new();
    if losses.unfinished {
        list.push(
            "the header does not state the size of the records, because perf was stopped before its end; the records \
             were read up to the end of the file"
                .to_owned(),
        );
    }
    list.extend(lost_records(losses));
    list.extend(counted_damage(losses));
    list
}

/// Returns a line for each part of a recording whose records are lost.
pub fn lost_records(losses: &Losses) -> Vec<String> {
    let mut list = Vec::new();
    if let Some(offset) = losses.cut_at {
        list.push(format!(
            "the file ends in the record at offset {offset:#x}; the records before it were read"
        ));
    }
    if let Some(offset) = losses.first_skipped {
        list.push(format!(
            "the record at offset {offset:#x} is damaged: {} were skipped, and the records after them were read",
            plural(losses.skipped_bytes, "byte"),
        ));
    }
    if let Some(reason) = &losses.compression {
        list.push(format!(
            "the end of the compressed records is lost, because they are damaged (zstd: {})",
            printable(reason.as_bytes())
        ));
    }
    list
}

/// Returns a line for each kind of record that does not fit the recording.
fn counted_damage(losses: &Losses) -> Vec<String> {
    let counted = [
        (
            losses.damaged_samples,
            "{sample does|samples do} not fit {its record|their records}",
        ),
        (losses.damaged_records, "{record is|records are} too short"),
        (
            losses.damaged_features,
            "{description|descriptions} of the recording could not be read",
        ),
        (
            losses.unknown_event,
            "{sample belongs|samples belong} to no event of the recording",
        ),
        (
            losses.mappings_over_limit,
            "{mapping is|mappings are} beyond the limit for mappings",
        ),
    ];
    let counted = counted.into_iter().filter(|(number, _)| *number > 0);
    counted
        .map(|(number, what)| numbered(number, what))
        .collect()
}

/// Returns what the kernel could not record. Each entry has a label, a number, and the reason.
fn lost(losses: &Losses) -> Vec<(&'static str, u64, &'static str)> {
    let mut list = vec![
        (
            "records lost",
            losses.lost_records,
            "the kernel's buffer was full: record with a larger one (-m)",
        ),
        (
            "samples lost",
            losses.lost_samples,
            "the kernel could not write them",
        ),
        (
            "times throttled",
            losses.throttled,
            "too many samples per second: record with a larger period (-c)",
        ),
        (
            "traces cut",
            losses.cut_traces,
            "parts of hardware traces are missing",
        ),
    ];
    list.retain(|(_, number, _)| *number > 0);
    list
}

impl RecordingShow<'_> {
    fn binary(&self, figures: &BinaryFigures) -> Option<&Binary> {
        self.recording.processes().binary(figures.binary)
    }

    /// Returns the first of these names that no function of the recording has.
    pub fn missing<'n>(&self, names: &'n [String]) -> Option<&'n str> {
        let symbols = || {
            let functions = self.stacks.functions.iter();
            functions.filter_map(|function| function.symbol.as_deref())
        };
        let found = |name: &str| symbols().any(|symbol| names::is_named(symbol, name));
        let mut missing = names.iter().filter(|name| !found(name));
        missing.next().map(String::as_str)
    }

    fn samples(&self) -> u64 {
        self.figures.events.iter().map(|event| event.samples).sum()
    }

    /// Returns how the recording was made, as pairs of a label and a text.
    fn made_by(&self) -> Vec<(&'static str, String)> {
        let features = self.recording.features();
        let text = |bytes: &[u8]| printable(bytes).into_owned();
        let mut rows = Vec::new();
        let perf = features.perf.filter(|perf| !perf.is_empty());
        let perf = perf.map(|perf| format!("perf {}", text(perf)));
        let kernel = features
            .kernel
            .map(|kernel| format!("Linux {}", text(kernel)));
        let machine = features.machine.map(text);
        let made: Vec<_> = perf.into_iter().chain(kernel).chain(machine).collect();
        if !made.is_empty() {
            rows.push(("made by", made.join(", ")));
        }
        if let Some(cpu) = features.cpu {
            rows.push(("processor", text(cpu)));
        }
        if !features.command.is_empty() {
            let words: Vec<_> = features.command.iter().map(|word| text(word)).collect();
            rows.push(("command", words.join(" ")));
        }
        let mut form = match (self.recording.form(), self.recording.endian()) {
            (form, Endian::Little) => form.name().to_owned(),
            (form, Endian::Big) => format!("{}, big-endian", form.name()),
        };
        if self.recording.is_compressed() {
            form.push_str(", compressed");
        }
        rows.push(("form", form));
        rows
    }

    fn add_events(&self, document: &mut Document) {
        document.section("Events");
        let mut table = Table::new([
            ">samples",
            ">period",
            ">branch stacks",
            ">places",
            ">call chains",
            "<event",
        ]);
        for (event, figures) in self.recording.events().iter().zip(&self.figures.events) {
            let if_any = |number: u64| match number {
                0 => Cell::from("-"),
                number => number.into(),
            };
            table.row([
                figures.samples.into(),
                figures.period.into(),
                if_any(figures.with_branches),
                if_any(figures.depth as u64),
                if_any(figures.with_chain),
                printable(event.name.as_bytes()).into_owned().into(),
            ]);
        }
        document.table(table);
    }

    fn add_binaries(&self, document: &mut Document, samples: u64) {
        let all = self.figures.binaries.len();
        let shown = all.min(self.top.unwrap_or(MOST));
        let title = list_title("binaries", "Samples by binary", shown, all);
        let mut table = Table::new([">samples", ">share", "<?", "<build id?", "<binary"]);
        for figures in self.figures.binaries.iter().take(shown) {
            let Some(binary) = self.binary(figures) else {
                continue;
            };
            let id = binary.build_id.as_ref().map(ToString::to_string);
            let id = id.map_or_else(|| "-".to_owned(), |id| id.chars().take(12).collect());
            table.row([
                figures.samples.into(),
                percent(figures.samples.into(), samples.into()).into(),
                Cell::bar(Style::Bar, figures.samples, samples),
                id.into(),
                printable(&binary.path).into_owned().into(),
            ]);
        }
        if all > 0 {
            document.section(title);
            document.table(table);
        }
    }

    fn add_processes(&self, document: &mut Document, samples: u64) {
        let all = self.figures.processes.len();
        let shown = all.min(self.top.unwrap_or(MOST));
        let mut table = Table::new([">samples", ">share", ">process", "<program"]);
        for process in self.figures.processes.iter().take(shown) {
            table.row([
                process.samples.into(),
                percent(process.samples.into(), samples.into()).into(),
                process.pid.cast_signed().to_string().into(),
                printable(&process.name).into_owned().into(),
            ]);
        }
        if all > 1 {
            document.section(list_title("processes", "Samples by process", shown, all));
            document.table(table);
        }
    }

    fn row(&self, figures: &BinaryFigures) -> Option<Value> {
        let binary = self.binary(figures)?;
        Some(json!({
            "path": printable(&binary.path),
            "build_id": binary.build_id.as_ref().map(ToString::to_string),
            "kernel": binary.kernel,
            "samples": figures.samples,
            "branches": figures.branches,
        }))
    }
}

impl Answer for RecordingShow<'_> {
    fn document(&self) -> Document {
        let mut document = Document::default();
        if self.choice.selection.is_some() {
            self.choice.add_to(self.stacks, &mut document);
            return document;
        }
        document.title(self.path, "recording of Linux perf");
        for (label, text) in self.made_by() {
            document.long_fact(label, text);
        }
        document.fact("size", format_args!("{} bytes", grouped(self.size)));
        if let Some((first, last)) = self.figures.times {
            let time = (last - first) as f64;
            let time = if time < 1e9 {
                format!("{} ms", tenths(time / 1e6))
            } else {
                format!("{} s", tenths(time / 1e9))
            };
            let text = format_args!("{time} from the first sample to the last");
            document.fact("duration", text);
        }
        self.add_events(&mut document);
        let samples = self.samples();
        if samples == 0 {
            document.line("No sample was recorded.");
        } else {
            self.choice.add_to(self.stacks, &mut document);
            document.section("Where the samples are");
            let share = |part: u64| percent(part.into(), samples.into());
            let modes = self.figures.modes.iter().map(|(mode, &number)| {
                let name = match mode {
                    Mode::Unknown => "mode unknown",
                    mode => mode.name(),
                };
                (name, number, share(number))
            });
            let unmapped = self.figures.unmapped;
            let remark = format!("{}, at addresses where no file was mapped", share(unmapped));
            let unmapped = (unmapped > 0).then_some(("in no file", unmapped, remark));
            document.facts(modes.chain(unmapped));
            self.add_binaries(&mut document, samples);
            self.add_processes(&mut document, samples);
            let lost = lost(self.recording.losses());
            if !lost.is_empty() {
                document.section("What the kernel could not record");
                document.facts(lost);
            }
        }
        // What the user can do about hardware traces, which profkit does not decode.
        let counts = self.recording.record_counts();
        if let Some(traces) = counts.get(&RecordKind::AUXTRACE) {
            document.line(format_args!(
                "\n{} of hardware trace: `perf inject --itrace=i100usle -i FILE -o OUT` makes samples with branch \
                 stacks of Intel PT, `--itrace=i1000il` of Arm ETM.",
                plural(*traces, "piece")
            ));
        }
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let features = self.recording.features();
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| printable(bytes).into_owned());
        let events = self.recording.events().iter().zip(&self.figures.events);
        let events = events.map(|(event, figures)| {
            json!({
                "name": printable(event.name.as_bytes()),
                "samples": figures.samples,
                "period": figures.period,
                "with_branches": figures.with_branches,
                "branches": figures.branches,
                "branch_places": figures.depth,
                "every_branch": event.attr.has_every_branch(),
                "with_chain": figures.with_chain,
                "precision": event.attr.precision,
            })
        });
        let records = self.recording.record_counts().iter();
        let records = records.map(|(kind, count)| {
            let name = kind
                .name()
                .map_or_else(|| kind.0.to_string(), str::to_owned);
            (name, Value::from(*count))
        });
        let top = self.top.unwrap_or(usize::MAX);
        let binaries = self.figures.binaries.iter().take(top);
        let processes = self.figures.processes.iter().take(top).map(|process| {
            json!({
                "pid": process.pid.cast_signed(),
                "name": printable(&process.name),
                "samples": process.samples,
                "unmapped": process.unmapped,
            })
        });
        let losses = &self.figures.losses;
        let damage = recording_damage(losses);
        let report = json!({
            "schema": "profkit-show",
            "schema_version": SCHEMA_VERSION,
            "file": {
                "path": self.path,
                "size": self.size,
                "kind": "perf",
                "form": self.recording.form().name(),
                "big_endian": self.recording.endian() == Endian::Big,
                "compressed": self.recording.is_compressed(),
                "perf": text(features.perf),
                "kernel": text(features.kernel),
                "machine": text(features.machine),
                "processor": text(features.cpu),
                "host": text(features.host),
                "command": features.command.iter().map(|word| printable(word)).collect::<Vec<_>>(),
            },
            "events": events.collect::<Vec<_>>(),
            "records": records.collect::<serde_json::Map<_, _>>(),
            "first_time": self.figures.times.map(|times| times.0),
            "last_time": self.figures.times.map(|times| times.1),
            "functions": self.choice.rows(self.stacks),
            "binaries": binaries.filter_map(|figures| self.row(figures)).collect::<Vec<_>>(),
            "processes": processes.collect::<Vec<_>>(),
            "unmapped_samples": self.figures.unmapped,
            "lost": {
                "records": losses.lost_records,
                "samples": losses.lost_samples,
                "throttled": losses.throttled,
                "cut_traces": losses.cut_traces,
            },
            "errors": damage,
            "error_count": damage.len(),
        });
        write_json(out, &report)
    }

    fn rows(&self, _: RowForm) -> Rows<'_> {
        Rows::new(&COLUMNS, self.choice.rows(self.stacks).into_iter())
    }
}

/// Returns the heading of a list that may show only some of its entries.
fn list_title(what: &str, whole: &str, shown: usize, all: usize) -> String {
    if shown < all {
        format!("Top {shown} of {} {what} by samples", grouped(all))
    } else {
        whole.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests of the command have a recording for each kind of damage except too many mappings: a recording with
    /// more mappings than the limit would be too large for a test.
    #[test]
    fn each_damage_is_said_for_one_and_for_many() {
        let said = |number: u64| {
            let mut losses = Losses::default();
            losses.unfinished = true;
            losses.cut_at = Some(0x40);
            losses.first_skipped = Some(0x20);
            losses.skipped_bytes = number;
            losses.compression = Some("a block\u{1b} ends early".to_owned());
            losses.damaged_samples = number;
            losses.damaged_records = number;
            losses.damaged_features = number;
            losses.unknown_event = number;
            losses.mappings_over_limit = number;
            recording_damage(&losses).join("\n")
        };
        assert!(recording_damage(&Losses::default()).is_empty());
        insta::assert_snapshot!(format!("{}\n\n{}", said(1), said(2345)));
    }
}
