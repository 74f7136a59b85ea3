//! Compares a raw profile with a known layout.
use super::{Layout, Slide, fixed_header};
use profkit_data::instr::raw::{PointerWidth, RawProfile};

impl Layout {
    /// If the profile has this layout, returns by how much it was loaded at other addresses.
    pub(super) fn same(&self, profile: &RawProfile<'_>) -> Option<Slide> {
        let sections = profile.sections();
        if let Some(id) = self.metadata {
            // The records of a profile with only counters were read from the program, and must have the same id.
            let same = profile.metadata().is_some_and(|joined| joined.id() == id)
                && self.header == fixed_header(profile)
                && *self.binary_ids == *sections.binary_ids.bytes;
            return same.then_some(Slide(0));
        }
        let same = profile.metadata().is_none()
            && self.header == fixed_header(profile)
            && self.relative_counters == profile.has_relative_counters()
            && *self.binary_ids == *sections.binary_ids.bytes
            && self.data.len() == sections.data.bytes.len()
            && *self.names == *sections.names.bytes
            && *self.vtable_names == *sections.vtable_names.bytes
            && self.same_data(sections.data.bytes)
            && (self.relative_counters || self.same_counter_places(profile));
        if !same {
            return None;
        }
        if self.with_values.is_empty() && self.vtables.is_empty() {
            return Some(Slide(0));
        }
        self.slide_of(profile)
    }

    fn same_data(&self, data: &[u8]) -> bool {
        match self.fixed.len() {
            4 => self.same_records::<4>(data),
            5 => self.same_records::<5>(data),
            6 => self.same_records::<6>(data),
            7 => self.same_records::<7>(data),
            8 => self.same_records::<8>(data),
            9 => self.same_records::<9>(data),
            _ => false,
        }
    }

    /// Compares the data records in all bits that do not change between runs. `WORDS` is the size of a record in 64-bit
    /// words. The loop has no branch within a record, so the compiler can vectorise it.
    fn same_records<const WORDS: usize>(&self, data: &[u8]) -> bool {
        let Some(&fixed) = self.fixed.first_chunk::<WORDS>() else {
            return false;
        };
        let (mine, _) = self.data.as_chunks::<8>();
        let (theirs, _) = data.as_chunks::<8>();
        let (mine, _) = mine.as_chunks::<WORDS>();
        let (theirs, _) = theirs.as_chunks::<WORDS>();
        // The records are compared in blocks, so that the comparison ends early if the layouts differ.
        mine.chunks(64)
            .zip(theirs.chunks(64))
            .all(|(mine, theirs)| {
                let mut differ = [0; WORDS];
                for (mine, theirs) in mine.iter().zip(theirs) {
                    for word in 0..WORDS {
                        differ[word] |=
                            u64::from_ne_bytes(mine[word]) ^ u64::from_ne_bytes(theirs[word]);
                    }
                }
                differ
                    .iter()
                    .zip(&fixed)
                    .all(|(differ, fixed)| differ & fixed == 0)
            })
    }

    /// Compares the places of counters in their section. Counter pointers may differ: up to raw version 7 they are
    /// addresses.
    fn same_counter_places(&self, profile: &RawProfile<'_>) -> bool {
        let counter_len = profile.dialect().counter_len() as u64;
        self.records
            .iter()
            .zip(profile.records())
            .all(|(mine, theirs)| {
                let offset = u64::try_from(profile.counter_offset(&theirs));
                offset == Ok(u64::from(mine.counters_start) * counter_len)
            })
    }

    /// How far the profile was moved; `None` if not all functions and virtual tables were moved equally far.
    fn slide_of(&self, profile: &RawProfile<'_>) -> Option<Slide> {
        let dialect = profile.dialect();
        let mask = mask(dialect.width.bytes());
        let mut slide = None;
        let mut agrees = |learned: u64, run: u64| {
            if learned == 0 || run == 0 {
                return learned == run;
            }
            let distance = run.wrapping_sub(learned) & mask;
            *slide.get_or_insert(distance) == distance
        };
        let layout = profile.layout();
        let records = profile.sections().data.bytes.chunks_exact(layout.stride);
        for (&learned, record) in self.function_pointers.iter().zip(records) {
            let at = layout.function_pointer.unwrap_or(layout.stride);
            let run = match dialect.width {
                PointerWidth::Bits64 => {
                    let bytes = record.get(at..).and_then(<[u8]>::first_chunk);
                    bytes.map_or(0, |&bytes| dialect.endian.u64(bytes))
                }
                PointerWidth::Bits32 => {
                    let bytes = record.get(at..).and_then(<[u8]>::first_chunk);
                    bytes.map_or(0, |&bytes| u64::from(dialect.endian.u32(bytes)))
                }
            };
            if !agrees(learned, run) {
                return None;
            }
        }
        for (learned, run) in self.vtables.iter().zip(profile.vtables()) {
            let same = learned.name_hash == run.name_hash && learned.size == run.size;
            if !same || !agrees(learned.pointer, run.pointer) {
                return None;
            }
        }
        Some(Slide(slide.unwrap_or(0)))
    }
}

pub(super) fn mask(pointer_bytes: usize) -> u64 {
    if pointer_bytes == 4 {
        u64::from(u32::MAX)
    } else {
        u64::MAX
    }
}
