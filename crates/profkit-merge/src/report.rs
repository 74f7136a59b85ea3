//! What a merge of any kind did with its inputs. The report does not depend on the number of threads.
//!
//! Serialised (by serde) it is the `--report` file: an object whose `version` is [`REPORT_VERSION`]. New fields do not
//! raise the version, and no field changes its meaning within a version.
mod details;

pub use details::{HeapDetails, MipDetails, TargetReport};

use profkit_data::detect::FileKind;
use profkit_data::{Error, ErrorKind};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// The version of the serialised form. Version 2 is the first that serves all kinds of profiles.
pub const REPORT_VERSION: u32 = 2;
/// The number of events that are listed for each reason; further events are only counted. Raising it costs about 200
/// bytes per event and thread.
pub const EVENTS_PER_REASON: usize = 1000;

/// What a merge did with its inputs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The version of the serialised form: [`REPORT_VERSION`].
    pub version: u32,
    /// The events, in input order. Each reason has at most [`EVENTS_PER_REASON`] events here.
    pub events: Vec<Event>,
    /// For each reason, the number of events that are not listed.
    pub omitted: BTreeMap<Reason, u64>,
    /// Sums over all inputs.
    pub totals: Totals,
    /// For instrumentation profiles: the newest indexed version that fits the hashes in the inputs. 0 for other
    /// profiles.
    #[serde(skip_serializing_if = "is_zero")]
    pub suggested_indexed_version: u32,
    /// What only MIP merges have to report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mip: Option<MipDetails>,
    /// What only heap profiles have to report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap: Option<HeapDetails>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Report {
    /// A report without events.
    pub fn new() -> Self {
        Report {
            version: REPORT_VERSION,
            ..Report::default()
        }
    }

    /// Whether every input was kept unchanged. Events that are only information do not count.
    pub fn is_clean(&self) -> bool {
        self.omitted.keys().all(|reason| reason.is_note())
            && self.events.iter().all(|event| event.reason.is_note())
    }
}

/// Sums over all inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Inputs that were opened, or that could not be opened.
    pub files: u64,
    /// Inputs of which everything was kept.
    pub files_kept: u64,
    /// Inputs of which a part was kept.
    pub files_repaired: u64,
    /// Inputs of which nothing was kept. Empty files are not counted here, although their event says that they were
    /// dropped.
    pub files_dropped: u64,
    /// Empty files, which are not an error.
    pub files_empty: u64,
    /// Bytes of all inputs.
    pub bytes: u64,
    /// Functions (by name) in the result, after filtering.
    pub functions: u64,
    /// Functions that a filter removed from the result.
    pub functions_filtered: u64,
    /// Records of inputs that went into the result.
    pub records_merged: u64,
    /// Records of inputs that were left out.
    pub records_dropped: u64,
    /// Records of the result in which a counter reached the largest count.
    pub records_overflowed: u64,
    /// Distinct layouts of raw profiles (data records and names).
    pub layouts: u64,
    /// Profiles that were added by layout, without being parsed.
    pub fast_profiles: u64,
    /// Records of the result whose name and hash occur in programs of different build ids.
    pub collisions: u64,
}

impl Totals {
    /// Adds the totals of other inputs to these.
    pub(crate) fn absorb(&mut self, other: &Totals) {
        self.files += other.files;
        self.files_kept += other.files_kept;
        self.files_repaired += other.files_repaired;
        self.files_dropped += other.files_dropped;
        self.files_empty += other.files_empty;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.functions += other.functions;
        self.functions_filtered += other.functions_filtered;
        self.records_merged += other.records_merged;
        self.records_dropped += other.records_dropped;
        self.records_overflowed += other.records_overflowed;
        self.layouts += other.layouts;
        self.fast_profiles += other.fast_profiles;
        self.collisions += other.collisions;
    }
}

/// Something that happened to an input or to one function of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Index of the input.
    pub input: usize,
    /// Name of the input.
    pub file: String,
    /// The function, if the event is about one.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy")]
    pub function: Option<Vec<u8>>,
    /// Absolute offset in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What was done with the input or the function.
    pub action: Action,
    /// Why it was done.
    pub reason: Reason,
    /// A sentence without the file's name.
    pub message: String,
    /// What was found, if something else was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What was expected, or what the first record of the same function has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What the user can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The error that LLVM's tool reports for the same fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llvm: Option<LlvmFault>,
    /// The reader's error that caused the event, for code that decides by the error's kind.
    #[serde(skip)]
    pub error: Option<Error>,
    /// The type of the file by its content, if the file is not a profile of the kind that is merged.
    #[serde(skip)]
    pub kind: Option<FileKind>,
}

fn lossy<S: Serializer>(name: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    match name {
        Some(name) => serializer.serialize_str(&String::from_utf8_lossy(name)),
        None => serializer.serialize_none(),
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.action)?;
        if let Some(function) = &self.function {
            write!(f, " function `{}`", profkit_data::printable(function))?;
        }
        let contrast = matches!(
            self.reason,
            Reason::HashGenerations | Reason::HashGenerationUnknown
        );
        let joint = if contrast { ", but" } else { ":" };
        write!(f, "{joint} {}", self.message)?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset:#x}")?;
        }
        match (&self.found, &self.expected) {
            (Some(found), Some(expected)) => write!(f, ": found {found}, expected {expected}"),
            (Some(found), None) => write!(f, ": found {found}"),
            (None, Some(expected)) => write!(f, ": expected {expected}"),
            (None, None) => Ok(()),
        }
    }
}

impl Event {
    /// An event about a whole input.
    pub(crate) fn new(
        input: usize,
        action: Action,
        reason: Reason,
        message: impl Into<String>,
    ) -> Self {
        Event {
            input,
            file: String::new(),
            function: None,
            offset: None,
            action,
            reason,
            message: message.into(),
            found: None,
            expected: None,
            hint: None,
            llvm: None,
            error: None,
            kind: None,
        }
    }

    /// An event made from a reader's error.
    pub fn from_error(input: usize, action: Action, reason: Reason, error: &Error) -> Self {
        let mut message = error.message().to_owned();
        if let Some(structure) = error.structure_text() {
            message.push_str(" in ");
            message.push_str(&structure);
        }
        if let Some((line, column)) = error.line_column() {
            message.push_str(&format!(" at line {line}, column {column}"));
        }
        let mut event = Event::new(input, action, reason, message);
        event.offset = error.offset();
        event.found = error.found_text().map(str::to_owned);
        event.expected = error.expected_text().map(str::to_owned);
        event.hint = error.hint().map(str::to_owned);
        event.llvm = Some(LlvmFault::from(error));
        event.error = Some(error.clone());
        event
    }

    /// Adds the type of the file, if that is the reason why the input was left out.
    pub(crate) fn of_kind(mut self, kind: FileKind) -> Self {
        self.kind = (self.reason == Reason::NotAProfile).then_some(kind);
        self
    }

    pub(crate) fn function(mut self, name: &[u8]) -> Self {
        self.function = Some(name.to_vec());
        self
    }

    pub(crate) fn sides(mut self, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        self.found = Some(found.to_string());
        self.expected = Some(expected.to_string());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn llvm(mut self, code: LlvmCode) -> Self {
        self.llvm = Some(LlvmFault { code, detail: None });
        self
    }
}

/// What was done with an input, or with a function of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is in the result, unchanged.
    Kept,
    /// A part of it is in the result, or it was changed first.
    Repaired,
    /// It is not in the result.
    Dropped,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Kept => "kept",
            Action::Repaired => "repaired",
            Action::Dropped => "dropped",
        })
    }
}

/// Why an event happened: the code that scripts can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The file could not be opened or read.
    Unreadable,
    /// The file holds no bytes.
    EmptyFile,
    /// The file is no profile of the kind that is merged.
    NotAProfile,
    /// The file's header is damaged or of an unknown version.
    BadHeader,
    /// The file ends too early. Text of an unknown kind is read as an instrumentation profile, and so may end up here.
    Truncated,
    /// A part of the file contradicts itself.
    Malformed,
    /// The file holds counters only and needs its binary.
    MissingCorrelation,
    /// The file counts something that cannot be merged with the counts of the other inputs.
    KindMismatch,
    /// The names of a cut file were taken from a file of the same program.
    NamesFromSibling,
    /// The names of functions are lost.
    NamesLost,
    /// Counters are lost.
    CountersLost,
    /// Value profiles are lost.
    ValuesLost,
    /// A counter above 2^56.
    ImplausibleCounter,
    /// The same function and hash with another number of counters.
    CounterMismatch,
    /// The same function and hash with another bitmap size.
    BitmapMismatch,
    /// The same function and hash with another number of value sites.
    ValueSiteMismatch,
    /// The same function of a sample profile with another checksum.
    ChecksumMismatch,
    /// A counter reached the largest count.
    CounterOverflow,
    /// The function hashes of an input come from an older clang than those of other inputs.
    HashGenerations,
    /// The raw version of an input does not show how its clang hashed functions.
    HashGenerationUnknown,
    /// A MemProf section was left out.
    MemProfDropped,
    /// The result is too large for its tables.
    TooLarge,
    /// The checksum of the file does not fit its bytes.
    ChecksumWrong,
    /// The file is of another build than the profiles that it could go into.
    OtherBuild,
    /// The file is of the build, but its records are not laid out as in the profile.
    OtherLayout,
    /// A function was compiled differently from that of the profile.
    SignatureChanged,
    /// The profile had no build id and took that of the first raw file.
    BuildIdTaken,
}

impl Reason {
    /// Whether an event of this reason is mere information: nothing was changed or lost.
    pub fn is_note(self) -> bool {
        matches!(
            self,
            Reason::EmptyFile
                | Reason::HashGenerations
                | Reason::HashGenerationUnknown
                | Reason::BuildIdTaken
        )
    }

    /// The reason that a reader's error amounts to.
    pub fn of(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::UnrecognizedFormat | ErrorKind::BadMagic => Reason::NotAProfile,
            ErrorKind::BadHeader
            | ErrorKind::UnsupportedVersion
            | ErrorKind::UnsupportedHashType => Reason::BadHeader,
            ErrorKind::Truncated => Reason::Truncated,
            ErrorKind::MissingCorrelation | ErrorKind::CannotCorrelate => {
                Reason::MissingCorrelation
            }
            ErrorKind::Empty => Reason::EmptyFile,
            ErrorKind::CounterTooLarge => Reason::ImplausibleCounter,
            ErrorKind::TooLarge | ErrorKind::LimitExceeded => Reason::TooLarge,
            ErrorKind::ChecksumMismatch => Reason::ChecksumWrong,
            _ => Reason::Malformed,
        }
    }
}

/// LLVM's `instrprof_error` of the same fault, with the detail that its tool prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LlvmFault {
    /// The code.
    pub code: LlvmCode,
    /// The text that LLVM's tool prints after the text of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// LLVM's `instrprof_error`, by name (`InstrProf.h`). The numbers are those of LLVM 19 to 22.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are LLVM's")]
pub enum LlvmCode {
    EndOfFile = 1,
    UnrecognizedFormat = 2,
    BadMagic = 3,
    BadHeader = 4,
    UnsupportedVersion = 5,
    UnsupportedHashType = 6,
    TooLarge = 7,
    Truncated = 8,
    Malformed = 9,
    MissingCorrelationInfo = 10,
    UnexpectedCorrelationInfo = 11,
    UnableToCorrelateProfile = 12,
    HashMismatch = 15,
    CountMismatch = 16,
    BitmapMismatch = 17,
    CounterOverflow = 18,
    ValueSiteCountMismatch = 19,
    UncompressFailed = 21,
    EmptyRawProfile = 22,
    RawProfileVersionMismatch = 24,
    CounterValueTooLarge = 25,
}

impl From<&Error> for LlvmFault {
    fn from(error: &Error) -> Self {
        let code = match error.kind() {
            ErrorKind::EndOfFile => LlvmCode::EndOfFile,
            ErrorKind::UnrecognizedFormat => LlvmCode::UnrecognizedFormat,
            ErrorKind::BadMagic => LlvmCode::BadMagic,
            ErrorKind::BadHeader => LlvmCode::BadHeader,
            // LLVM's error for raw versions has a detail; its error for indexed versions has none.
            ErrorKind::UnsupportedVersion if error.detail_for_llvm().is_some() => {
                LlvmCode::RawProfileVersionMismatch
            }
            ErrorKind::UnsupportedVersion => LlvmCode::UnsupportedVersion,
            ErrorKind::UnsupportedHashType => LlvmCode::UnsupportedHashType,
            ErrorKind::TooLarge | ErrorKind::LimitExceeded => LlvmCode::TooLarge,
            ErrorKind::Truncated => LlvmCode::Truncated,
            ErrorKind::MissingCorrelation => LlvmCode::MissingCorrelationInfo,
            ErrorKind::UnexpectedCorrelation => LlvmCode::UnexpectedCorrelationInfo,
            ErrorKind::CannotCorrelate => LlvmCode::UnableToCorrelateProfile,
            ErrorKind::UncompressFailed => LlvmCode::UncompressFailed,
            ErrorKind::Empty => LlvmCode::EmptyRawProfile,
            ErrorKind::CounterTooLarge => LlvmCode::CounterValueTooLarge,
            _ => LlvmCode::Malformed,
        };
        LlvmFault {
            code,
            detail: error.detail_for_llvm().map(str::to_owned),
        }
    }
}

/// The events of one thread, limited in number for each [`Reason`]. A thread reads inputs in ascending order and keeps
/// its earliest events, so the earliest events of the whole merge are always among those that the threads keep.
#[derive(Clone, Debug)]
pub(crate) struct EventLog {
    /// Each event with its place among the events of the same input. The place is 0 unless several threads read the
    /// input.
    events: Vec<(u64, Event)>,
    counts: BTreeMap<Reason, u64>,
    /// For each reason, the number of events that must not be listed even if there are few of them.
    unlisted: BTreeMap<Reason, u64>,
    limit: u64,
}

impl Default for EventLog {
    fn default() -> Self {
        EventLog {
            events: Vec::new(),
            counts: BTreeMap::new(),
            unlisted: BTreeMap::new(),
            limit: EVENTS_PER_REASON as u64,
        }
    }
}

impl EventLog {
    /// A log that keeps every event: LLVM's tool prints a line for each.
    pub(crate) fn unlimited() -> Self {
        EventLog {
            limit: u64::MAX,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.push_ordered(0, event);
    }

    /// Adds an event of an input that several threads read. `order` is its place among the events of that input.
    pub(crate) fn push_ordered(&mut self, order: u64, event: Event) {
        let count = self.counts.entry(event.reason).or_default();
        *count += 1;
        if *count <= self.limit {
            self.events.push((order, event));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.unlisted.is_empty()
    }

    /// Counts an event that must not be listed.
    pub(crate) fn count_omitted(&mut self, reason: Reason) {
        *self.unlisted.entry(reason).or_default() += 1;
    }

    /// Whether the log lists no further events of this reason. A caller can then skip making one.
    pub(crate) fn is_full(&self, reason: Reason) -> bool {
        self.counts
            .get(&reason)
            .is_some_and(|&count| count >= self.limit)
    }

    /// Counts an event that [`is_full`](Self::is_full) would not keep.
    pub(crate) fn count(&mut self, reason: Reason) {
        *self.counts.entry(reason).or_default() += 1;
    }

    /// Sets the action of the events that are about the whole file.
    pub(crate) fn set_file_action(&mut self, action: Action) {
        for (_, event) in &mut self.events {
            if event.function.is_none() && event.reason != Reason::MemProfDropped {
                event.action = action;
            }
        }
    }

    /// Removes and returns the first event that fits, so that another event can report it too.
    pub(crate) fn take_first(&mut self, fits: impl Fn(&Event) -> bool) -> Option<Event> {
        let at = self.events.iter().position(|(_, event)| fits(event))?;
        let (_, event) = self.events.remove(at);
        if let Some(count) = self.counts.get_mut(&event.reason) {
            *count -= 1;
        }
        self.counts.retain(|_, count| *count > 0);
        Some(event)
    }

    /// Sorts the events of one file by their offset, after several threads have read the file.
    pub(crate) fn sort_by_offset(&mut self) {
        self.events.sort_by_key(|(_, event)| event.offset);
    }

    pub(crate) fn absorb(&mut self, other: EventLog) {
        self.events.extend(other.events);
        for (reason, count) in other.counts {
            *self.counts.entry(reason).or_default() += count;
        }
        for (reason, count) in other.unlisted {
            *self.unlisted.entry(reason).or_default() += count;
        }
    }

    /// Returns the events in input order (events of one input in the order in which they were added), and for each
    /// reason the number of events that are not listed.
    pub(crate) fn finish(mut self) -> (Vec<Event>, BTreeMap<Reason, u64>) {
        self.events
            .sort_by_key(|(order, event)| (event.input, *order));
        let mut kept: BTreeMap<Reason, u64> = BTreeMap::new();
        self.events.retain(|(_, event)| {
            let count = kept.entry(event.reason).or_default();
            *count += 1;
            *count <= self.limit
        });
        let mut omitted = self.unlisted;
        for (reason, count) in self.counts {
            let more = count.saturating_sub(self.limit);
            if more > 0 {
                *omitted.entry(reason).or_default() += more;
            }
        }
        let events = self.events.into_iter().map(|(_, event)| event);
        (events.collect(), omitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_the_first_of_each_reason_whatever_the_threads() {
        let event = |input| Event::new(input, Action::Dropped, Reason::Malformed, "x");
        let total = EVENTS_PER_REASON * 2;
        let mut one = EventLog::default();
        let mut halves = [EventLog::default(), EventLog::default()];
        for input in 0..total {
            one.push(event(input));
            halves[input % 2].push(event(input));
        }
        let [mut first, second] = halves;
        first.absorb(second);
        let (one, first) = (one.finish(), first.finish());
        assert_eq!(one, first);
        assert_eq!(one.0.len(), EVENTS_PER_REASON);
        assert_eq!(one.1[&Reason::Malformed], EVENTS_PER_REASON as u64);
    }
}
