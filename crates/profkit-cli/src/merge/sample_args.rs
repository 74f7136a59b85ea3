//! Arguments of `profkit merge` and `profkit convert` for sample profiles.
use super::args::{MergeArgs, VersionArgs};
use crate::choice::{choice, choices};
use crate::exit::{Failure, Result};
use clap::{Args, ValueEnum};
use profkit_data::sample::{FsPass, SampleForm, SampleReadOptions};
use std::path::PathBuf;

/// The options for merging and writing sample profiles.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sample profiles")]
pub struct SampleArgs {
    /// Change the layout: nest puts inlined functions below their callers; flat gives every function one entry of its
    /// own
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub(super) layout: Option<Layout>,

    /// Merge calling contexts with few samples if their last N frames are the same
    #[arg(long, value_name = "N")]
    pub(super) merge_cold_contexts: Option<usize>,

    /// Drop calling contexts with few samples
    #[arg(long)]
    pub(super) trim_cold_contexts: bool,

    /// Keep only the discriminator bits of FS-AFDO passes up to this one
    #[arg(long, value_parser = choice(PASSES), value_name = "PASS")]
    pub(super) fs_discriminator_pass: Option<FsPass>,

    /// Read text, binary and compact binary profiles as FS-AFDO profiles; these encodings have no flag that marks such
    /// profiles
    #[arg(long)]
    pub(super) assume_fs: bool,

    /// Write the hashes of names instead of names (extbinary; compact-binary always does)
    #[arg(long)]
    pub(super) md5_names: bool,

    /// Compress all sections (extbinary)
    #[arg(long)]
    pub(super) compress: bool,

    /// Put functions without inlined functions into sections of their own (extbinary)
    #[arg(long)]
    pub(super) split_layout: bool,

    /// Mark the profile as partial: its code is shared by several programs (extbinary)
    #[arg(long)]
    pub(super) partial: bool,

    /// Add the names of this file, one per line, to the list of the program's symbols
    #[arg(long, value_name = "FILE")]
    pub(super) symbol_list: Option<PathBuf>,

    /// Leave out the list of the program's symbols
    #[arg(long)]
    pub(super) drop_symbol_list: bool,

    /// Drop the functions with the fewest samples until the profile has at most this size
    #[arg(long, value_name = "BYTES")]
    pub(super) size_limit: Option<u64>,

    /// Write a profile that this GCC release reads, such as 12 (gcov)
    #[arg(long, value_name = "N", value_parser = profkit_report::typed::between(5_u32, 16))]
    pub(super) gcc: Option<u32>,
}

impl SampleArgs {
    pub(super) fn read_options(&self) -> SampleReadOptions {
        let pass = self.fs_discriminator_pass.unwrap_or_default();
        SampleReadOptions::new()
            .fs_pass(pass)
            .assume_fs(self.assume_fs)
    }

    pub fn refuse(&self) -> Result<()> {
        let given = [
            (self.layout.is_some(), "--layout"),
            (self.merge_cold_contexts.is_some(), "--merge-cold-contexts"),
            (self.trim_cold_contexts, "--trim-cold-contexts"),
            (
                self.fs_discriminator_pass.is_some(),
                "--fs-discriminator-pass",
            ),
            (self.assume_fs, "--assume-fs"),
            (self.md5_names, "--md5-names"),
            (self.compress, "--compress"),
            (self.split_layout, "--split-layout"),
            (self.partial, "--partial"),
            (self.symbol_list.is_some(), "--symbol-list"),
            (self.drop_symbol_list, "--drop-symbol-list"),
            (self.size_limit.is_some(), "--size-limit"),
            (self.gcc.is_some(), "--gcc"),
        ];
        match given.iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(Failure::usage(format_args!(
                "{option} works only with sample profiles, and the inputs are not sample profiles"
            ))),
            None => Ok(()),
        }
    }

    pub fn refuse_for(&self, form: SampleForm) -> Result<()> {
        let has_hashes = form == SampleForm::CompactBinary;
        let given = [
            (self.md5_names && !has_hashes, "--md5-names"),
            (self.compress, "--compress"),
            (self.split_layout, "--split-layout"),
            (self.partial, "--partial"),
        ];
        match given.iter().find(|(given, _)| *given) {
            Some((_, option)) if form != SampleForm::ExtBinary => {
                Err(Failure::usage(format_args!(
                    "{option} works only with the encoding extbinary, and the output is {}",
                    form.name()
                ))
                .with_hint(format_args!("write extbinary, or leave out {option}")))
            }
            _ => Ok(()),
        }
    }
}

/// Fails if an option of `profkit merge` was given that has no effect on sample profiles; called when the inputs are
/// sample profiles.
pub fn refuse_others(args: &MergeArgs) -> Result<()> {
    refuse_version(&args.form.version)?;
    let binaries = &args.correlation;
    let memprof_version = args.memprof_version.is_some();
    refuse_given(&[
        (args.normalize, "--normalize", "instrumentation"),
        (args.sparse, "--sparse", "instrumentation"),
        (args.mixed_hashes, "--mixed-hashes", "instrumentation"),
        (memprof_version, "--memprof-version", "heap"),
        (args.memprof_full_schema, "--memprof-full-schema", "heap"),
        (args.portable, "--portable", "heap"),
        (!binaries.binaries.is_empty(), "--binaries", "raw"),
        (binaries.debuginfod, "--debuginfod", "raw"),
    ])
}

pub fn refuse_version(args: &VersionArgs) -> Result<()> {
    let is_given = args.indexed_version.is_some();
    refuse_given(&[(is_given, "--indexed-version", "instrumentation")])
}

fn refuse_given(options: &[(bool, &str, &str)]) -> Result<()> {
    match options.iter().find(|(given, ..)| *given) {
        Some((_, option, profiles)) => Err(Failure::usage(format_args!(
            "{option} works only with {profiles} profiles, and the inputs are sample profiles"
        ))),
        None => Ok(()),
    }
}

choices! {
    /// The last pass of FS-AFDO whose discriminator bits are kept. The fourth pass needs no word: without the option, the
    /// bits of all four passes are kept.
    PASSES: FsPass =
        "base" => FsPass::Base, "Only the discriminator bits that were set before the first pass of FS-AFDO";
        "pass1" => FsPass::Pass1, "The first pass";
        "pass2" => FsPass::Pass2, "The second pass";
        "pass3" => FsPass::Pass3, "The third pass";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// Inlined functions are below their callers; there are no calling contexts
    Nest,
    /// Every function has one entry
    Flat,
}
