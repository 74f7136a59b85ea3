//! How hot contexts are, and the summary that version 4 stores.
use super::block::{Field, MemInfoBlock};
use super::profile::MemProfile;
use crate::Result;
use crate::bytes::Cursor;
use crate::index_vec::IndexVec;

/// What a compiler makes of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hotness {
    /// Few accesses in a long life.
    Cold,
    /// Neither.
    Warm,
    /// Many accesses. Compilers act on it with `-memprof-use-hot-hints` only.
    Hot,
}

/// Where cold ends and hot begins (`getAllocType` in `MemProfCommon.cpp`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Cold is below this lifetime access density: accesses for each byte and second lived, on average.
    pub cold_density: f32,
    /// Cold lives at least as many seconds on average.
    pub cold_lifetime: u32,
    /// Hot is above this lifetime access density.
    pub hot_density: f32,
}

impl Default for Thresholds {
    /// LLVM's: `-memprof-lifetime-access-density-cold-threshold`, `-memprof-ave-lifetime-cold-threshold`,
    /// `-memprof-min-ave-lifetime-access-density-hot-threshold`.
    fn default() -> Self {
        Thresholds {
            cold_density: 0.05,
            cold_lifetime: 200,
            hot_density: 1000.0,
        }
    }
}

impl Thresholds {
    /// How hot a context is, in LLVM's arithmetic. `hot_hints` is whether any context may be hot.
    pub fn hotness(&self, block: &MemInfoBlock, hot_hints: bool) -> Hotness {
        let average = |field| to_f32(block.get(field)) / to_f32(block.get(Field::AllocCount));
        // Densities are stored times 100.
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

#[expect(
    clippy::cast_precision_loss,
    reason = "as LLVM does; thresholds are coarse"
)]
fn to_f32(number: u64) -> f32 {
    number as f32
}

/// LLVM's `MemProfSummary`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemProfSummary {
    /// Contexts.
    pub contexts: u64,
    /// Cold ones.
    pub cold_contexts: u64,
    /// Hot ones.
    pub hot_contexts: u64,
    /// The most bytes of a cold context.
    pub max_cold_size: u64,
    /// The most bytes of a context that is neither cold nor hot.
    pub max_warm_size: u64,
    /// The most bytes of a hot context.
    pub max_hot_size: u64,
}

impl MemProfSummary {
    /// That of a profile: each call stack counts once, with its first figures, as `MemProfSummaryBuilder` has it. No
    /// context is hot, as by LLVM's default.
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
            let (count, max) = match thresholds.hotness(&site.block, false) {
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

    /// Appends the summary of version 4: how many words, and these.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&u32::try_from(FIELDS).unwrap_or(0).to_le_bytes());
        for word in self.words() {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads that of version 4. Words that are missing are 0, further ones are passed over: LLVM may add some.
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
