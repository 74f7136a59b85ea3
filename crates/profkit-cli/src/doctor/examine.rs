//! One file under examination.
use super::checks;
use super::compatibility::{self, Support};
use crate::show::source::{Facts, Source};
use crate::show::text::describe;
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::detect::{FileKind, detect};
use profkit_data::ids::BuildId;
use profkit_data::instr::indexed::IndexedHeader;
use profkit_data::instr::raw::{RawDialect, RawProfile};
use profkit_data::instr::releases::Release;
use profkit_data::instr::{InstrSource, Record};
use profkit_data::{Error, ErrorKind};
use profkit_merge::files::ReadError;

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is wrong with it.
    Sound,
    /// It is damaged, or no profile at all.
    Damaged,
    /// A kind that profkit does not read so far.
    Unsupported,
}

/// All that was found out about a file.
#[derive(Debug)]
pub struct Diagnosis {
    pub name: String,
    /// In bytes, where it could be read.
    pub size: Option<u64>,
    /// What it is, for people.
    pub what: String,
    pub facts: Option<Facts>,
    pub verdict: Verdict,
    /// Profiles in a raw file.
    pub profiles: usize,
    /// Records that can be read.
    pub functions: u64,
    /// Records that the file says it has.
    pub functions_stated: Option<u64>,
    /// Records that can be read but have lost their names.
    pub nameless: u64,
    /// Records whose value data are lost.
    pub without_values: u64,
    pub binary_ids: Vec<BuildId>,
    pub support: Vec<Support>,
    /// The first errors.
    pub damage: Vec<Error>,
    pub damage_count: u64,
    /// Commands to run next, with what each is good for.
    pub next: Vec<(String, &'static str)>,
}

/// How many errors are told in full.
const TOLD: usize = 10;

impl Diagnosis {
    pub(super) fn new(name: &str, size: Option<u64>, what: String) -> Self {
        Diagnosis {
            name: name.to_owned(),
            size,
            what,
            facts: None,
            verdict: Verdict::Sound,
            profiles: 0,
            functions: 0,
            functions_stated: None,
            nameless: 0,
            without_values: 0,
            binary_ids: Vec::new(),
            support: Vec::new(),
            damage: Vec::new(),
            damage_count: 0,
            next: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, error: Error) {
        let unsupported = matches!(
            error.kind(),
            ErrorKind::UnsupportedVersion | ErrorKind::MissingCorrelation
        );
        self.verdict = match self.verdict {
            Verdict::Sound | Verdict::Unsupported if unsupported => Verdict::Unsupported,
            _ => Verdict::Damaged,
        };
        self.damage_count += 1;
        if self.damage.len() < TOLD {
            self.damage.push(error);
        }
    }

    pub(super) fn advise(&mut self, command: String, purpose: &'static str) {
        self.next.push((command, purpose));
    }
}

/// A file that cannot be opened.
pub fn examine_unread(error: &ReadError) -> Diagnosis {
    let mut diagnosis = Diagnosis::new(&error.name, None, "not readable".to_owned());
    diagnosis.add(Error::new(ErrorKind::Unsupported, error.to_string()));
    diagnosis
}

/// Looks at every byte of a file that means something.
pub fn examine(name: &str, data: &[u8]) -> Diagnosis {
    let size = Some(data.len() as u64);
    let kind = detect(data);
    if crate::merge::sample_job::is_sample(data) {
        return super::sample::examine(name, data, kind);
    }
    if let Some(what) = foreign(kind, data) {
        let mut diagnosis = Diagnosis::new(name, size, what.to_owned());
        diagnosis.verdict = Verdict::Unsupported;
        match kind {
            FileKind::ObjectFile => diagnosis.advise(
                "profkit doctor default.profraw".to_owned(),
                "after the program has run: that is the file it writes unless LLVM_PROFILE_FILE says otherwise",
            ),
            FileKind::MemProfRaw => diagnosis.advise(
                format!("profkit show {} --binaries PROGRAM", quoted(name)),
                "with the program and libraries that ran",
            ),
            _ => {}
        }
        return diagnosis;
    }
    if matches!(kind, FileKind::Mip | FileKind::MipMap) {
        return super::mip::examine(name, data);
    }
    let source = match Source::open(data) {
        Ok(source) => source,
        Err(error) => return unopened(name, data, kind, error),
    };
    let facts = Facts::of(&source);
    let mut diagnosis = Diagnosis::new(name, size, describe(&facts));
    match source {
        Source::Raw(mut reader) => {
            diagnosis.support = compatibility::of_raw(facts.version.unwrap_or(0));
            raw(&mut diagnosis, &mut reader);
        }
        Source::Indexed(mut reader) => {
            diagnosis.support = compatibility::of_indexed(facts.version.unwrap_or(0));
            indexed(&mut diagnosis, &mut reader, data);
        }
        Source::Text(mut reader) => text(&mut diagnosis, &mut *reader),
    }
    diagnosis.facts = Some(facts);
    advise(&mut diagnosis);
    diagnosis
}

/// A profile whose structure cannot be followed.
fn unopened(name: &str, data: &[u8], kind: FileKind, error: Error) -> Diagnosis {
    let what = match kind {
        FileKind::Empty => "empty file".to_owned(),
        FileKind::InstrRaw => match RawDialect::read(data, 0) {
            Ok(dialect) => format!("raw profile version {}", dialect.version),
            Err(_) => "raw profile".to_owned(),
        },
        FileKind::InstrIndexed => match IndexedHeader::parse(data) {
            Ok(header) => describe(&Facts::of_indexed(&header)),
            Err(_) => "indexed profile".to_owned(),
        },
        FileKind::Text => "text".to_owned(),
        _ => "not a profile of a known kind".to_owned(),
    };
    let mut diagnosis = Diagnosis::new(name, Some(data.len() as u64), what);
    diagnosis.add(error);
    if diagnosis.verdict == Verdict::Damaged {
        match kind {
            FileKind::InstrRaw => diagnosis.advise(
                "LLVM_PROFILE_FILE=again.profraw PROGRAM".to_owned(),
                "run the program again: nothing of this file can be kept",
            ),
            FileKind::InstrIndexed => diagnosis.advise(
                "profkit merge *.profraw -o merged.profdata".to_owned(),
                "merge the raw profiles again: nothing of this file can be kept",
            ),
            _ => {}
        }
    }
    diagnosis
}

fn raw(diagnosis: &mut Diagnosis, reader: &mut profkit_data::instr::raw::RawReader<'_>) {
    let mut record = Record::default();
    let mut at = reader.profile().map(RawProfile::offset);
    let mut stated = reader.profile().map_or(0, |one| one.header().num_data);
    loop {
        match reader.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {
                if let Some(implausible) = reader.implausible_count() {
                    let error =
                        Error::new(ErrorKind::CounterTooLarge, "a counter is implausibly large")
                            .at(implausible.offset)
                            .within(format!(
                                "counter {} of function {}",
                                implausible.index, record.name_ref
                            ))
                            .found(implausible.count)
                            .expected("at most 2^56");
                    diagnosis.add(error);
                } else {
                    diagnosis.functions += 1;
                    diagnosis.nameless += u64::from(record.name.is_empty());
                }
            }
            Err(error) => {
                diagnosis.add(error);
                if !reader.can_resume() {
                    break;
                }
            }
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
    if diagnosis.nameless > 0 && diagnosis.damage_count == 0 {
        let error = Error::new(ErrorKind::Malformed, "functions without names")
            .within("names of raw profile")
            .found(format_args!(
                "{} hashes that no name has",
                diagnosis.nameless
            ));
        diagnosis.add(error);
    }
}

fn indexed(
    diagnosis: &mut Diagnosis,
    reader: &mut profkit_data::instr::indexed::IndexedReader<'_>,
    data: &[u8],
) {
    let profile = reader.profile().clone();
    let mut resummed = checks::Resummed::default();
    let mut record = Record::default();
    loop {
        match reader.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {
                diagnosis.functions += 1;
                resummed.add(&record);
                let offset = reader.record_offset();
                if let Some(error) = checks::key_hash(&record, offset) {
                    diagnosis.add(error);
                }
                if let Some(error) = checks::implausible_counter(&record) {
                    diagnosis.add(error.at(offset));
                }
            }
            Err(error) => {
                diagnosis.add(error);
                if !reader.can_resume() {
                    break;
                }
            }
        }
    }
    // Records that could not be read are missing from the sums: the cause has been told.
    if diagnosis.damage_count == 0 {
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
        // Records that no summary counts may be there all the same.
        diagnosis.functions_stated = (stated >= diagnosis.functions).then_some(stated);
    }
    match profile.binary_ids() {
        Ok(ids) => diagnosis.binary_ids = ids,
        Err(error) => diagnosis.add(error),
    }
    if let Err(error) = profile.vtable_names() {
        diagnosis.add(error);
    }
    let traces = profile.temporal_traces().unwrap_or_else(|error| {
        diagnosis.add(error);
        Default::default()
    });
    if diagnosis.damage_count == 0 {
        for error in checks::section_gaps(&profile, data, &traces) {
            diagnosis.add(error);
        }
    }
}

fn text(diagnosis: &mut Diagnosis, reader: &mut dyn InstrSource) {
    let mut oldest: Release = compatibility::oldest_for_kind(reader.kind());
    let mut record = Record::default();
    loop {
        match reader.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {
                diagnosis.functions += 1;
                oldest = oldest.max(compatibility::oldest_for_record(&record));
                if let Some(error) = checks::implausible_counter(&record) {
                    diagnosis.add(error);
                }
            }
            Err(error) => {
                diagnosis.add(error);
                if !reader.can_resume() {
                    break;
                }
            }
        }
    }
    if diagnosis.functions == 0 && diagnosis.damage_count > 0 {
        diagnosis.what = "text, but no profile that can be read".to_owned();
    } else {
        diagnosis.support = compatibility::of_text(oldest);
    }
}

/// What to do next.
fn advise(diagnosis: &mut Diagnosis) {
    let Some(facts) = diagnosis.facts.clone() else {
        return;
    };
    let name = quoted(&diagnosis.name);
    let correlation = diagnosis
        .damage
        .iter()
        .any(|error| error.kind() == ErrorKind::MissingCorrelation);
    if correlation {
        diagnosis.advise(
            format!("llvm-profdata merge --debug-info=PROGRAM {name} -o merged.profdata"),
            "with LLVM's tool: the functions are in the program's debug info",
        );
        return;
    }
    if diagnosis.functions == 0 && diagnosis.verdict != Verdict::Sound {
        return;
    }
    let merge = format!("profkit merge {name} -o merged.profdata");
    match (facts.kind, diagnosis.verdict) {
        (_, Verdict::Damaged) => {
            diagnosis.advise(merge, "keeps what is sound, and reports the rest")
        }
        ("indexed", _) => {
            diagnosis.advise(
                format!("profkit show --hot 20 {name}"),
                "where the time goes",
            );
            if facts.version > Some(12) {
                diagnosis.advise(
                    format!("profkit merge --llvm 19 {name} -o merged.profdata"),
                    "for an older LLVM, here 19",
                );
            }
        }
        _ => diagnosis.advise(merge, "for a compiler"),
    }
}

/// A kind that is known and not read so far.
fn foreign(kind: FileKind, data: &[u8]) -> Option<String> {
    Some(match kind {
        FileKind::MemProfRaw => {
            let mut cursor = Cursor::new(data, 0, Endian::Little);
            let version = cursor.u64().and_then(|_| cursor.u64()).ok();
            let version = version.map_or(String::new(), |version| format!(" version {version}"));
            format!("raw heap profile (MemProf){version}, of which only the header is looked at")
        }
        FileKind::ObjectFile => "program or object file, not a profile".to_owned(),
        FileKind::Text if data.starts_with(b"---") => {
            "heap profile (MemProf), YAML, not looked at further".to_owned()
        }
        _ => return None,
    })
}

/// A path as a shell takes it.
pub(super) fn quoted(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&byte);
    if !path.is_empty() && !path.starts_with('-') && path.bytes().all(plain) {
        return path.to_owned();
    }
    let prefix = if path.starts_with('-') { "./" } else { "" };
    format!("'{prefix}{}'", path.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted("a/b-1.profraw"), "a/b-1.profraw");
        assert_eq!(quoted("it's here"), "'it'\\''s here'");
        assert_eq!(quoted("-rf"), "'./-rf'");
    }

    /// No cut and no changed byte makes the examination panic, and what lacks bytes is never sound.
    #[test]
    fn damaged_files_are_examined_to_their_end() {
        for name in [
            "raw/clang-22-ir-plain.profraw",
            "raw/clang-22-temporal-host.profraw",
            "indexed/clang-22-temporal-plain.profdata",
            "text/clang-22-vtables-shapes.proftext",
        ] {
            let whole = profkit_testkit::fixture(name);
            assert_eq!(examine(name, &whole).verdict, Verdict::Sound, "{name}");
            for end in (0..whole.len()).step_by(7) {
                let cut = examine(name, &whole[..end]);
                let at_a_record = name.starts_with("text");
                assert!(
                    cut.verdict == Verdict::Damaged || at_a_record,
                    "{name} cut at {end}: {cut:?}"
                );
                let mut changed = whole.clone();
                changed[end] ^= 0xff;
                examine(name, &changed);
            }
        }
    }
}
