//! Decides which allocation contexts are hot or cold, and computes the summary of a MemProf section of version 4.
use super::block::{Field, MemInfoBlock};
use super::profile::MemProfile;
use crate::Result;
use crate::bytes::Cursor;
use crate::index_vec::IndexVec;

/// Whether a compiler treats an allocation context as hot or cold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hotness {
    /// The allocations have few accesses during a long lifetime.
    Cold,
    /// The allocations are neither cold nor hot.
    Warm,
    /// The allocations have many accesses. Compilers use this only with `-memprof-use-hot-hints`.
    Hot,
}

/// The limits that decide whether a context is cold or hot (`getAllocType` in `MemProfCommon.cpp`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// The upper limit of the average lifetime access density of a cold context (exclusive), in accesses per byte and
    /// per second of lifetime.
    pub cold_density: f32,
    /// The lower limit of the average lifetime of the allocations of a cold context (inclusive), in seconds.
    pub cold_lifetime: u32,
    /// The lower limit of the average lifetime access density of a hot context (exclusive), in accesses per byte and
    /// per second of lifetime.
    pub hot_density: f32,
}

impl Default for Thresholds {
    /// Returns LLVM's default limits (`-memprof-lifetime-access-density-cold-threshold`,
    /// `-memprof-ave-lifetime-cold-threshold`, `-memprof-min-ave-lifetime-access-density-hot-threshold`).
    fn default() -> Self {
        Thresholds {
            cold_density: 0.05,
            cold_lifetime: 200,
            hot_density: 1000.0,
        }
    }
}

impl Thresholds {
    /// Returns whether a context is hot or cold, computed with LLVM's arithmetic. Without `hot_hints`, no context is
    /// hot. A context whose access density is not known is neither.
    pub fn hotness(&self, block: &MemInfoBlock, hot_hints: bool) -> Hotness {
        if !block.has(Field::TotalLifetimeAccessDensity) {
            return Hotness::Warm;
        }
        self.hotness_as_llvm(block, hot_hints)
    }

    /// Returns what LLVM takes a context for. An access density that is not known is 0 to LLVM.
    fn hotness_as_llvm(&self, block: &MemInfoBlock, hot_hints: bool) -> Hotness {
        let average = |field| to_f32(block.get(field)) / to_f32(block.get(Field::AllocCount));
        // A memory info block stores access densities multiplied by 100.
        let density = average(Field::TotalLifetimeAccessDensity) / 100.0;
        let lifetime = average(Field::TotalLifetime);
        if density < self.cold_density && lifetime >= to_f32(u64::from(self.cold_lifetime) * 1000) {
            Hotness::Cold
        } else if hot_hints && density > self.hot_density {
            Hotness::Hot
        } else {
            Hotness::Warm
        }
    }
}

fn to_f32(number: u64) -> f32 {
    number as f32
}

/// The summary of a heap profile: the numbers of hot and cold contexts, and the sizes of the largest ones (LLVM's
/// `MemProfSummary`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemProfSummary {
    /// The number of allocation contexts.
    pub contexts: u64,
    /// The number of cold allocation contexts.
    pub cold_contexts: u64,
    /// The number of hot allocation contexts.
    pub hot_contexts: u64,
    /// The size of the largest cold context, in bytes.
    pub max_cold_size: u64,
    /// The size of the largest context that is neither cold nor hot, in bytes.
    pub max_warm_size: u64,
    /// The size of the largest hot context, in bytes.
    pub max_hot_size: u64,
}

impl MemProfSummary {
    /// Computes the summary of a profile. Each call stack counts once, with the statistics of its first context, as in
    /// LLVM's `MemProfSummaryBuilder`. No context counts as hot, because LLVM does not mark hot contexts by default.
    pub fn of(profile: &MemProfile) -> Self {
        let mut summary = MemProfSummary::default();
        let mut seen = IndexVec::parallel_to(profile.stacks(), false);
        let thresholds = Thresholds::default();
        let records = profile.records().iter();
        for site in records.flat_map(|record| &record.alloc_sites) {
            if std::mem::replace(&mut seen[site.stack], true) {
                continue;
            }
            summary.contexts += 1;
            let size = site.block.get(Field::TotalSize);
            let (count, max) = match thresholds.hotness_as_llvm(&site.block, false) {
                Hotness::Cold => (Some(&mut summary.cold_contexts), &mut summary.max_cold_size),
                Hotness::Warm => (None, &mut summary.max_warm_size),
                Hotness::Hot => (Some(&mut summary.hot_contexts), &mut summary.max_hot_size),
            };
            if let Some(count) = count {
                *count += 1;
            }
            *max = size.max(*max);
        }
        summary
    }

    fn words(&self) -> [u64; FIELDS] {
        [
            self.contexts,
            self.cold_contexts,
            self.hot_contexts,
            self.max_cold_size,
            self.max_warm_size,
            self.max_hot_size,
        ]
    }

    /// Appends the summary as a section of version 4 stores it: the number of words, then the words.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&u32::try_from(FIELDS).unwrap_or(0).to_le_bytes());
        for word in self.words() {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads the summary of a section of version 4. Missing words count as 0. Additional words, which a later LLVM may
    /// write, are skipped.
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let count = cursor.u32()?;
        let mut words = [0; FIELDS];
        for index in 0..count {
            let word = cursor.u64()?;
            if let Some(slot) = words.get_mut(index as usize) {
                *slot = word;
            }
        }
        let [
            contexts,
            cold_contexts,
            hot_contexts,
            max_cold_size,
            max_warm_size,
            max_hot_size,
        ] = words;
        Ok(MemProfSummary {
            contexts,
            cold_contexts,
            hot_contexts,
            max_cold_size,
            max_warm_size,
            max_hot_size,
        })
    }
}

const FIELDS: usize = 6;
