//! What a merge of MIP files did with its inputs.
//!
//! Serialised (by serde) it is the `--report` file: an object whose `version` is [`MIP_REPORT_VERSION`]; a field may be
//! added without raising the version, none changes its meaning.
use crate::report::EVENTS_PER_REASON;
use profkit_data::{Error, ErrorKind};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The version of the serialised form.
pub const MIP_REPORT_VERSION: u32 = 1;

/// What happened.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MipReport {
    /// [`MIP_REPORT_VERSION`].
    pub version: u32,
    /// Everything worth a word, in input order; at most [`EVENTS_PER_REASON`] of a reason.
    pub events: Vec<MipEvent>,
    /// How many further events of a reason there were.
    pub omitted: BTreeMap<MipReason, u64>,
    /// Sums.
    pub totals: MipTotals,
    /// The profiles that inputs went into.
    pub targets: Vec<TargetReport>,
}

/// Sums over all inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MipTotals {
    /// Inputs that were opened, or tried.
    pub files: u64,
    /// Inputs of which everything was kept.
    pub files_kept: u64,
    /// Inputs of which a part was kept.
    pub files_repaired: u64,
    /// Inputs of which nothing was kept.
    pub files_dropped: u64,
    /// Empty files, which are no error.
    pub files_empty: u64,
    /// Bytes of all inputs.
    pub bytes: u64,
    /// Raw parts that were added.
    pub raw_parts: u64,
    /// Profiles that were added.
    pub profiles: u64,
    /// Runs that were added.
    pub runs: u64,
    /// Samples of calls to what is no function of the profile.
    pub samples_dropped: u64,
}

/// One profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TargetReport {
    /// What it is called.
    pub name: String,
    /// Its build id or module hash, in words.
    pub identity: String,
    /// Runs that were added.
    pub runs_added: u64,
    /// Runs it has now.
    pub runs: u64,
    /// Functions it has.
    pub functions: u64,
    /// Functions that a run entered.
    pub covered: u64,
}

/// What was done with a part of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MipAction {
    /// It was added, but for what is missing.
    Repaired,
    /// It was left out.
    Dropped,
    /// It was added; there is something to know.
    Noted,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MipReason {
    /// The file is empty.
    Empty,
    /// The profile had no build id and took that of the first raw file.
    BuildIdTaken,
    /// The file cannot be opened or read.
    Unreadable,
    /// It is no MIP file, or one of another kind.
    NotMip,
    /// A version that is not known.
    UnsupportedVersion,
    /// The file is cut short.
    Truncated,
    /// The checksum is wrong.
    ChecksumWrong,
    /// It contradicts itself in another way.
    Malformed,
    /// It is of another build than any profile.
    OtherBuild,
    /// It is of the build, but its records are not laid out as in the profile.
    OtherLayout,
    /// A function as compiled is not that of the profile.
    SignatureChanged,
}

impl MipReason {
    /// Whether it is only a note, which `--strict` allows.
    pub fn is_note(self) -> bool {
        matches!(self, MipReason::Empty | MipReason::BuildIdTaken)
    }
}

/// Something that happened to an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MipEvent {
    /// Index of the input.
    pub input: usize,
    /// Name of the input.
    pub file: String,
    /// Absolute offset in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What was done.
    pub action: MipAction,
    /// Why.
    pub reason: MipReason,
    /// A sentence without the file's name.
    pub message: String,
    /// What the user can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for MipEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.action {
            MipAction::Repaired => "kept in part: ",
            MipAction::Dropped => "dropped: ",
            MipAction::Noted => "",
        };
        write!(f, "{}: {done}{}", self.file, self.message)
    }
}

impl MipReport {
    /// Whether every input was kept as it was: no event says otherwise.
    pub fn is_clean(&self) -> bool {
        self.omitted.keys().all(|reason| reason.is_note())
            && self.events.iter().all(|event| event.reason.is_note())
    }

    /// Adds an event, or counts it if there are enough of its reason.
    pub(super) fn push(&mut self, event: MipEvent) {
        let reason = event.reason;
        let same = self.events.iter().filter(|one| one.reason == reason);
        if self.omitted.contains_key(&reason) || same.count() >= EVENTS_PER_REASON {
            *self.omitted.entry(reason).or_default() += 1;
        } else {
            self.events.push(event);
        }
    }

    /// Adds what another thread reported.
    pub(super) fn join(&mut self, other: MipReport) {
        for (reason, count) in other.omitted {
            *self.omitted.entry(reason).or_default() += count;
        }
        self.events.extend(other.events);
        let (sum, more) = (&mut self.totals, other.totals);
        sum.files += more.files;
        sum.files_kept += more.files_kept;
        sum.files_repaired += more.files_repaired;
        sum.files_dropped += more.files_dropped;
        sum.files_empty += more.files_empty;
        sum.bytes = sum.bytes.saturating_add(more.bytes);
        sum.raw_parts += more.raw_parts;
        sum.profiles += more.profiles;
        sum.runs = sum.runs.saturating_add(more.runs);
        sum.samples_dropped = sum.samples_dropped.saturating_add(more.samples_dropped);
    }

    /// Puts events in input order, and counts what is too many of a reason.
    pub(super) fn finish(&mut self) {
        self.version = MIP_REPORT_VERSION;
        self.events.sort_by_key(|event| event.input);
        let mut kept: BTreeMap<MipReason, usize> = BTreeMap::new();
        let omitted = &mut self.omitted;
        self.events.retain(|event| {
            let count = kept.entry(event.reason).or_default();
            *count += 1;
            let keep = *count <= EVENTS_PER_REASON;
            if !keep {
                *omitted.entry(event.reason).or_default() += 1;
            }
            keep
        });
    }
}

/// What an error of a reader means here.
pub(super) fn reason_of(error: &Error) -> MipReason {
    match error.kind() {
        ErrorKind::Empty => MipReason::Empty,
        ErrorKind::BadMagic | ErrorKind::UnrecognizedFormat | ErrorKind::Unsupported => {
            MipReason::NotMip
        }
        ErrorKind::UnsupportedVersion => MipReason::UnsupportedVersion,
        ErrorKind::Truncated => MipReason::Truncated,
        ErrorKind::ChecksumMismatch => MipReason::ChecksumWrong,
        _ => MipReason::Malformed,
    }
}
