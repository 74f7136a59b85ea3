//! Learns the layout of a program's raw profiles from the first of them.
use super::{Layout, LayoutRecord, fixed_header};
use crate::engine::read::origin_of;
use profkit_abi::variant;
use profkit_data::ids::NameRef;
use profkit_data::instr::raw::{AddressMap, RawMetadata, RawName, RawProfile, RecordLayout};
use profkit_data::names::NameList;
use rustc_hash::FxHashMap;

impl Layout {
    /// `None` if the metadata are damaged, or if the profile must be read record by record. `stand_ins` says that functions
    /// without names have the texts of their hashes as names.
    pub(super) fn learn(profile: &RawProfile<'_>, threads: usize, stand_ins: bool) -> Option<Self> {
        let dialect = profile.dialect();
        if dialect.version <= 2
            // Profiles with time stamps are read record by record, because traces are made from the time stamps.
            || dialect.has(variant::TEMPORAL)
            // Profiles with uniformity bits are read record by record, because the fast path does not merge these bits.
            || profile.header().num_uniform_counters > 0
            || (dialect.has(variant::DBG_CORRELATE) && profile.metadata().is_none())
        {
            return None;
        }
        let sections = profile.sections();
        if sections.data.bytes.is_empty()
            || sections.data.bytes.len() % profile.layout().stride != 0
        {
            return None;
        }
        let mut names = NameList::default();
        for blob in [&sections.names, &sections.vtable_names] {
            names.read_blob(blob.bytes, blob.offset).ok()?;
        }
        let by_hash = by_hash(&names, threads);
        let counter_len = u32::try_from(dialect.counter_len()).ok()?;
        let mut records = Vec::with_capacity(profile.record_count());
        let mut with_values = Vec::new();
        let mut function_pointers = Vec::with_capacity(profile.record_count());
        for record in profile.records() {
            let RawName::Ref(mut name_ref) = record.name else {
                return None;
            };
            let index = match by_hash.get(&name_ref) {
                Some(&index) => index,
                None if stand_ins => {
                    let stand_in = name_ref.to_string();
                    name_ref = NameRef::of(stand_in.as_bytes());
                    names.push(stand_in.as_bytes())?
                }
                None => return None,
            };
            let (name_start, name_len) = names.span(index as usize)?;
            profile.counter_bytes(&record).ok()?;
            profile.bitmap_bytes(&record).ok()?;
            let offset = u32::try_from(profile.counter_offset(&record)).ok()?;
            if offset % counter_len != 0 {
                return None;
            }
            let bitmap_start = match record.num_bitmap_bytes {
                0 => 0,
                _ => u32::try_from(profile.bitmap_offset(&record)).ok()?,
            };
            if record.has_value_data() {
                with_values.push(u32::try_from(record.index).ok()?);
            }
            function_pointers.push(record.function_pointer);
            records.push(LayoutRecord {
                name_ref,
                func_hash: record.func_hash,
                name_start: u32::try_from(name_start).ok()?,
                name_len,
                counters_start: offset / counter_len,
                counters_len: record.num_counters,
                bitmap_start,
                bitmap_len: record.num_bitmap_bytes,
            });
        }
        Some(Layout {
            header: fixed_header(profile),
            origin: origin_of(&profile.binary_ids().ok()?),
            relative_counters: profile.has_relative_counters(),
            metadata: profile.metadata().map(RawMetadata::id),
            binary_ids: sections.binary_ids.bytes.into(),
            data: sections.data.bytes.into(),
            names: sections.names.bytes.into(),
            vtables: profile.vtables().collect(),
            vtable_names: sections.vtable_names.bytes.into(),
            fixed: fixed_words(profile.layout(), profile.has_relative_counters()),
            addresses: if with_values.is_empty() {
                AddressMap::default()
            } else {
                AddressMap::of(profile)
            },
            records,
            function_pointers,
            name_bytes: names.into_bytes(),
            with_values,
        })
    }

    pub(super) fn name_of(&self, record: &LayoutRecord) -> &[u8] {
        let start = record.name_start as usize;
        self.name_bytes
            .get(start..start + record.name_len as usize)
            .unwrap_or_default()
    }
}

/// Maps hashes of names to the first name of each. Hashing takes most of the time of learning, and other threads of the
/// merge wait for the layout, so each hashes a share.
fn by_hash(names: &NameList, threads: usize) -> FxHashMap<NameRef, u32> {
    let share = names.len().div_ceil(threads.max(1)).max(MIN_SHARE);
    let mut hashes = vec![NameRef::default(); names.len()];
    std::thread::scope(|scope| {
        let mut shares = hashes.chunks_mut(share).enumerate();
        let first = shares.next();
        for (index, hashes) in shares {
            scope.spawn(move || names.hash(index * share, hashes));
        }
        if let Some((_, hashes)) = first {
            names.hash(0, hashes);
        }
    });
    let mut by_hash = FxHashMap::with_capacity_and_hasher(names.len(), Default::default());
    for (index, name_ref) in (0u32..).zip(hashes) {
        by_hash.entry(name_ref).or_insert(index);
    }
    by_hash
}

/// The smallest number of names for which another thread is started.
const MIN_SHARE: usize = 1024;

/// Masks for the words of a data record, with ones for bits that are the same in every run; counter pointers are, if
/// they are relative to their record. The words have native byte order: they only mask other words.
fn fixed_words(layout: &RecordLayout, relative_counters: bool) -> Vec<u64> {
    let mut bytes = vec![0xff; layout.stride];
    for range in layout.moving_fields(relative_counters) {
        if let Some(bytes) = bytes.get_mut(range) {
            bytes.fill(0);
        }
    }
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|&word| u64::from_ne_bytes(word)).collect()
}
