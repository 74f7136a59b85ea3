//! The options that decide what a part holds.
use crate::MergeOptions;
use profkit_data::instr::TraceOptions;
use std::fmt;
use twox_hash::XxHash3_64;

/// Only parts with equal keys can be added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) traces: TraceOptions,
    pub(crate) separate: bool,
    /// The digest of the new names of functions; 0 if they keep their names.
    pub(crate) remapping: u64,
}

impl Key {
    pub(crate) fn of(options: &MergeOptions) -> Self {
        let digest = options.remapping.as_ref().map_or(0, |remapping| {
            let mut pairs: Vec<_> = remapping.iter().collect();
            pairs.sort_unstable();
            let mut lines = Vec::new();
            for (old, new) in pairs {
                lines.extend([old, b" ", new, b"\n"].concat());
            }
            XxHash3_64::oneshot(&lines).max(1)
        });
        Key {
            traces: options.traces,
            separate: options.separate_by_build_id,
            remapping: digest,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceOptions {
            reservoir_size,
            max_length,
        } = self.traces;
        write!(
            f,
            "{reservoir_size} temporal traces of at most {max_length} functions"
        )?;
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
