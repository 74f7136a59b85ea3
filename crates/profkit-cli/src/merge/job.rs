//! What `merge` and `convert` have in common: merge, judge, write, report.
use super::args::{Format, ReportArgs, VersionArgs};
use super::report::{FullReport, Written};
use super::supplement::Supplement;
use super::write::{Encoding, write_profile};
use crate::correlate::report::CorrelationReport;
use crate::exit::{Failure, Result, Status};
use profkit_analysis::heap::LoadedHeap;
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::instr::indexed::IndexedWriteOptions;
use profkit_data::instr::releases::{FrontEndScheme, Release};
use profkit_data::instr::text::TextOptions;
use profkit_data::instr::{InstrKind, InstrProfile};
use profkit_data::memprof::IdScheme;
use profkit_data::memprof::indexed::{IndexedMemProfOptions, encode, read_section};
use profkit_merge::files::{Content, Output};
use profkit_merge::memprof::{ContextRule, MemProfSum};
use profkit_merge::{
    Inputs, MergeError, MergeOptions, MergeOutcome, MergedProfile, Reason, Report, merge_instr,
};
use std::fs;
use std::path::PathBuf;

/// The last release with the older ids of frames.
const LAST_COMBINED_IDS: u8 = 19;
/// The indexed version of results that hold heap profiles alone, unless another is asked for (LLVM 22).
const NEWEST_INDEXED: u32 = 13;
/// The oldest indexed version that can be written (LLVM 3.8).
const OLDEST_WRITTEN: u32 = 3;

/// What is to be done with some inputs.
#[derive(Debug)]
pub struct Job {
    /// How to merge.
    pub options: MergeOptions,
    /// Which profile went to which binary.
    pub correlation: Option<CorrelationReport>,
    /// Whether that was printed already.
    pub correlation_told: bool,
    /// Heap profiles that are to go into the result.
    pub memprof: Option<MemProfJob>,
    /// What corrects the merged profile.
    pub supplement: Option<Supplement>,
    /// Leave out functions that never ran.
    pub sparse: bool,
    /// What to write.
    pub form: Form,
    /// Where to.
    pub destination: Destination,
    /// How to treat and tell damage.
    pub report: ReportArgs,
}

/// Heap profiles beside what is merged, and how their section is to be written.
#[derive(Debug, Default)]
pub struct MemProfJob {
    /// The sum of raw dumps and YAML.
    pub loaded: Option<LoadedHeap>,
    /// The version that was asked for.
    pub version: Option<u32>,
    /// Write all fields.
    pub full_schema: bool,
}

/// Where results go.
#[derive(Debug)]
pub enum Destination {
    /// One result.
    File(PathBuf),
    /// One result a program.
    Folder(PathBuf),
}

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text.
    Text,
    /// Indexed.
    Indexed(Version),
    /// The heap profile as YAML.
    MemProfYaml,
}

/// How the version of an indexed result is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The newest that fits where the inputs came from.
    Fitting,
    /// This one.
    Exact(u32),
    /// What a release reads.
    Release(Release),
}

impl Form {
    /// The form that was asked for.
    ///
    /// # Errors
    /// If a version is asked for where there is none, or a release reads no version that can be written.
    pub fn new(format: Format, args: &VersionArgs) -> Result<Self> {
        let version = match (args.indexed_version, args.llvm) {
            (None, None) => Version::Fitting,
            _ if format != Format::Indexed => {
                return Err(Failure::usage(
                    "--llvm and --indexed-version choose a version of the indexed format; text has none",
                ));
            }
            (Some(version), _) => Version::Exact(version),
            (None, Some(release)) => {
                let newest = release.facts().map_or(0, |facts| facts.indexed);
                if newest < OLDEST_WRITTEN {
                    return Err(Failure::usage(format_args!(
                        "--llvm {release}: it reads indexed versions up to {newest}, and {OLDEST_WRITTEN} is the oldest that can be written"
                    ))
                    .with_hint("LLVM 3.8 is the oldest release that can be written for"));
                }
                Version::Release(release)
            }
        };
        match format {
            Format::Text => Ok(Form::Text),
            Format::Indexed => Ok(Form::Indexed(version)),
            Format::MemprofYaml => Ok(Form::MemProfYaml),
            _ => Err(Failure::usage(
                "the inputs are no sample profiles: they are written as indexed, text or memprof-yaml",
            )),
        }
    }

    fn content(self) -> Content {
        match self {
            Form::Text | Form::MemProfYaml => Content::Text,
            Form::Indexed(_) => Content::Binary,
        }
    }
}

impl Job {
    /// Merges the inputs, writes what comes out, and tells about it. `merged` is called when the inputs are done with.
    ///
    /// # Errors
    /// Whatever keeps the result from being written; what there is to say about the inputs has then been printed.
    pub fn run(self, inputs: &dyn Inputs, mut notes: Vec<String>, merged: impl FnOnce()) -> Result {
        self.check_stdout()?;
        let content = self.form.content();
        let open: &dyn Fn(&MergedProfile) -> Result<Output> = match &self.destination {
            Destination::File(path) => {
                let output = Output::new(path, content)?;
                &move |_| Ok(output.clone())
            }
            Destination::Folder(folder) => {
                fs::create_dir_all(folder).map_err(|error| {
                    Failure::io("cannot make the folder", folder.display(), &error)
                })?;
                &move |merged| {
                    let name = program_name(&merged.build_ids, content);
                    Ok(Output::new(&folder.join(name), content)?)
                }
            }
        };
        if let Some(path) = &self.report.report {
            // Known before the profile is written, not after.
            Output::new(path, Content::Text)?;
        }
        let alone = inputs.is_empty() && self.memprof.is_some();
        let outcome = match alone {
            true => Err(MergeError::NothingLeft(Box::default())),
            false => merge_instr(inputs, &self.options),
        };
        merged();
        let outcome = match (outcome, &self.memprof) {
            (Err(MergeError::NothingLeft(mut report)), Some(memprof)) => {
                let kept = memprof.loaded.as_ref().map_or(0, LoadedHeap::kept);
                if kept == 0 {
                    memprof.tell(&mut report);
                    return self.nothing_merged(&MergeError::NothingLeft(report), &notes);
                }
                report.suggested_indexed_version = NEWEST_INDEXED;
                Ok(MergeOutcome {
                    profiles: vec![MergedProfile::default()],
                    heap: None,
                    report: *report,
                })
            }
            (outcome, _) => outcome,
        };
        let MergeOutcome {
            mut profiles,
            mut report,
            ..
        } = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.nothing_merged(&error, &notes),
        };
        if let Some(memprof) = &self.memprof {
            memprof.tell(&mut report);
        }
        if self.strict() && !report.is_clean() {
            self.tell(&report, &notes, &[], true)?;
            return Err(Failure::input(
                "nothing was written, because --strict allows nothing to be repaired or dropped",
            ));
        }
        let mut written = Vec::with_capacity(profiles.len());
        for merged in &mut profiles {
            if let Some(supplement) = &self.supplement {
                supplement.correct(&mut merged.profile, &mut notes);
            }
            let encoding = self.encoding(&report, merged.profile.kind, &mut notes);
            if let Encoding::Indexed(options) | Encoding::MemProfYaml(options) = &encoding {
                self.place_memprof(&mut merged.profile, options)?;
            }
            written.push(write_profile(
                open(merged)?,
                &merged.profile,
                &encoding,
                self.options.run.threads.wanted(),
                self.strict(),
            )?);
        }
        self.tell(&report, &notes, &written, !self.report.quiet)?;
        Ok(Status::Done)
    }

    fn strict(&self) -> bool {
        self.report.strict
    }

    /// Standard output takes one thing only.
    fn check_stdout(&self) -> Result<()> {
        let Some(report) = &self.report.report else {
            return Ok(());
        };
        match &self.destination {
            Destination::File(output) if output == report => Err(Failure::usage(format_args!(
                "the profile and the report cannot both be written to {}",
                report.display()
            ))),
            _ => Ok(()),
        }
    }

    /// How a profile is to be written, with a note on what that means if it is not obvious.
    fn encoding(&self, report: &Report, kind: InstrKind, notes: &mut Vec<String>) -> Encoding {
        let version = match self.form {
            Form::Indexed(version) => version,
            Form::MemProfYaml => Version::Fitting,
            Form::Text => return Encoding::Text(TextOptions::default().sparse(self.sparse)),
        };
        let fitting = report.suggested_indexed_version;
        let options = match version {
            Version::Fitting => IndexedWriteOptions::for_version(fitting),
            Version::Exact(version) => IndexedWriteOptions::for_version(version),
            Version::Release(release) => {
                let options = IndexedWriteOptions::for_llvm(release);
                let own = release.facts().map_or(0, |facts| facts.indexed);
                if own > options.version {
                    push_once(
                        notes,
                        format!(
                            "LLVM {release} writes indexed version {own}, which profkit does not write yet; version {} is written, which LLVM {release} reads",
                            options.version
                        ),
                    );
                }
                options
            }
        };
        let scheme = FrontEndScheme::of_indexed_version;
        let known = report
            .events
            .iter()
            .all(|event| event.reason != Reason::HashGenerationUnknown);
        let front_end = kind.contains(InstrKind::FRONT_END);
        if front_end && known && scheme(options.version) != scheme(fitting) {
            push_once(
                notes,
                format!(
                    "functions are hashed as for indexed version {fitting}, but a compiler takes version {} to mean other hashes: clang -fprofile-instr-use will not find them",
                    options.version
                ),
            );
        }
        match self.form {
            Form::MemProfYaml => Encoding::MemProfYaml(options),
            _ => Encoding::Indexed(options.sparse(self.sparse)),
        }
    }

    /// Puts heap profiles into the MemProf section of the result, in a version that its readers know.
    fn place_memprof(
        &self,
        profile: &mut InstrProfile,
        options: &IndexedWriteOptions,
    ) -> Result<()> {
        let job = self.memprof.as_ref();
        let loaded = job.and_then(|job| job.loaded.as_ref());
        let asked = job.and_then(|job| job.version);
        let read = profile.memprof.as_ref().map(read_section);
        let known = |version: u32| options.known_memprof.contains(&u64::from(version));
        let fits = matches!(&read, Some(Ok((_, version))) if known(*version));
        if loaded.is_none() && (read.is_none() || (fits && asked.is_none())) {
            return Ok(());
        }
        let mut sum = MemProfSum::new(ContextRule::Add);
        match read {
            Some(Ok((profile, _))) => sum.add(&profile),
            // Alone it is carried, or dropped and told.
            Some(Err(_)) if loaded.is_none() => return Ok(()),
            Some(Err(error)) => return Err(Failure::input(&error)),
            None => {}
        }
        if let Some(loaded) = loaded {
            sum.add(&loaded.profile);
        }
        let release = match self.form {
            Form::Indexed(Version::Release(release)) => Some(release),
            _ => None,
        };
        let full = job.is_some_and(|job| job.full_schema);
        let section = match (asked, release) {
            (Some(version), _) if !known(version) => {
                return Err(Failure::usage(format_args!(
                    "--memprof-version {version}: no LLVM that reads indexed version {} reads it",
                    options.version
                )));
            }
            (Some(version), release) => {
                let options = IndexedMemProfOptions::for_version(version, full);
                Some(match release {
                    Some(release) if release.major <= LAST_COMBINED_IDS => {
                        options.ids(IdScheme::Combined)
                    }
                    _ => options,
                })
            }
            (None, Some(release)) => {
                IndexedMemProfOptions::for_llvm(release).map(|options| match full {
                    true => {
                        IndexedMemProfOptions::for_version(options.version, true).ids(options.ids)
                    }
                    false => options,
                })
            }
            (None, None) => [3, 4, 2, 0]
                .into_iter()
                .find(|&version| known(version))
                .map(|version| IndexedMemProfOptions::for_version(version, full)),
        };
        let Some(section) = section else {
            return Err(Failure::input(format_args!(
                "indexed version {} has no place for heap profiles",
                options.version
            ))
            .with_hint("LLVM 15 is the oldest release whose indexed profiles have them"));
        };
        let whole = sum.finish();
        let whole = match section.ids {
            IdScheme::Combined => whole.in_order_of_llvm_19(),
            IdScheme::Blake3 => whole,
        };
        let section = encode(&whole, &section).map_err(|error| Failure::input(&error))?;
        profile.memprof = Some(section);
        Ok(())
    }

    /// Ends a merge that has no result, saying why for each input.
    fn nothing_merged(&self, error: &MergeError, notes: &[String]) -> Result {
        match error {
            // Hints of single inputs are printed with them.
            MergeError::NothingLeft(report) => {
                self.tell(report, notes, &[], true)?;
                Err(Failure::input(error))
            }
            _ => Err(match error.hint() {
                Some(hint) => Failure::input(error).with_hint(hint),
                None => Failure::input(error),
            }),
        }
    }

    /// Prints the report, which `--quiet` does not keep from saying why there is no result, and writes it as JSON where
    /// that was asked for.
    fn tell(
        &self,
        report: &Report,
        notes: &[String],
        outputs: &[Written],
        print: bool,
    ) -> Result<()> {
        let full = FullReport {
            report,
            correlation: self.correlation.as_ref(),
            correlation_printed: self.correlation_told,
            notes,
            outputs,
        };
        full.put(print, self.report.report.as_deref())
    }
}

impl MemProfJob {
    /// Adds what there is to tell to the report of the merge.
    fn tell(&self, report: &mut Report) {
        let Some(loaded) = &self.loaded else {
            return;
        };
        report.absorb(loaded.report.clone());
    }
}

fn push_once(notes: &mut Vec<String>, note: String) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}

/// The file name of a program's profile: its build id. Files of several programs (an executable and its libraries)
/// have the first id, how many more there are, and a hash of all.
fn program_name(ids: &[BuildId], content: Content) -> String {
    let extension = match content {
        Content::Binary => "profdata",
        Content::Text => "proftext",
    };
    match ids {
        [] => format!("no-build-id.{extension}"),
        [id] => format!("{id}.{extension}"),
        [first, rest @ ..] => {
            let all: Vec<_> = ids.iter().map(ToString::to_string).collect();
            let NameRef(hash) = NameRef::of(all.join(" ").as_bytes());
            format!("{first}+{}-{hash:016x}.{extension}", rest.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_differ_if_any_id_does() {
        let name = |ids: &[u8]| {
            let ids: Vec<_> = ids.iter().map(|&id| BuildId(vec![id, 0xb0])).collect();
            program_name(&ids, Content::Binary)
        };
        assert_eq!(name(&[]), "no-build-id.profdata");
        assert_eq!(name(&[1]), "01b0.profdata");
        assert_eq!(name(&[1, 2]), "01b0+1-05f762d1a48dcb66.profdata");
        assert_ne!(name(&[1, 2]), name(&[1, 3]));
        assert_eq!(program_name(&[], Content::Text), "no-build-id.proftext");
    }
}
