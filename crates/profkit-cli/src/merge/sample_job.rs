//! Merges and converts sample profiles.
use super::args::Format;
use super::filter::{Cut, too_small};
use super::run::{MergeJob, NoResult, Remarks, StagedProfile, refuse_losses};
use super::sample_args::{Layout, SampleArgs};
use super::stable::StableJob;
use super::write::write_part;
use crate::call;
use crate::exit::{Failure, Result};
use profkit_data::detect::{FileKind, detect};
use profkit_data::releases::Release;
use profkit_data::remap::Remapping;
use profkit_data::sample::gcov::{GcovProfile, GcovVersion};
use profkit_data::sample::{
    ColdContexts, FormOptions, SampleForm, SampleLayout, SampleProfile, add_symbols,
};
use profkit_data::summary::Thresholds;
use profkit_merge::files::{Content, read_into};
use profkit_merge::part::Merger;
use profkit_merge::sample::{SampleMergeOptions, merge_sample};
use profkit_merge::{Inputs, NameFilter, Report, RunOptions};
use profkit_report::merge::{Written, left_out, sample_losses};
use std::fmt;
use std::path::{Path, PathBuf};

pub fn is_sample(data: &[u8]) -> bool {
    detect(data).is_sample()
}

/// Returns the encoding that the format, the LLVM release or the GCC release asks for.
pub fn form(format: Option<Format>, llvm: Option<Release>, gcc: Option<u32>) -> Result<SampleForm> {
    let version = match gcc {
        Some(release) => Some(GcovVersion::of_gcc(release).ok_or_else(|| {
            Failure::usage(format_args!(
                "--gcc {release}: GCC 5 is the first release that reads sample profiles"
            ))
        })?),
        None => None,
    };
    Ok(match (format, version) {
        (Some(Format::Gcov), None) if llvm.is_some() => SampleForm::Gcov(GcovVersion::OF_LLVM),
        (Some(Format::Gcov), version) => SampleForm::Gcov(version.unwrap_or(GcovVersion::V2)),
        (None, Some(version)) => SampleForm::Gcov(version),
        (Some(_), Some(_)) => {
            return Err(Failure::usage(
                "--gcc chooses a version of the gcov encoding; other encodings have no version",
            ));
        }
        (Some(Format::Indexed | Format::MemprofYaml), None) => {
            return Err(Failure::usage(
                "the inputs are sample profiles: they cannot be written as indexed or memprof-yaml",
            )
            .with_hint(
                "choose extbinary, which LLVM writes, or text, binary, compact-binary, gcov",
            ));
        }
        (Some(Format::Text), None) => SampleForm::Text,
        (Some(Format::Extbinary), None) => SampleForm::ExtBinary,
        (Some(Format::Binary), None) => SampleForm::Binary,
        (Some(Format::CompactBinary), None) => SampleForm::CompactBinary,
        (None, None) => SampleForm::for_llvm(llvm),
    })
}

fn format_name(form: SampleForm) -> &'static str {
    match form {
        SampleForm::Text => "sample text",
        form => form.name(),
    }
}

pub struct SampleJob<'a> {
    pub args: &'a SampleArgs,
    pub form: SampleForm,
    /// The LLVM release that shall be able to read the result; `None` if the user did not name one.
    pub llvm: Option<Release>,
    pub output: PathBuf,
    pub strict: bool,
    pub run: RunOptions,
    pub order_free: bool,
    /// Whether a part of a merge is written.
    pub part: bool,
    /// The table of new names for functions; `None` if functions are not renamed.
    pub remapping: Option<Remapping>,
    /// The filter that selects functions by name; `None` if all functions are kept.
    pub filter: Option<NameFilter>,
    /// The input, if there is only one and the input and the output both have GCC's encoding; otherwise `None`. The
    /// output keeps the file names of this input.
    pub only_gcov: Option<GcovProfile>,
    /// What is cut from the result; `None` if nothing is.
    pub cut: Option<Cut>,
    /// How the result is made stable; `None` if it is not.
    pub stable: Option<StableJob>,
}

impl fmt::Debug for SampleJob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleJob")
            .field("form", &self.form)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

impl MergeJob for SampleJob<'_> {
    /// The profile, and the bytes of the part if one is written.
    type Merged<'i> = (SampleProfile, Option<Vec<u8>>);

    fn output(&self) -> Option<&Path> {
        Some(&self.output)
    }

    fn check(&mut self) -> Result<()> {
        Ok(call::output(&self.output, self.content()).map(drop)?)
    }

    fn merge(
        &mut self,
        inputs: &dyn Inputs,
    ) -> std::result::Result<(Self::Merged<'_>, Report), NoResult> {
        if self.part {
            let mut merger = Merger::of_samples(self.options())?;
            merger.add(inputs)?;
            let part = merger.encode()?;
            let outcome = merger.finish_samples()?;
            return Ok(((outcome.profile, Some(part)), outcome.report));
        }
        // The names of source files must not be in a redacted profile, and are paths of the machine.
        let is_redacted = self.cut.as_ref().is_some_and(Cut::is_redacting);
        let keeps_paths = !is_redacted && self.stable.is_none();
        if keeps_paths && matches!(self.form, SampleForm::Gcov(_)) && inputs.len() == 1 {
            // An input that cannot be read or parsed is reported by the merge.
            let _ = inputs.look_at(0, &mut |bytes| {
                if detect(bytes) == FileKind::SampleGcov {
                    self.only_gcov = GcovProfile::parse(bytes).ok();
                }
            });
        }
        let outcome = merge_sample(inputs, &self.options())?;
        Ok(((outcome.profile, None), outcome.report))
    }

    fn encode(
        &mut self,
        (mut profile, part): Self::Merged<'_>,
        _: &Report,
        remarks: &mut Remarks,
    ) -> Result<Vec<StagedProfile>> {
        let name = profkit_data::path_text(&self.output);
        let output = call::output(&self.output, self.content())?;
        if let Some(part) = part {
            let functions = profile.functions().len() as u64;
            return Ok(vec![write_part(output, &part, functions, Vec::new())?]);
        }
        self.symbols(&mut profile)?;
        if let Some(cut) = &self.cut {
            remarks.filtered.push(cut.samples(&mut profile));
            cut.check_rest(&name, remarks)?;
        }
        if let Some(stable) = &self.stable {
            stable.samples(&mut profile, self.strict, &mut remarks.notes)?;
        }
        if self.form.nest_contexts(&mut profile) {
            let nested = format!(
                "calling contexts were turned into nested functions, because {} cannot represent contexts",
                self.form.name()
            );
            refuse_losses(&name, std::slice::from_ref(&nested), self.strict)?;
            remarks.notes.push(nested);
        }
        let (bytes, losses) = self.bytes_of(&mut profile)?;
        if let Some(filtered) = remarks.filtered.first_mut() {
            filtered.note_size(&profile);
        }
        refuse_losses(&name, &losses, self.strict)?;
        let functions = profile.functions().len() as u64;
        // The process ends soon: freeing each piece would take a tenth of the whole time.
        std::mem::forget(profile);
        let written = Written {
            path: name,
            format: format_name(self.form),
            functions,
            losses,
            ..Written::default()
        };
        let file = output.stage(|sink| sink.put(&bytes))?;
        Ok(vec![StagedProfile { file, written }])
    }
}

impl SampleJob<'_> {
    fn content(&self) -> Content {
        match self.form {
            SampleForm::Text if !self.part => Content::Text,
            _ => Content::Binary,
        }
    }

    fn options(&self) -> SampleMergeOptions {
        let mut options = SampleMergeOptions::new();
        options.read = self.args.read_options();
        options.run = self.run.clone();
        options.order_free = self.order_free;
        options.remapping.clone_from(&self.remapping);
        options.filter.clone_from(&self.filter);
        options.drop_symbols = self.args.drop_symbol_list;
        let (trim, depth) = (self.args.trim_cold_contexts, self.args.merge_cold_contexts);
        options.cold = (trim || depth.is_some()).then(|| ColdContexts {
            trim,
            merge: depth.is_some(),
            depth: depth.unwrap_or(1),
            thresholds: Thresholds::default(),
        });
        options.layout = self.args.layout.map(|layout| match layout {
            Layout::Nest => SampleLayout::Nest,
            Layout::Flat => SampleLayout::Flat,
        });
        options
    }

    fn symbols(&self, profile: &mut SampleProfile) -> Result<()> {
        let Some(path) = &self.args.symbol_list else {
            return Ok(());
        };
        let mut buffer = Vec::new();
        let map = read_into(path, &mut buffer).map_err(|error| {
            Failure::io("cannot be read", profkit_data::path_text(path), &error)
        })?;
        add_symbols(profile, map.as_deref().unwrap_or(&buffer));
        Ok(())
    }

    /// Encodes the profile. If the user set a size limit, functions are dropped until the encoded profile is not larger
    /// than this limit. Also returns messages about losses.
    fn bytes_of(&self, profile: &mut SampleProfile) -> Result<(Vec<u8>, Vec<String>)> {
        let name = profkit_data::path_text(&self.output);
        let mut options = FormOptions::for_profile(profile).for_llvm(self.llvm);
        let args = self.args;
        options.ext_binary = options
            .ext_binary
            .md5_names(args.md5_names)
            .compress(args.compress)
            .split_layout(args.split_layout)
            .partial(args.partial);
        options.gcov_like.clone_from(&self.only_gcov);
        let encoded = self.form.encode(profile, &options, args.size_limit);
        let encoded = encoded.map_err(|error| Failure::file(&name, &error))?;
        let Some(bytes) = encoded.bytes else {
            let limit = args.size_limit.unwrap_or_default();
            return Err(too_small(&name, limit));
        };
        let mut losses = sample_losses(&encoded.losses, self.form, self.llvm);
        // The report of a cut says it too.
        if encoded.dropped > 0 && self.cut.is_none() {
            losses.push(left_out(
                encoded.dropped,
                "functions, to stay within the size limit",
            ));
        }
        Ok((bytes, losses))
    }
}
