//! Merges and writes instrumentation profiles, and heap profiles that are among the same inputs.
use super::args::{Format, VersionArgs};
use super::filter::Cut;
use super::run::{MergeJob, NoResult, Remarks, StagedProfile};
use super::stable;
use super::stable::StableJob;
use super::supplement::Supplement;
use super::write::{Encoding, heap_contexts, write_part, write_profile};
use crate::call;
use crate::exit::{Failure, Result};
use crate::print::grouped;
use profkit_analysis::doctor;
use profkit_analysis::heap::{ProgramFrames, complete_section};
use profkit_analysis::instr::{fit_to_release, fits_release};
use profkit_data::ids::program_name;
use profkit_data::instr::indexed::IndexedWriteOptions;
use profkit_data::instr::text::TextOptions;
use profkit_data::instr::{InstrKind, InstrProfile};
use profkit_data::memprof::MemProfile;
use profkit_data::releases::{FrontEndScheme, Release};
use profkit_merge::files::{Content, Output, check_outputs};
use profkit_merge::memprof::{HeapParts, SectionChoice, SectionError, place_section};
use profkit_merge::part::Merger;
use profkit_merge::{
    Inputs, Joined, MergeOptions, MergedProfile, Reason, Report, merge_indexed, merge_instr,
};
use profkit_report::doctor::record_remarks;
use profkit_report::heap::completed_notes;
use profkit_report::merge::fitted_notes;
use std::fs;
use std::path::{Path, PathBuf};

/// The oldest indexed version that can be written (LLVM 3.8).
const OLDEST_WRITTEN: u32 = 3;
/// The indexed version for which the functions of a text are joined.
const VERSION_OF_TEXT: u32 = 13;
/// The largest number of inputs that a note names.
const MOST_NAMED: usize = 5;

pub struct Job<'a> {
    pub options: MergeOptions,
    pub section: SectionChoice,
    pub symbolize: &'a Symbolize<'a>,
    /// Looks in the named binaries for frames of heap profiles that have no name or source line; `None` if no binary is
    /// named.
    pub programs: Option<&'a FindFrames<'a>>,
    /// The sample profile that corrects the merged profile; `None` if the merged profile is not corrected.
    pub supplement: Option<Supplement>,
    /// Whether functions that never ran are left out.
    pub sparse: bool,
    pub form: Form,
    pub destination: Destination,
    pub report: Option<PathBuf>,
    pub strict: bool,
    /// The names of the inputs.
    pub names: Vec<String>,
    /// What is cut from the result; `None` if nothing is.
    pub cut: Option<Cut>,
    /// How the result is made stable; `None` if it is not.
    pub stable: Option<StableJob>,
}

pub type FindFrames<'a> = dyn Fn(&MemProfile) -> ProgramFrames + 'a;

pub type Symbolize<'a> = dyn Fn(&HeapParts, &Report, &mut Remarks) -> Result<MemProfile> + 'a;

#[derive(Debug)]
pub enum Destination {
    File(PathBuf),
    Folder(PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The text format that this LLVM release can read; `None` is the newest release.
    Text(Option<Release>),
    Indexed(Version),
    MemProfYaml,
    /// A part of a merge.
    Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The newest version that fits the LLVM release that wrote the inputs.
    Fitting,
    Exact(u32),
    /// A version that this LLVM release can read.
    Release(Release),
}

impl Form {
    pub fn new(format: Format, args: &VersionArgs) -> Result<Self> {
        if !matches!(format, Format::Text | Format::Indexed | Format::MemprofYaml) {
            return Err(Failure::usage(
                "the inputs are not sample profiles: they can be written as indexed, text or memprof-yaml",
            ));
        }
        let version = match (args.indexed_version, args.llvm) {
            (None, None) => Version::Fitting,
            (None, Some(release)) if format == Format::Text => {
                return Ok(Form::Text(Some(release)));
            }
            (Some(_), _) if format != Format::Indexed => {
                return Err(Failure::usage(
                    "--indexed-version chooses a version of the indexed format; text and YAML have none",
                )
                .with_hint("for a text profile that LLVM N reads, write --llvm N --text"));
            }
            (None, Some(_)) if format == Format::MemprofYaml => {
                return Err(Failure::usage(
                    "--llvm chooses a version of the indexed format or of text; MemProf YAML has none",
                )
                .with_hint("leave out --llvm"));
            }
            (Some(version), _) => Version::Exact(version),
            (None, Some(release)) => {
                let newest = release.facts().map_or(0, |facts| facts.indexed);
                if newest < OLDEST_WRITTEN {
                    return Err(Failure::usage(format_args!(
                        "--llvm {release}: this release reads indexed versions up to {newest}, but the oldest version that profkit writes is {OLDEST_WRITTEN}"
                    ))
                    .with_hint("the oldest release that profkit can write for is LLVM 3.8"));
                }
                Version::Release(release)
            }
        };
        match format {
            Format::Text => Ok(Form::Text(None)),
            Format::MemprofYaml => Ok(Form::MemProfYaml),
            _ => Ok(Form::Indexed(version)),
        }
    }

    fn content(self) -> Content {
        match self {
            Form::Text(_) | Form::MemProfYaml => Content::Text,
            Form::Indexed(_) | Form::Part => Content::Binary,
        }
    }
}

pub struct Merged<'i> {
    profiles: Vec<MergedProfile>,
    /// The functions of the only profile, if they are joined while it is written.
    joined: Option<(Joined<'i>, doctor::Remarks)>,
    heap_parts: Option<HeapParts>,
    heap: Option<MemProfile>,
    /// The bytes of the part, if one is written.
    part: Option<Vec<u8>>,
}

impl MergeJob for Job<'_> {
    type Merged<'i> = Merged<'i>;

    fn output(&self) -> Option<&Path> {
        match &self.destination {
            Destination::File(path) => Some(path),
            Destination::Folder(_) => None,
        }
    }

    fn check(&mut self) -> Result<()> {
        match &self.destination {
            Destination::File(path) => call::output(path, self.form.content()).map(drop)?,
            Destination::Folder(folder) => fs::create_dir_all(folder).map_err(|error| {
                Failure::io(
                    "the folder cannot be made",
                    profkit_data::path_text(folder),
                    &error,
                )
            })?,
        }
        Ok(())
    }

    fn merge<'i>(
        &mut self,
        inputs: &'i dyn Inputs,
    ) -> std::result::Result<(Merged<'i>, Report), NoResult> {
        // A text has no version: for joining, any that has all parts will do.
        let version = match self.form {
            Form::Indexed(version) => Some(version),
            Form::Text(None) if !self.sparse => Some(Version::Exact(VERSION_OF_TEXT)),
            Form::Text(_) | Form::MemProfYaml | Form::Part => None,
        };
        let mut part = None;
        let (outcome, joined) = match version {
            None if self.form == Form::Part => {
                let mut merger = Merger::of_instr(self.options.clone())?;
                merger.add(inputs)?;
                part = Some(merger.encode()?);
                (merger.finish_instr()?, None)
            }
            Some(version) if self.keeps_functions(version) => {
                let write = |fitting| self.write_options(version, fitting);
                let merge = merge_indexed(inputs, &self.options, &write)?;
                (merge.outcome, merge.joined)
            }
            _ => (merge_instr(inputs, &self.options)?, None),
        };
        let merged = Merged {
            profiles: outcome.profiles,
            joined,
            heap_parts: outcome.heap,
            heap: None,
            part,
        };
        Ok((merged, outcome.report))
    }

    fn complete(
        &mut self,
        merged: &mut Merged<'_>,
        report: &Report,
        remarks: &mut Remarks,
    ) -> Result<()> {
        // A part has addresses, which the merge that finishes it symbolises.
        if self.form == Form::Part {
            return Ok(());
        }
        let Some(parts) = merged.heap_parts.take() else {
            return Ok(());
        };
        if matches!(self.destination, Destination::Folder(_)) {
            return Err(Failure::usage(
                "--by-build-id writes one profile per program, but a heap profile can be of several programs",
            )
            .with_hint("merge heap profiles with -o FILE"));
        }
        merged.heap = Some((self.symbolize)(&parts, report, remarks)?);
        Ok(())
    }

    fn encode(
        &mut self,
        merged: Merged<'_>,
        report: &Report,
        remarks: &mut Remarks,
    ) -> Result<Vec<StagedProfile>> {
        if let Some(part) = merged.part {
            let mut profiles = merged.profiles.into_iter();
            let one = profiles.next().unwrap_or_default();
            let output = self.open(&one)?;
            let tables = one.profile.tables.iter();
            let functions = tables.map(|table| table.record_count() as u64).sum();
            let ids = one.profile.binary_ids.iter().map(ToString::to_string);
            let mut staged = write_part(output, &part, functions, ids.collect())?;
            let heap = merged.heap_parts.as_ref().map(HeapParts::context_count);
            let section = one.profile.memprof.as_ref().and_then(heap_contexts);
            staged.written.contexts = Some(heap.unwrap_or(0) + section.unwrap_or(0));
            return Ok(vec![staged]);
        }
        let mut ready = Vec::with_capacity(merged.profiles.len());
        for mut one in merged.profiles {
            let notes = &mut remarks.notes;
            let cut = self.cut.as_ref();
            let functions = cut.map(|cut| (cut, cut.functions(&mut one.profile)));
            if let Some(supplement) = &self.supplement {
                supplement.correct(&mut one.profile, notes);
            }
            if let Some(stable) = &self.stable {
                if merged.heap.is_some() || one.profile.memprof.is_some() {
                    return Err(stable::no_heap());
                }
                stable.functions(&mut one.profile, self.strict, notes)?;
            }
            notes.extend(self.note_without_build_id(&one));
            if let Form::Indexed(Version::Release(release)) | Form::Text(Some(release)) = self.form
            {
                let fitted = fit_to_release(&mut one.profile, release, report.oldest_ir_scheme);
                notes.extend(fitted_notes(&fitted, release));
            }
            let joined = merged.joined.as_ref();
            let seen = match joined {
                Some((_, seen)) => seen.for_kind(one.profile.kind),
                None => doctor::Remarks::of(&one.profile),
            };
            let kept = record_remarks(&seen);
            notes.extend(kept.into_iter().map(|remark| format!("kept: {remark}")));
            let joined = joined.map(|(joined, _)| joined);
            let encoding = self.encoding(report, (&one.profile, joined), notes);
            if self.section.portable {
                self.check_portable(&one.profile, merged.heap.as_ref())?;
            }
            if let Encoding::Indexed(options) | Encoding::MemProfYaml(options) = &encoding {
                let choice = match self.form {
                    Form::Indexed(Version::Release(release)) => self.section.release(Some(release)),
                    _ => self.section,
                };
                // YAML has all fields, and leaves out those that are not known.
                let choice = match encoding {
                    Encoding::MemProfYaml(_) => choice.unknown_densities(true).full_schema(true),
                    _ => choice,
                };
                let heap = merged.heap.as_ref();
                place_section(&mut one.profile, heap, options, choice).map_err(|error| {
                    let failure = match error {
                        SectionError::UnknownVersion { .. } => Failure::usage(&error),
                        _ => Failure::input(&error),
                    };
                    failure.with_hints(error.hint())
                })?;
            }
            if let Some(section) = &mut one.profile.memprof
                && let Some(find) = self.programs
                && let Some(done) = complete_section(section, find)
            {
                notes.extend(completed_notes(&done));
            }
            let output = self.open(&one)?;
            if let Some((cut, functions)) = functions {
                let name = output.name().to_owned();
                cut.rest(&mut one.profile, functions, &encoding, &name, remarks)?;
            }
            ready.push(write_profile(
                output,
                (&one.profile, joined),
                merged.heap.as_ref(),
                &encoding,
                &self.options.run.threads,
                self.strict,
            )?);
        }
        Ok(ready)
    }
}

impl Job<'_> {
    /// Whether the functions of the result are written as the merge adds them up: then they need not be in memory.
    fn keeps_functions(&self, version: Version) -> bool {
        self.supplement.is_none()
            && self.cut.is_none()
            && self.stable.is_none()
            && match version {
                Version::Release(release) => fits_release(release),
                Version::Fitting | Version::Exact(_) => true,
            }
    }

    /// The options of the writer. `fitting` is the indexed version that suits the inputs.
    fn write_options(&self, version: Version, fitting: u32) -> IndexedWriteOptions {
        let options = match version {
            Version::Fitting => IndexedWriteOptions::for_version(fitting),
            Version::Exact(version) => IndexedWriteOptions::for_version(version),
            Version::Release(release) => IndexedWriteOptions::for_llvm(release),
        };
        options.sparse(self.sparse)
    }

    fn open(&self, merged: &MergedProfile) -> Result<Output> {
        let content = self.form.content();
        Ok(match &self.destination {
            Destination::File(path) => call::output(path, content)?,
            Destination::Folder(folder) => {
                let extension = match content {
                    Content::Binary => "profdata",
                    Content::Text => "proftext",
                };
                let name = format!("{}.{extension}", program_name(&merged.build_ids));
                let path = folder.join(name);
                let report = self.report.as_deref();
                let outputs = [("the profile", Some(&*path)), ("the report", report)];
                check_outputs(&outputs, [""; 0])?;
                Output::new(&path, content)?
            }
        })
    }

    /// Says which inputs of `--by-build-id` have no build id: they may be of several programs.
    fn note_without_build_id(&self, one: &MergedProfile) -> Option<String> {
        let is_folder = matches!(self.destination, Destination::Folder(_));
        if !is_folder || !one.build_ids.is_empty() || one.inputs.len() < 2 {
            return None;
        }
        let first = one.inputs.iter().take(MOST_NAMED);
        let first: Vec<_> = first.filter_map(|&index| self.names.get(index)).collect();
        let first: Vec<_> = first.into_iter().map(String::as_str).collect();
        let more = match one.inputs.len() - first.len() {
            0 => String::new(),
            more => format!(" and {} more", grouped(more)),
        };
        Some(format!(
            "{} of the inputs have no build id, and are in one profile even if they are of several programs: {}{more}; link with -Wl,--build-id",
            grouped(one.inputs.len()),
            first.join(", ")
        ))
    }

    /// Refuses `--portable` for a result that cannot have a portable section.
    fn check_portable(&self, profile: &InstrProfile, heap: Option<&MemProfile>) -> Result<()> {
        if !matches!(self.form, Form::Indexed(_)) {
            return Err(Failure::usage(
                "--portable adds a section to indexed profiles; text and YAML cannot have it",
            )
            .with_hint("leave out --portable, or write the indexed format"));
        }
        if heap.is_none() && profile.memprof.is_none() {
            return Err(Failure::input(
                "--portable is for heap profiles, but the inputs hold none",
            )
            .with_hint("leave out --portable"));
        }
        Ok(())
    }

    fn encoding(
        &self,
        report: &Report,
        (profile, joined): (&InstrProfile, Option<&Joined<'_>>),
        notes: &mut Vec<String>,
    ) -> Encoding {
        let version = match self.form {
            Form::Indexed(version) => version,
            Form::MemProfYaml | Form::Part => Version::Fitting,
            Form::Text(release) => {
                let options = TextOptions::default().sparse(self.sparse).readable(true);
                return Encoding::Text(match release {
                    Some(release) => options.for_llvm(release),
                    None => options,
                });
            }
        };
        let fitting = report.suggested_indexed_version;
        let options = self.write_options(version, fitting);
        let scheme = FrontEndScheme::of_indexed_version;
        let known = report
            .events
            .iter()
            .all(|event| event.reason != Reason::HashGenerationUnknown);
        let mut tables = profile.tables.iter();
        let has_functions = tables.any(|table| table.function_count() > 0)
            || joined.is_some_and(|joined| joined.function_count() > 0);
        let front_end = profile.kind.contains(InstrKind::FRONT_END) && has_functions;
        if front_end && known && scheme(options.version) != scheme(fitting) {
            push_once(
                notes,
                format!(
                    "the function hashes are those of indexed version {fitting}, but compilers expect other hashes in version {}: clang -fprofile-instr-use will not find the functions",
                    options.version
                ),
            );
        }
        match self.form {
            Form::MemProfYaml => Encoding::MemProfYaml(options),
            _ => Encoding::Indexed(options),
        }
    }
}

fn push_once(notes: &mut Vec<String>, note: String) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}
