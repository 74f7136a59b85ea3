//! The report of a merge: what was done with each input. The report does not depend on the number of threads.
//!
//! Its serialised form (by serde) is the `--report` file: an object whose `schema_version` is [`REPORT_VERSION`].
//! Within a version, fields may be added, but no field changes its meaning.
mod details;
mod mismatches;
mod tolerance;

pub use details::{Cancellation, HeapDetails, MipDetails, TargetReport};
pub(crate) use mismatches::MismatchSums;
pub use mismatches::{Mismatches, Sides};
pub use tolerance::{DropLimit, Shortfall, Tolerance};

use profkit_data::detect::FileKind;
use profkit_data::releases::IrScheme;
use profkit_data::{Error, ErrorKind, Structure};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// The version of the report as JSON: 2 has one form for all kinds of profiles, 3 calls this member `schema_version`.
pub const REPORT_VERSION: u32 = 3;
/// The events that are listed for each reason; others are counted. Each costs every thread about 200 bytes.
pub const EVENTS_PER_REASON: usize = 1000;

/// The report of a merge: what was done with each input.
///
/// ```
/// use profkit_merge::{MergeError, MergeOptions, merge_instr};
///
/// let good = b":ir\nmain\n1234\n1\n5\n".as_slice();
/// let report = merge_instr(&[("a", good), ("b", b"---\n")], &MergeOptions::new())?.report;
/// assert_eq!((report.totals.files_kept, report.totals.files_dropped), (1, 1));
/// assert!(!report.is_clean());
/// println!("{}", report.events[0]);
///
/// // If no input can be used, the report is in the error.
/// let Err(MergeError::NothingLeft(report)) = merge_instr(&[("b", b"---\n")], &MergeOptions::new()) else {
///     panic!("the only input is no profile");
/// };
/// assert_eq!(report.totals.files_dropped, 1);
/// # Ok::<(), MergeError>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The name of the report's serialised form: `profkit-merge`.
    pub schema: &'static str,
    /// The version of the report's serialised form: [`REPORT_VERSION`].
    #[serde(rename = "schema_version")]
    pub version: u32,
    /// The events in the order of the inputs. At most [`EVENTS_PER_REASON`] events are listed for each reason.
    pub events: Vec<Event>,
    /// For each reason, the number of events that the report does not list.
    pub omitted: BTreeMap<Reason, u64>,
    /// The totals of all inputs.
    pub totals: Totals,
    /// For instrumentation profiles, the newest indexed version (`IndexedWriteOptions::for_version`) with which
    /// compilers hash functions as in the inputs; otherwise 0. It suits the compiler that built the program. An older
    /// release may be unable to read it: `IndexedWriteOptions::for_llvm` chooses a version for a release.
    #[serde(skip_serializing_if = "is_zero")]
    pub suggested_indexed_version: u32,
    /// The functions that programs of different build ids have in common, with the same name and hash: their counts are
    /// added up. `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedFunctions>,
    /// The records that were left out because they contradict the records of earlier inputs, and which inputs have them.
    /// `None` if there are none. [`Policy::Llvm`](crate::Policy::Llvm) has only events about such records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mismatched: Option<Mismatches>,
    /// The oldest scheme of names and hashes that all IR profiles among the inputs can have, by the releases that write
    /// their versions; `None` without IR profiles that have functions.
    #[serde(skip)]
    pub oldest_ir_scheme: Option<IrScheme>,
    /// The part of the report that only MIP merges have; `None` for other merges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mip: Option<MipDetails>,
    /// The names of inputs and parts that were left out, because other inputs of the merge hold their counts. Only merges
    /// that do not depend on the order of inputs have them (the module `part` of profkit-merge).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<String>,
    /// What cancelled the merge, and after how many inputs. A cancelled merge has no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cancellation>,
    /// The part of the report that only merges of heap profiles have; `None` for other merges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap: Option<HeapDetails>,
}

/// The functions of several programs that were added to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SharedFunctions {
    /// The number of functions.
    pub functions: u64,
    /// The sum of their counters.
    pub counts: u128,
    /// The sum of the counters of all functions.
    pub all_counts: u128,
    /// The names of those with the largest sums, the largest first: at most [`MOST_SHARED`](Self::MOST_SHARED).
    #[serde(serialize_with = "all_lossy")]
    pub first: Vec<Vec<u8>>,
}

impl SharedFunctions {
    /// The largest number of functions that are named.
    pub const MOST_SHARED: usize = 5;
}

fn all_lossy<S: serde::Serializer>(names: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(names.iter().map(|name| String::from_utf8_lossy(name)))
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls this function with a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Report {
    /// Makes a report without events.
    pub fn new() -> Self {
        Report {
            schema: "profkit-merge",
            version: REPORT_VERSION,
            ..Report::default()
        }
    }

    /// Returns whether every input was kept unchanged. Events that only inform do not count as changes.
    pub fn is_clean(&self) -> bool {
        let harmless = |reason: &Reason| reason.is_note() || *reason == Reason::MayCountTwice;
        self.omitted.keys().all(harmless) && self.events.iter().all(|event| harmless(&event.reason))
    }
}

/// The totals of a merge: numbers of inputs, records and functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The number of inputs, including those that could not be opened.
    pub files: u64,
    /// Inputs of which no part is damaged. Records that contradict other inputs may be in
    /// [`records_dropped`](Self::records_dropped).
    pub files_kept: u64,
    /// The number of inputs that were kept in part.
    pub files_repaired: u64,
    /// Inputs that were dropped completely, without empty files.
    pub files_dropped: u64,
    /// The number of empty files. An empty file is not an error.
    pub files_empty: u64,
    /// The size of all inputs together, in bytes.
    pub bytes: u64,
    /// The number of functions in the result, after filtering. Functions that share a name and differ in their hash
    /// count one by one.
    pub functions: u64,
    /// The number of functions that a filter removed from the result.
    pub functions_filtered: u64,
    /// The number of names that a filter removed from the result; LLVM counts names.
    #[serde(skip)]
    pub names_filtered: u64,
    /// The number of records in the inputs that were merged into the result.
    pub records_merged: u64,
    /// The number of records in the inputs that were left out of the result.
    pub records_dropped: u64,
    /// The number of records in the result with at least one counter that was cut to the largest possible count.
    pub records_overflowed: u64,
    /// The number of layouts of raw profiles: all runs of a program have the same data records and names.
    pub layouts: u64,
    /// The number of raw profiles that were added without being parsed, because their layout was known.
    pub fast_profiles: u64,
    /// Records of the result that occur, with the same name and hash, in programs with different build ids.
    pub collisions: u64,
}

impl Totals {
    /// The number of inputs that contributed nothing: dropped inputs and empty files.
    pub fn files_lost(&self) -> u64 {
        self.files_dropped + self.files_empty
    }

    pub(crate) fn absorb(&mut self, other: &Totals) {
        for (mine, theirs) in self.numbers_mut().into_iter().zip(other.numbers()) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// All totals, in an order that parts of merges rely on.
    pub(crate) fn numbers(&self) -> [u64; 15] {
        let mut copy = *self;
        copy.numbers_mut().map(|number| *number)
    }

    /// The totals as [`numbers`](Self::numbers) has them.
    pub(crate) fn numbers_mut(&mut self) -> [&mut u64; 15] {
        [
            &mut self.files,
            &mut self.files_kept,
            &mut self.files_repaired,
            &mut self.files_dropped,
            &mut self.files_empty,
            &mut self.bytes,
            &mut self.functions,
            &mut self.functions_filtered,
            &mut self.names_filtered,
            &mut self.records_merged,
            &mut self.records_dropped,
            &mut self.records_overflowed,
            &mut self.layouts,
            &mut self.fast_profiles,
            &mut self.collisions,
        ]
    }
}

/// An event of a merge: something that happened to an input or to one of its functions.
///
/// An input can have several events: one for each fault. An event whose `function` is `None` is about the whole input,
/// or about a part of it that is not one function, such as a MemProf section or the counters of several functions. So
/// an event with [`Action::Dropped`] and no function can mean that only such a part was dropped. To count inputs, use
/// [`Report::totals`], which counts each input once.
///
/// ```
/// use profkit_merge::{Action, MergeOptions, Reason, merge_instr};
///
/// let inputs = [
///     ("whole", b":ir\nf\n1\n1\n5\n\ng\n2\n1\n7\n".as_slice()),
///     ("other", b":ir\nf\n1\n2\n5\n6\n\ng\n2\n1\n7\n".as_slice()),
/// ];
/// let report = merge_instr(&inputs, &MergeOptions::new())?.report;
/// let event = &report.events[0];
/// // The record of `f` contradicts that of the first file, so the record was dropped. The file itself is sound and
/// // counts as kept.
/// assert_eq!((event.file.as_str(), event.action), ("other", Action::Dropped));
/// assert_eq!(event.function.as_deref(), Some(b"f".as_slice()));
/// assert_eq!(event.reason, Reason::CounterMismatch);
/// assert_eq!((report.totals.files_kept, report.totals.records_dropped), (2, 1));
/// # Ok::<(), profkit_merge::MergeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// The index of the input in the list of inputs; if their order does not matter
    /// ([`MergeOptions::order_free`](crate::MergeOptions::order_free)), its place among all inputs sorted by name and id.
    pub input: usize,
    /// The name of the input.
    pub file: String,
    /// The name of the function, if the event is about a single function.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy")]
    pub function: Option<Vec<u8>>,
    /// The byte offset of the fault in the file. `None` if the event has no offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The action: what was done with the input or the function.
    pub action: Action,
    /// The reason for the action.
    pub reason: Reason,
    /// Where in the file the fault is: the structure, and line and column of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// A sentence that describes the event, without its place.
    pub message: String,
    /// The value that was found, if a different value was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What was expected, or what the first record of the same function has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// A suggestion to the user, if there is a step that helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The error that LLVM's tool reports for the same fault. `None` if LLVM's tool has no such error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llvm: Option<LlvmFault>,
    /// The reader's error that caused the event, so that programs can examine its kind.
    #[serde(skip)]
    pub error: Option<Error>,
    /// The type of the file; only if it is not of the kind of profile that is merged.
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
            Reason::HashGenerations | Reason::HashGenerationUnknown | Reason::MayCountTwice
        );
        f.write_str(if contrast { ", but" } else { ":" })?;
        write!(f, " {}", self.message)?;
        match (&self.place, self.offset) {
            (Some(place), Some(offset)) => write!(f, " ({place}, at offset {offset:#x})")?,
            (Some(place), None) => write!(f, " ({place})")?,
            (None, Some(offset)) => write!(f, " (at offset {offset:#x})")?,
            (None, None) => {}
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
            place: None,
            message: message.into(),
            found: None,
            expected: None,
            hint: None,
            llvm: None,
            error: None,
            kind: None,
        }
    }

    /// Makes an event from a reader's error.
    pub fn from_error(input: usize, action: Action, reason: Reason, error: &Error) -> Self {
        let mut event = Event::new(input, action, reason, error.message());
        event.place = error.place_text();
        event.offset = error.offset().filter(|_| !error.is_about_file());
        event.found = error.found_text().map(str::to_owned);
        event.expected = error.expected_text().map(str::to_owned);
        event.hint = error.hint().map(str::to_owned);
        event.llvm = Some(LlvmFault::from(error));
        event.error = Some(error.clone());
        event
    }

    /// Sets the type of the file in the event, if the input was dropped because it is not a profile.
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

/// What a merge did with an input, or with a function of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The input or function was kept unchanged.
    Kept,
    /// The input or function was kept in part, or was changed before it was added.
    Repaired,
    /// The input or function was left out of the result.
    Dropped,
}

impl Action {
    /// All actions, in the order of their numbers in parts of merges.
    pub(crate) const ALL: [Self; 3] = [Action::Kept, Action::Repaired, Action::Dropped];
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

/// The reason for an event. In the serialised report it is a code that scripts can compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The file could not be opened or read.
    Unreadable,
    /// The file is empty.
    EmptyFile,
    /// The file is not a profile of the kind that is merged.
    NotAProfile,
    /// The header is damaged or of an unknown version. One that is cut off is [`Truncated`](Self::Truncated).
    BadHeader,
    /// The file ends too early. If the header is damaged, a section may only seem to be cut off. Damaged text whose
    /// kind cannot be recognised may have this reason too.
    Truncated,
    /// The file contains parts that contradict each other.
    Malformed,
    /// The raw profile has only counters: the rest must be read from the program that wrote it.
    MissingCorrelation,
    /// The kind of the input cannot be merged with the kinds of the other inputs.
    KindMismatch,
    /// The input lacks names of functions. The names were taken from another input.
    NamesFromSibling,
    /// Counters of the input are lost.
    CountersLost,
    /// Value profiles of the input are lost.
    ValuesLost,
    /// A counter has a value above 2^56, which no real run reaches.
    ImplausibleCounter,
    /// Two records have the same function name and hash, but different numbers of counters.
    CounterMismatch,
    /// Two records have the same function name and hash, but bitmaps of different sizes.
    BitmapMismatch,
    /// Two records have the same function name and hash, but different numbers of value sites.
    ValueSiteMismatch,
    /// A function occurs in two sample profiles with different checksums.
    ChecksumMismatch,
    /// A sum of counters was cut to the largest possible count.
    CounterOverflow,
    /// The function hashes of the input come from an older clang than those of other inputs.
    HashGenerations,
    /// Several clang releases that hash functions differently wrote this raw version.
    HashGenerationUnknown,
    /// An indexed input has the same build id as raw inputs, so it may have been made from these raw inputs.
    MayCountTwice,
    /// A MemProf section was left out of the result.
    MemProfDropped,
    /// The result has more functions or records than its tables can hold.
    TooLarge,
    /// The checksum in the file is not the checksum of the file's bytes.
    ChecksumWrong,
    /// A MIP file belongs to a different build of the program than every profile that it could be merged into.
    OtherBuild,
    /// A MIP file belongs to the same build as the profile, but the layout of its records differs.
    OtherLayout,
    /// A function of a MIP profile was compiled differently in the profile that it is merged into.
    SignatureChanged,
    /// The MIP profile had no build id. It was given the build id of the first raw file.
    BuildIdTaken,
}

impl Reason {
    /// All reasons, in the order of their numbers in parts of merges: new ones come last.
    pub(crate) const ALL: [Self; 27] = [
        Reason::Unreadable,
        Reason::EmptyFile,
        Reason::NotAProfile,
        Reason::BadHeader,
        Reason::Truncated,
        Reason::Malformed,
        Reason::MissingCorrelation,
        Reason::KindMismatch,
        Reason::NamesFromSibling,
        Reason::CountersLost,
        Reason::ValuesLost,
        Reason::ImplausibleCounter,
        Reason::CounterMismatch,
        Reason::BitmapMismatch,
        Reason::ValueSiteMismatch,
        Reason::ChecksumMismatch,
        Reason::CounterOverflow,
        Reason::HashGenerations,
        Reason::HashGenerationUnknown,
        Reason::MayCountTwice,
        Reason::MemProfDropped,
        Reason::TooLarge,
        Reason::ChecksumWrong,
        Reason::OtherBuild,
        Reason::OtherLayout,
        Reason::SignatureChanged,
        Reason::BuildIdTaken,
    ];

    /// Whether events with this reason only inform: nothing was changed or lost.
    pub fn is_note(self) -> bool {
        matches!(
            self,
            Reason::EmptyFile
                | Reason::HashGenerations
                | Reason::HashGenerationUnknown
                | Reason::BuildIdTaken
        )
    }

    /// Returns the reason for an event that a reader's error causes.
    pub fn of(error: &Error) -> Self {
        if error.is_end_of_data() {
            return Reason::Truncated;
        }
        match error.kind() {
            ErrorKind::UnrecognizedFormat | ErrorKind::BadMagic => Reason::NotAProfile,
            ErrorKind::BadHeader
            | ErrorKind::UnsupportedVersion
            | ErrorKind::UnsupportedHashType => Reason::BadHeader,
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

/// LLVM's error for the fault of an event: an `instrprof_error` and the detail that the tool prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LlvmFault {
    /// The code of LLVM's error.
    pub code: LlvmCode,
    /// The detail that LLVM's tool prints after the text of the error code. `None` if the tool prints no detail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The codes of LLVM's `instrprof_error`, by name (`InstrProf.h`). Their numbers are those of LLVM 19 to 22.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "the variants have the names of LLVM's error codes"
)]
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

impl LlvmCode {
    /// All codes, in the order of their numbers in parts of merges: new ones come last.
    pub(crate) const ALL: [Self; 21] = [
        LlvmCode::EndOfFile,
        LlvmCode::UnrecognizedFormat,
        LlvmCode::BadMagic,
        LlvmCode::BadHeader,
        LlvmCode::UnsupportedVersion,
        LlvmCode::UnsupportedHashType,
        LlvmCode::TooLarge,
        LlvmCode::Truncated,
        LlvmCode::Malformed,
        LlvmCode::MissingCorrelationInfo,
        LlvmCode::UnexpectedCorrelationInfo,
        LlvmCode::UnableToCorrelateProfile,
        LlvmCode::HashMismatch,
        LlvmCode::CountMismatch,
        LlvmCode::BitmapMismatch,
        LlvmCode::CounterOverflow,
        LlvmCode::ValueSiteCountMismatch,
        LlvmCode::UncompressFailed,
        LlvmCode::EmptyRawProfile,
        LlvmCode::RawProfileVersionMismatch,
        LlvmCode::CounterValueTooLarge,
    ];
}

impl From<&Error> for LlvmFault {
    fn from(error: &Error) -> Self {
        let code = match error.kind() {
            ErrorKind::EndOfFile => LlvmCode::EndOfFile,
            ErrorKind::UnrecognizedFormat => LlvmCode::UnrecognizedFormat,
            ErrorKind::BadMagic => LlvmCode::BadMagic,
            ErrorKind::BadHeader => LlvmCode::BadHeader,
            // For an unsupported version, LLVM's tool prints a detail if it is the version of a raw profile or a heap
            // profile, but none for an indexed profile. Raw profiles have an error code of their own for this.
            ErrorKind::UnsupportedVersion
                if error.detail_for_llvm().is_some()
                    && !error.is_within(&Structure::MemProfSection) =>
            {
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

/// The events of one thread, a limited number for each [`Reason`]. A thread reads inputs in ascending order and keeps
/// the first events, so the first events of the merge are always in one of the logs.
#[derive(Clone, Debug)]
pub(crate) struct EventLog {
    /// Each event with its position among those of its input: 0 unless several threads read the input.
    events: Vec<(u64, Event)>,
    counts: BTreeMap<Reason, u64>,
    /// For each reason, the number of events that are counted but never listed.
    unlisted: BTreeMap<Reason, u64>,
    limit: u64,
}

/// Numbers of events.
type Counts = BTreeMap<Reason, u64>;

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
    /// A log without a limit, for [`Policy::Llvm`](crate::Policy::Llvm): LLVM's tool prints a line for each event.
    pub(crate) fn unlimited() -> Self {
        EventLog {
            limit: u64::MAX,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.push_ordered(0, event);
    }

    /// `order` is the position of the event among all events of an input that several threads read.
    pub(crate) fn push_ordered(&mut self, order: u64, event: Event) {
        let count = self.counts.entry(event.reason).or_default();
        *count += 1;
        if *count <= self.limit {
            self.events.push((order, event));
        }
    }

    pub(crate) fn push_first(&mut self, event: Event) {
        *self.counts.entry(event.reason).or_default() += 1;
        let same = |(_, other): &(u64, Event)| other.input == event.input;
        let at = self.events.iter().position(same);
        self.events
            .insert(at.unwrap_or(self.events.len()), (0, event));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.unlisted.is_empty()
    }

    pub(crate) fn count_omitted(&mut self, reason: Reason) {
        *self.unlisted.entry(reason).or_default() += 1;
    }

    pub(crate) fn is_full(&self, reason: Reason) -> bool {
        self.counts
            .get(&reason)
            .is_some_and(|&count| count >= self.limit)
    }

    /// Counts an event without keeping it: see [`is_full`](Self::is_full).
    pub(crate) fn count(&mut self, reason: Reason) {
        *self.counts.entry(reason).or_default() += 1;
    }

    pub(crate) fn set_file_action(&mut self, action: Action) {
        for (_, event) in &mut self.events {
            if event.function.is_none() && event.reason != Reason::MemProfDropped {
                event.action = action;
            }
        }
    }

    pub(crate) fn sort_by_offset(&mut self) {
        self.events.sort_by_key(|(_, event)| event.offset);
    }

    pub(crate) fn absorb(&mut self, other: EventLog) {
        self.events.extend(other.events);
        for (mine, theirs) in [
            (&mut self.counts, other.counts),
            (&mut self.unlisted, other.unlisted),
        ] {
            for (reason, count) in theirs {
                let sum = mine.entry(reason).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }

    /// The events that the log keeps, each with its position among those of its input, and the numbers of all events and
    /// of those that are never listed.
    pub(crate) fn parts(&self) -> (&[(u64, Event)], [&Counts; 2]) {
        (&self.events, [&self.counts, &self.unlisted])
    }

    /// The log with these [`parts`](Self::parts).
    pub(crate) fn of_parts(events: Vec<(u64, Event)>, [counts, unlisted]: [Counts; 2]) -> Self {
        EventLog {
            events,
            counts,
            unlisted,
            ..Self::default()
        }
    }

    /// Changes the numbers of inputs.
    pub(crate) fn renumber(&mut self, new: &dyn Fn(usize) -> usize) {
        for (_, event) in &mut self.events {
            event.input = new(event.input);
        }
    }

    /// Sorts the events by input, and keeps the first of each reason.
    pub(crate) fn settle(&mut self) {
        self.events
            .sort_by_key(|(order, event)| (event.input, *order));
        let mut kept: BTreeMap<Reason, u64> = BTreeMap::new();
        self.events.retain(|(_, event)| {
            let count = kept.entry(event.reason).or_default();
            *count += 1;
            *count <= self.limit
        });
    }

    /// Returns the events in the order of the inputs, and the number of unlisted events for each reason.
    pub(crate) fn finish(mut self) -> (Vec<Event>, BTreeMap<Reason, u64>) {
        self.settle();
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
