//! Finds out which LLVM releases can use a file.
use crate::instr::{Form, InstrFacts};
use profkit_abi::value_kind;
use profkit_data::instr::{InstrKind, Record};
use profkit_data::releases::{RELEASES, Release, ReleaseFacts, TextPart};
use std::ops::RangeInclusive;

const FIRST: u8 = 13;

/// Whether one LLVM release can use a file, judged only by the versions of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Support {
    /// The release.
    pub release: Release,
    /// Whether the release's llvm-profdata reads the file.
    pub reads: bool,
    /// Whether the release's clang accepts the file for `-fprofile-use` or `-fprofile-instr-use`.
    pub compiles: bool,
}

/// The releases that can use a file, judged only by the versions of the format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readers {
    /// The releases whose llvm-profdata reads the file; `None` if there are none.
    pub tool: Option<RangeInclusive<Release>>,
    /// The releases whose clang accepts the file; `None` if there are none.
    pub compilers: Option<RangeInclusive<Release>>,
}

impl Readers {
    /// The releases that can use an instrumentation profile. For a text profile, `oldest` is the first release that
    /// reads all its records.
    pub fn of(facts: &InstrFacts, oldest: Option<Release>) -> Self {
        let version = facts.version.unwrap_or(0);
        let range = |reads: &dyn Fn(&ReleaseFacts) -> bool| {
            let mut known = RELEASES.iter().filter(|facts| reads(facts));
            let first = known.next()?.release;
            Some(first..=known.next_back().map_or(first, |facts| facts.release))
        };
        match facts.form {
            Form::Raw => Readers {
                tool: range(&|facts| facts.reads_raw(version)),
                compilers: None,
            },
            Form::Indexed => {
                let readers = range(&|facts| facts.reads_indexed(version));
                Readers {
                    tool: readers.clone(),
                    compilers: readers,
                }
            }
            Form::Text => {
                let oldest = oldest.max(Some(oldest_for_kind(facts.instrumentation)));
                Readers {
                    tool: range(&|facts| Some(facts.release) >= oldest),
                    compilers: None,
                }
            }
        }
    }
}

fn table(support: impl Fn(&ReleaseFacts) -> (bool, bool)) -> Vec<Support> {
    let releases = RELEASES.iter().filter(|facts| facts.release.major >= FIRST);
    releases
        .map(|facts| {
            let (reads, compiles) = support(facts);
            Support {
                release: facts.release,
                reads,
                compiles,
            }
        })
        .collect()
}

/// Returns which LLVM releases support a raw profile. Each release of llvm-profdata reads one raw version. Compilers do
/// not read raw profiles.
pub fn of_raw(version: u32) -> Vec<Support> {
    table(|facts| (facts.reads_raw(version), false))
}

/// Returns which LLVM releases support an indexed profile.
pub fn of_indexed(version: u32) -> Vec<Support> {
    table(|facts| {
        let reads = facts.reads_indexed(version);
        (reads, reads)
    })
}

/// Returns which LLVM releases support a text profile. `oldest` is the first release that can read all its parts.
pub fn of_text(oldest: Release) -> Vec<Support> {
    table(|facts| (facts.release >= oldest, false))
}

/// Returns which LLVM releases support a sample profile. `releases` are the releases whose llvm-profdata reads the
/// encoding of the profile. The compilers of these releases accept the encoding too.
pub fn of_samples(releases: std::ops::RangeInclusive<u8>) -> Vec<Support> {
    table(|facts| {
        let reads = releases.contains(&facts.release.major);
        (reads, reads)
    })
}

/// The first release that reads the text of today's form.
const FIRST_TEXT: Release = Release::new(4);

/// The oldest release whose text reader accepts all directives of a text profile with this kind of instrumentation.
pub fn oldest_for_kind(kind: InstrKind) -> Release {
    const PARTS: [(InstrKind, TextPart); 5] = [
        (InstrKind::CONTEXT_SENSITIVE, TextPart::ContextSensitive),
        (InstrKind::ENTRY_FIRST, TextPart::EntryFirst),
        (
            InstrKind::SINGLE_BYTE_COVERAGE,
            TextPart::SingleByteCoverage,
        ),
        (InstrKind::TEMPORAL, TextPart::Traces),
        (InstrKind::LOOP_ENTRIES, TextPart::LoopEntries),
    ];
    let needed = PARTS.iter().filter(|(bit, _)| kind.contains(*bit));
    needed
        .map(|&(_, part)| part.since())
        .max()
        .unwrap_or(FIRST_TEXT)
}

/// The oldest release whose text reader accepts all parts of a record.
pub fn oldest_for_record(record: &Record) -> Release {
    let vtables = record.values.kind(value_kind::VTABLE_TARGET);
    if vtables.is_some_and(|vtables| vtables.site_count() > 0) {
        return TextPart::VTables.since();
    }
    match record.bitmap.is_empty() {
        true => FIRST_TEXT,
        false => TextPart::Bitmap.since(),
    }
}
