//! The same-binary fast path: raw profiles whose metadata equal those already seen are not parsed again.
//!
//! A [`Layout`] is what all raw profiles of one program have in common: header, data records, names. The first
//! profile of a program is learned; each further one is compared with it (everything but the addresses that move with
//! the address space), and its counters are added to one array. Value data are decoded against the known records.
//!
//! Whatever is unusual (several profiles in a file, a cut file, an implausible counter, time stamps, sums near the
//! largest count) is refused here, before anything was added, and takes the ordinary path: both paths give the same
//! result.
mod learn;
mod same;
mod sums;
#[cfg(test)]
mod tests;
mod values;

use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::raw::{AddressMap, RawHeader, RawProfile, RawVTable};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, RwLock};
pub(crate) use sums::LayoutSums;

/// What all raw profiles of one program share.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The header, without what moves with the address space.
    header: RawHeader,
    /// `origin_of` its build ids.
    origin: u32,
    relative_counters: bool,
    /// The metadata that were joined to the profile, if it had none of its own.
    metadata: Option<u64>,
    binary_ids: Box<[u8]>,
    data: Box<[u8]>,
    names: Box<[u8]>,
    vtables: Vec<RawVTable>,
    vtable_names: Box<[u8]>,
    /// Which bits of a data record, as words in file order, are the same in every run.
    fixed: Vec<u64>,
    records: Vec<LayoutRecord>,
    /// Names of the records, one after the other.
    name_bytes: Vec<u8>,
    /// FunctionPointer of each record, in the run that was learned.
    function_pointers: Vec<u64>,
    /// Records with value sites, by index, in order.
    with_values: Vec<u32>,
    /// Functions and vtables at the addresses of the run that was learned.
    addresses: AddressMap,
}

/// One record of a layout.
#[derive(Clone, Copy, Debug)]
struct LayoutRecord {
    name_ref: NameRef,
    func_hash: FuncHash,
    name_start: u32,
    name_len: u32,
    /// In counters, not bytes.
    counters_start: u32,
    counters_len: u32,
    bitmap_start: u32,
    bitmap_len: u32,
}

/// The layouts that are known, shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    known: RwLock<Known>,
    /// Held by the thread that learns the layout of a key, so that others wait for it instead of doing the same.
    learning: Mutex<FxHashMap<u64, Arc<Mutex<()>>>>,
    /// How many threads the merge has: all of them learn, as the others wait.
    threads: usize,
}

#[derive(Debug, Default)]
struct Known {
    by_key: FxHashMap<u64, Vec<Arc<Layout>>>,
    bytes: usize,
}

/// How many bytes of metadata are kept, but for the last layout. A merge of more distinct programs than fit reads the rest the ordinary way:
/// more memory would make only those programs faster of which there are several profiles.
const MAX_KNOWN_BYTES: usize = 512 << 20;

impl Layouts {
    pub(crate) fn new(threads: usize) -> Self {
        Layouts {
            threads,
            ..Layouts::default()
        }
    }

    /// The layout that a profile has, with how far its addresses are from those that were learned; learned now if it
    /// is new. `None` for a profile that must be read the ordinary way.
    pub(crate) fn find_or_learn(&self, profile: &RawProfile<'_>) -> Option<(Arc<Layout>, Slide)> {
        let key = key_of(profile);
        if let Some(found) = self.find(key, profile) {
            return Some(found);
        }
        if self.known.read().ok()?.bytes > MAX_KNOWN_BYTES {
            return None;
        }
        let turn = Arc::clone(self.learning.lock().ok()?.entry(key).or_default());
        let _turn = turn.lock().ok()?;
        if let Some(found) = self.find(key, profile) {
            return Some(found);
        }
        let layout = Arc::new(Layout::learn(profile, self.threads)?);
        let mut known = self.known.write().ok()?;
        known.bytes = known.bytes.saturating_add(layout.byte_count());
        let same_key = known.by_key.entry(key).or_default();
        same_key.push(Arc::clone(&layout));
        Some((layout, Slide(0)))
    }

    /// How many layouts are known.
    pub(crate) fn count(&self) -> usize {
        let count = |known: &Known| known.by_key.values().map(Vec::len).sum();
        self.known.read().map_or(0, |known| count(&known))
    }

    fn find(&self, key: u64, profile: &RawProfile<'_>) -> Option<(Arc<Layout>, Slide)> {
        // The comparison reads megabytes: not under the lock.
        let candidates = self.known.read().ok()?.by_key.get(&key)?.clone();
        candidates
            .iter()
            .find_map(|layout| Some((Arc::clone(layout), layout.same(profile)?)))
    }
}

/// How far the addresses of a run are from those of the run that was learned (`run − learned`, wrapping).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slide(u64);

/// The parts of a header that are the same in every run of a program.
fn fixed_header(profile: &RawProfile<'_>) -> RawHeader {
    let mut header = *profile.header();
    header.names_delta = 0;
    header.value_data_delta = 0;
    header.value_data_size = 0;
    if !profile.has_relative_counters() {
        header.counters_delta = 0;
    }
    if header.num_bitmap_bytes == 0 {
        header.bitmap_delta = 0;
    }
    header
}

/// A number that differs for most pairs of programs: not a comparison, only where to look.
fn key_of(profile: &RawProfile<'_>) -> u64 {
    let header = fixed_header(profile);
    let mut hasher = FxHasher::default();
    (
        header.num_data,
        header.num_counters,
        header.names_size,
        header.counters_delta,
    )
        .hash(&mut hasher);
    profile.sections().binary_ids.bytes.hash(&mut hasher);
    for index in [
        0,
        profile.record_count() / 2,
        profile.record_count().saturating_sub(1),
    ] {
        if let Some(record) = profile.record(index) {
            (record.func_hash.0, record.num_counters).hash(&mut hasher);
        }
    }
    hasher.finish()
}

impl Layout {
    fn byte_count(&self) -> usize {
        let sections = [
            &self.binary_ids,
            &self.data,
            &self.names,
            &self.vtable_names,
        ];
        sections.iter().map(|section| section.len()).sum::<usize>()
            + self.records.len() * (size_of::<LayoutRecord>() + size_of::<u64>())
            + self.vtables.len() * size_of::<RawVTable>()
            + self.name_bytes.len()
    }
}
