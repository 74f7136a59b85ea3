//! Arguments of `profkit merge` and `profkit convert` for sample profiles.
use crate::exit::{Failure, Result};
use clap::{Args, ValueEnum};
use profkit_data::sample::{FsPass, SampleReadOptions};
use std::path::PathBuf;

/// How sample profiles are merged and written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sample profiles")]
pub struct SampleArgs {
    /// Change the layout: nest puts functions below those that they were inlined into, flat lays each out for itself
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub(super) layout: Option<Layout>,

    /// Add up contexts with few samples by their last N frames
    #[arg(long, value_name = "N")]
    pub(super) merge_cold_contexts: Option<usize>,

    /// Drop contexts with few samples
    #[arg(long)]
    pub(super) trim_cold_contexts: bool,

    /// Cut discriminators of FS-AFDO profiles to the bits of the passes up to this one
    #[arg(long, value_enum, value_name = "PASS")]
    pub(super) fs_discriminator_pass: Option<Pass>,

    /// Take text, binary and compact binary profiles, which cannot say it themselves, for ones of FS-AFDO
    #[arg(long)]
    pub(super) assume_fs: bool,

    /// Write the hashes of names instead of names (extbinary)
    #[arg(long)]
    pub(super) md5_names: bool,

    /// Compress all sections (extbinary)
    #[arg(long)]
    pub(super) compress: bool,

    /// Keep functions without inlined ones in sections of their own (extbinary)
    #[arg(long)]
    pub(super) split_layout: bool,

    /// Mark the profile as one of code that several programs share (extbinary)
    #[arg(long)]
    pub(super) partial: bool,

    /// Add the names of this file, one per line, to the list of the program's symbols
    #[arg(long, value_name = "FILE")]
    pub(super) symbol_list: Option<PathBuf>,

    /// Leave out the list of the program's symbols
    #[arg(long)]
    pub(super) drop_symbol_list: bool,

    /// Drop the functions with the fewest samples until the profile is no larger than this
    #[arg(long, value_name = "BYTES")]
    pub(super) size_limit: Option<u64>,

    /// Write what this GCC release reads, such as 12 (gcov)
    #[arg(long, value_name = "N")]
    pub(super) gcc: Option<u32>,
}

impl SampleArgs {
    /// How inputs are read.
    pub(super) fn read_options(&self) -> SampleReadOptions {
        let pass = match self.fs_discriminator_pass {
            Some(Pass::Base) => FsPass::Base,
            Some(Pass::Pass1) => FsPass::Pass1,
            Some(Pass::Pass2) => FsPass::Pass2,
            Some(Pass::Pass3) => FsPass::Pass3,
            None => FsPass::Last,
        };
        SampleReadOptions::new()
            .fs_pass(pass)
            .assume_fs(self.assume_fs)
    }

    /// Refuses what means nothing for instrumentation profiles.
    ///
    /// # Errors
    /// If anything of it was given.
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
                "{option} is for sample profiles, and the inputs are none"
            ))),
            None => Ok(()),
        }
    }
}

/// A pass of FS-AFDO that is not the last, whose bits are all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pass {
    /// Discriminators as without FS-AFDO
    Base,
    /// The first pass
    Pass1,
    /// The second
    Pass2,
    /// The third
    Pass3,
}

/// The layout of a sample profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// Inlined functions below their callers, no calling contexts
    Nest,
    /// Every function once
    Flat,
}
