//! The fast path of merges: a raw profile is not parsed if its metadata equal those of an earlier profile of the same
//! program.
//!
//! A [`Layout`] is the part that all raw profiles of one program have in common: header, data records, names. It is
//! learned from the first profile of a program. Each further profile is compared with the layout, except for the
//! addresses that differ from run to run, and its counters are added to one array. Its value data are decoded with the
//! help of the records in the layout.
//!
//! Unusual profiles are rejected before anything of them is added, and are then read record by record: several profiles
//! in a file, a cut file, an implausible counter, time stamps, sums near the largest count. The fast path gives the
//! same result as reading record by record.
mod learn;
mod same;
mod sums;
mod values;

use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::raw::{AddressMap, RawHeader, RawProfile, RawVTable};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, RwLock};
pub(crate) use sums::LayoutSums;

#[derive(Debug)]
pub(crate) struct Layout {
    header: RawHeader,
    origin: u32,
    relative_counters: bool,
    metadata: Option<u64>,
    binary_ids: Box<[u8]>,
    data: Box<[u8]>,
    names: Box<[u8]>,
    vtables: Vec<RawVTable>,
    vtable_names: Box<[u8]>,
    fixed: Vec<u64>,
    records: Vec<LayoutRecord>,
    name_bytes: Vec<u8>,
    function_pointers: Vec<u64>,
    with_values: Vec<u32>,
    addresses: AddressMap,
}

#[derive(Clone, Copy, Debug)]
struct LayoutRecord {
    name_ref: NameRef,
    func_hash: FuncHash,
    name_start: u32,
    name_len: u32,
    counters_start: u32,
    counters_len: u32,
    bitmap_start: u32,
    bitmap_len: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Layouts {
    known: RwLock<KnownLayouts>,
    /// A lock for each search key ([`key_of`]). Threads that need the same layout wait for the one that learns it.
    learning: Mutex<FxHashMap<u64, Arc<Mutex<()>>>>,
    /// The threads of the merge, which all help to learn a layout: they would only wait for it.
    threads: usize,
    /// Whether functions without names have the texts of their hashes as names. Otherwise profiles with such functions
    /// are read record by record.
    stand_ins: bool,
}

#[derive(Debug, Default)]
struct KnownLayouts {
    by_key: FxHashMap<u64, Vec<Arc<Layout>>>,
    bytes: usize,
}

/// The limit for all layouts in bytes. Beyond it, profiles of further programs are read record by record. Raising it
/// costs memory, and helps only programs with several profiles.
const MAX_KNOWN_BYTES: usize = 512 << 20;

impl Layouts {
    pub(crate) fn new(threads: usize, stand_ins: bool) -> Self {
        Layouts {
            threads,
            stand_ins,
            ..Layouts::default()
        }
    }

    /// Finds or learns the layout of a profile. Also returns by how much its addresses differ from those in the layout.
    /// `None` if the profile must be read record by record.
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
        let layout = Arc::new(Layout::learn(profile, self.threads, self.stand_ins)?);
        let mut known = self.known.write().ok()?;
        known.bytes = known.bytes.saturating_add(layout.byte_count());
        let same_key = known.by_key.entry(key).or_default();
        same_key.push(Arc::clone(&layout));
        Some((layout, Slide(0)))
    }

    pub(crate) fn count(&self) -> usize {
        let count = |known: &KnownLayouts| known.by_key.values().map(Vec::len).sum();
        self.known.read().map_or(0, |known| count(&known))
    }

    fn find(&self, key: u64, profile: &RawProfile<'_>) -> Option<(Arc<Layout>, Slide)> {
        // A comparison reads megabytes, so the lock is released before it.
        let candidates = self.known.read().ok()?.by_key.get(&key)?.clone();
        candidates
            .iter()
            .find_map(|layout| Some((Arc::clone(layout), layout.same(profile)?)))
    }
}

/// The distance of an address in a profile from the same address in the layout (`profile − layout`, wrapping).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slide(u64);

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

/// Equal keys do not prove equal layouts, but most programs have different keys.
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
