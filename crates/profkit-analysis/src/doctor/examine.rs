//! Examines one file and finds its faults.
use super::compatibility::{self, Support};
use super::remarks::Remarks;
use super::what::{Advice, What};
use super::{checks, heap, mip, sample};
use crate::faults::Faults;
use crate::instr::{Form, InstrFacts};
use crate::manifest::Manifest;
use profkit_data::ForeignFile;
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::ids::BuildId;
use profkit_data::instr::indexed::{IndexedHeader, check_memprof};
use profkit_data::instr::raw::{RawDialect, RawProfile};
use profkit_data::instr::{InstrReader, InstrSource, Record, Target};
use profkit_data::releases::Release;
use profkit_data::{Error, ErrorKind, Structure};
use profkit_object::mip_sections::has_map;

/// Whether a file can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The file has no faults.
    Sound,
    /// The file is damaged.
    Damaged,
    /// The file is a profile of a version that profkit does not know.
    Unsupported,
    /// The file holds only counters. Their functions are in the program that wrote it, so a merge needs the program.
    NeedsProgram,
    /// The file is not a profile.
    Foreign,
    /// There is no such file, or it cannot be opened.
    Unreadable,
}

impl Verdict {
    /// Whether the file is damaged, unreadable or not a profile.
    pub fn is_bad(self) -> bool {
        matches!(
            self,
            Verdict::Damaged | Verdict::Foreign | Verdict::Unreadable
        )
    }
}

/// The facts that were found about one file.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The size in bytes, if the file could be read.
    pub size: Option<u64>,
    /// The type of the file.
    pub what: What,
    /// Where the code of the profile ran, by the name of the file.
    pub target: Target,
    /// Whether the file can be used.
    pub verdict: Verdict,
    /// Whether everything before the records, such as the header, could be read.
    is_followed: bool,
    /// The number of profiles in a raw file, which may hold several.
    pub profiles: usize,
    /// The number of records that can be read.
    pub functions: u64,
    /// The number of contexts in a heap profile; `None` for other profiles.
    pub contexts: Option<u64>,
    /// The number of records that the file states; `None` if the file states no number.
    pub functions_stated: Option<u64>,
    /// The number of records whose value data are lost.
    pub without_values: u64,
    /// What is odd about the records although the file is not damaged.
    pub remarks: Remarks,
    /// The build ids of the programs that wrote the profile.
    pub binary_ids: Vec<BuildId>,
    /// What LLVM releases can do with the file; empty if that is not known.
    pub support: Vec<Support>,
    /// The number of inputs that the manifest beside the file states, if the manifest is of this profile.
    pub manifest: Option<u64>,
    /// The faults of the file.
    pub damage: Faults,
    /// What the user can do next.
    pub next: Vec<Advice>,
}

impl Diagnosis {
    pub(super) fn new(size: Option<u64>, what: What) -> Self {
        Diagnosis {
            size,
            what,
            target: Target::Host,
            verdict: Verdict::Sound,
            is_followed: false,
            profiles: 0,
            functions: 0,
            contexts: None,
            functions_stated: None,
            without_values: 0,
            remarks: Remarks::default(),
            binary_ids: Vec::new(),
            support: Vec::new(),
            manifest: None,
            damage: Faults::default(),
            next: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, error: Error) {
        self.verdict = match (self.verdict, error.kind()) {
            (
                Verdict::Sound | Verdict::Unsupported | Verdict::NeedsProgram,
                ErrorKind::UnsupportedVersion,
            ) => Verdict::Unsupported,
            (Verdict::Sound | Verdict::NeedsProgram, ErrorKind::MissingCorrelation) => {
                Verdict::NeedsProgram
            }
            (Verdict::Unsupported, ErrorKind::MissingCorrelation) => Verdict::Unsupported,
            _ => Verdict::Damaged,
        };
        self.damage.push(error);
    }

    /// Adds the fault that only the first bytes of the file could be read; `problem` is the reason. This fault becomes
    /// the first, because it explains the others.
    pub fn cut(&mut self, problem: &str) {
        let error = ErrorKind::Truncated.error(problem.to_owned());
        if self.verdict != Verdict::Foreign {
            self.verdict = Verdict::Damaged;
        }
        self.damage.push_first(error.with_hint(
            "the compressed file or archive is cut off: copy it again, or give the original files",
        ));
    }

    /// Adds what the manifest beside the file says of it: a fault if it is about another profile, or is no manifest.
    /// `name` is the manifest's in messages.
    pub(super) fn compare(&mut self, name: &str, manifest: &[u8], profile: &[u8]) {
        match Manifest::parse(manifest) {
            Ok(manifest) => match manifest.mismatch(name, profile) {
                Some(error) => self.add(error),
                None => self.manifest = Some(manifest.inputs.len() as u64),
            },
            Err(error) => self.add(error.kind().error(format!("{name}: {error}"))),
        }
    }

    /// The facts of an instrumentation profile, if the file is one.
    pub fn facts(&self) -> Option<&InstrFacts> {
        match &self.what {
            What::Instr(facts) if self.is_followed => Some(facts),
            _ => None,
        }
    }
}

/// The diagnosis of a file that cannot be opened because of this error. `hint` says what the user can do about it.
pub fn unreadable(reason: &std::io::Error, hint: Option<String>) -> Diagnosis {
    let what = match reason.kind() {
        std::io::ErrorKind::NotFound => What::Missing,
        _ => What::Unreadable,
    };
    let mut diagnosis = Diagnosis::new(None, what);
    let text = profkit_merge::files::system_text(reason);
    let error = ErrorKind::Unsupported.error(text);
    diagnosis.add(match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    });
    diagnosis.verdict = Verdict::Unreadable;
    diagnosis
}

/// Examines a whole file. Every byte that has a meaning is read, so that damage anywhere is found.
pub fn examine(data: &[u8]) -> Diagnosis {
    let size = Some(data.len() as u64);
    let kind = detect(data);
    if matches!(kind, FileKind::Part(_)) {
        return part(data, kind.family());
    }
    match kind.family() {
        Some(Family::Sample) => return sample::examine(data, kind),
        Some(Family::Mip) if kind != FileKind::MipYaml => return mip::examine(data),
        Some(Family::Mip) => return mip::yaml(data),
        Some(Family::MemProf) if kind == FileKind::MemProfYaml => return heap::yaml(data),
        Some(Family::MemProf) => return heap::raw(data),
        _ => {}
    }
    if kind == FileKind::ObjectFile {
        let mut diagnosis = Diagnosis::new(size, What::ObjectFile);
        diagnosis.verdict = Verdict::Foreign;
        diagnosis.next.push(if has_map(data) {
            Advice::RunMipProgram
        } else {
            Advice::RunProgram
        });
        return diagnosis;
    }
    let reader = match InstrReader::open(data) {
        Ok(reader) => reader,
        Err(error) => return unopened(data, kind, error),
    };
    let facts = InstrFacts::of(&reader);
    let mut diagnosis = Diagnosis::new(size, What::Instr(facts.clone()));
    diagnosis.is_followed = true;
    match reader {
        InstrReader::Raw(mut reader) => {
            diagnosis.support = compatibility::of_raw(facts.version.unwrap_or(0));
            raw(&mut diagnosis, &mut reader);
        }
        InstrReader::Indexed(mut reader) => {
            diagnosis.support = compatibility::of_indexed(facts.version.unwrap_or(0));
            indexed(&mut diagnosis, &mut reader, data);
        }
        InstrReader::Text(mut reader) => text(&mut diagnosis, &mut *reader, data),
    }
    let advice = advice(&diagnosis, &facts);
    diagnosis.next.extend(advice);
    diagnosis
}

fn part(data: &[u8], family: Option<Family>) -> Diagnosis {
    let facts = profkit_merge::part::examine(data);
    let inputs = facts.as_ref().ok().map(|facts| facts.inputs);
    let mut diagnosis = Diagnosis::new(Some(data.len() as u64), What::Part(inputs));
    match facts {
        Ok(facts) => {
            diagnosis.functions = facts.functions;
            diagnosis.binary_ids = facts.build_ids;
            diagnosis.next.push(match family {
                Some(Family::Sample) => Advice::MergeSamples,
                Some(Family::Mip) => Advice::MipMerge,
                _ => Advice::ForCompiler,
            });
        }
        Err(error) => diagnosis.add(error),
    }
    diagnosis
}

/// Examines a file that cannot be opened as an instrumentation profile, for example because its header is broken.
fn unopened(data: &[u8], kind: FileKind, error: Error) -> Diagnosis {
    let what = match kind {
        FileKind::Empty => What::Empty,
        FileKind::InstrRaw => What::BrokenRaw(
            RawDialect::read(data, 0)
                .ok()
                .map(|dialect| dialect.version),
        ),
        FileKind::InstrIndexed => match IndexedHeader::parse(data) {
            Ok(header) => What::Instr(InstrFacts::of_indexed(&header)),
            Err(_) => What::BrokenIndexed,
        },
        FileKind::InstrText => What::Text,
        FileKind::Archive | FileKind::PerfData | FileKind::GccCoverage | FileKind::Foreign(_) => {
            What::Other(kind)
        }
        _ => What::Unknown,
    };
    let mut diagnosis = Diagnosis::new(Some(data.len() as u64), what);
    diagnosis.add(error);
    match (kind, diagnosis.verdict) {
        (FileKind::Empty, _) | (_, Verdict::Unsupported | Verdict::NeedsProgram) => {}
        (FileKind::InstrRaw, _) => diagnosis.next.push(Advice::RunAgain),
        (FileKind::InstrIndexed, _) => diagnosis.next.push(Advice::MergeAgain),
        // The first line names the kind of instrumentation, so this text is a profile.
        (FileKind::InstrText, _) if data.starts_with(b":") => {}
        // The file was a profile before its line endings were converted.
        (FileKind::Foreign(ForeignFile::ChangedLineEndings), _) => {}
        _ => diagnosis.verdict = Verdict::Foreign,
    }
    diagnosis
}

fn raw(diagnosis: &mut Diagnosis, reader: &mut profkit_data::instr::raw::RawReader<'_>) {
    let mut record = Record::default();
    let mut at = reader.profile().map(RawProfile::offset);
    let mut stated = reader.profile().map_or(0, |one| one.header().num_data);
    while let Some(read) = reader.next_record(&mut record) {
        match read {
            Ok(()) => {
                if let Some(implausible) = reader.implausible_count() {
                    let error = ErrorKind::CounterTooLarge
                        .error("a counter is too large to be true")
                        .at(implausible.offset)
                        .within(Structure::Counter(implausible.index as u64))
                        .within(Structure::Function(record.name_ref.to_string()))
                        .found(implausible.count)
                        .expected("at most 2^56");
                    diagnosis.add(error);
                } else {
                    diagnosis.functions += 1;
                    diagnosis.remarks.add(reader.kind(), &record);
                }
            }
            Err(error) => diagnosis.add(error),
        }
        let now = reader.profile();
        if let Some(profile) = now
            && Some(profile.offset()) != at
        {
            at = Some(profile.offset());
            stated = stated.saturating_add(profile.header().num_data);
        }
    }
    diagnosis.functions_stated = Some(stated);
    diagnosis.profiles = reader.profiles_seen();
    diagnosis.without_values = reader.records_without_values() as u64;
    diagnosis.binary_ids = reader.binary_ids().unwrap_or_default();
}

fn indexed(
    diagnosis: &mut Diagnosis,
    reader: &mut profkit_data::instr::indexed::IndexedReader<'_>,
    data: &[u8],
) {
    let profile = reader.profile().clone();
    let mut resummed = checks::RecordSums::default();
    let mut record = Record::default();
    while let Some(read) = reader.next_record(&mut record) {
        match read {
            Ok(()) => {
                diagnosis.functions += 1;
                resummed.add(&record);
                diagnosis.remarks.add(reader.kind(), &record);
                let offset = reader.record_offset();
                if let Some(error) = checks::key_hash(&record, offset) {
                    diagnosis.add(error);
                }
                if let Some(error) = checks::implausible_counter(&record) {
                    diagnosis.add(error.at(offset));
                }
            }
            Err(error) => diagnosis.add(error),
        }
    }
    // The summaries are compared only if all records could be read. Otherwise sums over the records would be too small.
    if diagnosis.damage.count == 0 {
        for error in resummed.differences(&profile) {
            diagnosis.add(error);
        }
    }
    if profile.is_damaged() {
        let summaries = [profile.summary(), profile.cs_summary()];
        let stated = summaries
            .iter()
            .flatten()
            .map(|summary| summary.functions)
            .fold(0, u64::saturating_add);
        // In a damaged file, the summaries may state fewer functions than could be read. The number that the file
        // states is then wrong, and is not reported.
        diagnosis.functions_stated = (stated >= diagnosis.functions).then_some(stated);
    }
    match profile.binary_ids() {
        Ok(ids) => diagnosis.binary_ids = ids,
        Err(error) => diagnosis.add(error),
    }
    if let Err(error) = profile.vtable_names() {
        diagnosis.add(error);
    }
    if let Some(section) = profile.memprof()
        && let Err(error) = check_memprof(&section)
    {
        diagnosis.add(error);
    }
    let traces = profile.temporal_traces().unwrap_or_else(|error| {
        diagnosis.add(error);
        Default::default()
    });
    if diagnosis.damage.count == 0 {
        for error in checks::section_gaps(&profile, data, &traces) {
            diagnosis.add(error);
        }
    }
}

fn text(diagnosis: &mut Diagnosis, reader: &mut dyn InstrSource, data: &[u8]) {
    let mut oldest: Release = compatibility::oldest_for_kind(reader.kind());
    let mut record = Record::default();
    while let Some(read) = reader.next_record(&mut record) {
        match read {
            Ok(()) => {
                diagnosis.functions += 1;
                oldest = oldest.max(compatibility::oldest_for_record(&record));
                diagnosis.remarks.add(reader.kind(), &record);
                if let Some(error) = checks::implausible_counter(&record) {
                    diagnosis.add(error);
                }
            }
            Err(error) => diagnosis.add(error),
        }
    }
    if diagnosis.functions == 0 && diagnosis.damage.count > 0 {
        diagnosis.what = What::Text;
        // If the first line names the kind of instrumentation, the text is a profile.
        if !data.starts_with(b":") {
            diagnosis.verdict = Verdict::Foreign;
        }
    } else {
        diagnosis.support = compatibility::of_text(oldest);
    }
}

fn advice(diagnosis: &Diagnosis, facts: &InstrFacts) -> Vec<Advice> {
    // No profile can be read from this text.
    if matches!(diagnosis.what, What::Text) {
        return Vec::new();
    }
    let mut damage = diagnosis.damage.first.iter();
    if damage.any(|error| error.kind() == ErrorKind::MissingCorrelation) {
        return vec![Advice::Correlate];
    }
    let has_functions = diagnosis.functions > 0;
    match (facts.form, diagnosis.verdict) {
        (
            _,
            Verdict::Unsupported | Verdict::NeedsProgram | Verdict::Foreign | Verdict::Unreadable,
        ) => Vec::new(),
        (Form::Raw, Verdict::Damaged) if !has_functions => vec![Advice::RunAgain],
        (Form::Indexed, Verdict::Damaged) if !has_functions => vec![Advice::MergeAgain],
        (_, Verdict::Damaged) if diagnosis.remarks.nameless == diagnosis.functions => {
            vec![Advice::KeepWithComplete]
        }
        (_, Verdict::Damaged) => vec![Advice::KeepSound],
        (Form::Indexed, _) if !has_functions => vec![Advice::Show],
        (Form::Indexed, _) if facts.version > Some(12) => {
            vec![Advice::ShowHot, Advice::ForOlderRelease]
        }
        (Form::Indexed, _) => vec![Advice::ShowHot],
        _ => vec![Advice::ForCompiler],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examination never panics on a truncated or changed file, and never reports a truncated file as sound.
    #[test]
    fn damaged_files_are_examined_to_their_end() {
        for name in [
            "raw/clang-22-ir-plain.profraw",
            "raw/clang-22-temporal-host.profraw",
            "indexed/clang-22-temporal-plain.profdata",
            "text/clang-22-vtables-shapes.proftext",
        ] {
            let whole = profkit_testkit::fixture(name);
            assert_eq!(examine(&whole).verdict, Verdict::Sound, "{name}");
            for end in (0..whole.len()).step_by(7) {
                let cut = examine(&whole[..end]);
                let at_a_record = name.starts_with("text");
                // A file of 7 bytes is too short for the 8-byte magic number, so it is not recognised as a profile.
                let wanted = if end == 7 {
                    Verdict::Foreign
                } else {
                    Verdict::Damaged
                };
                assert!(
                    cut.verdict == wanted || at_a_record,
                    "{name} cut at {end}: {cut:?}"
                );
                let mut changed = whole.clone();
                changed[end] ^= 0xff;
                examine(&changed);
            }
        }
    }
}
