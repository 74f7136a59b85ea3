//! The options that decide what a part holds.
use crate::MergeOptions;
use crate::sample::SampleMergeOptions;
use profkit_data::instr::TraceOptions;
use profkit_data::remap::Remapping;
use profkit_data::sample::FsPass;
use std::fmt;
use twox_hash::XxHash3_64;

/// Only parts with equal keys can be added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) traces: TraceOptions,
    pub(crate) separate: bool,
    /// The digest of the new names of functions; 0 if they keep their names.
    pub(crate) remapping: u64,
    /// `Some` in parts of sample profiles.
    pub(crate) samples: Option<SampleKey>,
}

/// How sample profiles were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SampleKey {
    pub(crate) fs_pass: FsPass,
    pub(crate) assume_fs: bool,
    /// The largest number of names that were read of a symbol list.
    pub(crate) symbols: Option<u64>,
    pub(crate) drop_symbols: bool,
}

impl Key {
    pub(crate) fn of_instr(options: &MergeOptions) -> Self {
        Key {
            traces: options.traces,
            separate: options.separate_by_build_id,
            remapping: digest(options.remapping.as_ref()),
            samples: None,
        }
    }

    pub(crate) fn of_mip() -> Self {
        Key::default()
    }

    pub(crate) fn of_samples(options: &SampleMergeOptions) -> Self {
        Key {
            remapping: digest(options.remapping.as_ref()),
            samples: Some(SampleKey {
                fs_pass: options.read.fs_pass,
                assume_fs: options.read.assume_fs,
                symbols: options.read.symbols,
                drop_symbols: options.drop_symbols,
            }),
            ..Key::default()
        }
    }
}

fn digest(remapping: Option<&Remapping>) -> u64 {
    remapping.map_or(0, |remapping| {
        let mut pairs: Vec<_> = remapping.iter().collect();
        pairs.sort_unstable();
        let mut lines = Vec::new();
        for (old, new) in pairs {
            lines.extend([old, b" ", new, b"\n"].concat());
        }
        XxHash3_64::oneshot(&lines).max(1)
    })
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.samples {
            Some(samples) => samples.fmt(f)?,
            None => {
                let TraceOptions {
                    reservoir_size,
                    max_length,
                } = self.traces;
                write!(
                    f,
                    "{reservoir_size} temporal traces of at most {max_length} functions"
                )?;
            }
        }
        if self.separate {
            f.write_str(", one profile per program")?;
        }
        match self.remapping {
            0 => Ok(()),
            digest => write!(
                f,
                ", functions renamed by the file with digest {digest:016x}"
            ),
        }
    }
}

impl fmt::Display for SampleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.drop_symbols, self.symbols) {
            (true, _) => f.write_str("samples without symbol lists")?,
            (false, None) => f.write_str("samples with symbol lists")?,
            (false, Some(most)) => write!(f, "samples with at most {most} names of symbol lists")?,
        }
        if self.assume_fs {
            f.write_str(", read as of FS-AFDO")?;
        }
        match self.fs_pass {
            FsPass::Last => Ok(()),
            pass => write!(f, ", discriminators up to pass {}", pass as u32),
        }
    }
}
