//! Heap profiles with fewer contexts, or with other names.
use super::data_access::{DataAccess, Datum};
use super::profile::{AllocSite, CallSite, Frame, FrameId, MemProfile, SourceLocation, StackId};
use crate::ids::NameRef;
use crate::index_vec::IndexVec;
use rustc_hash::FxHashSet;

impl MemProfile {
    /// Returns the profile with only those allocations whose call stack `keep` returns true for, and the calls that lead
    /// to them.
    #[must_use]
    pub fn retain(&self, keep: impl Fn(StackId) -> bool) -> MemProfile {
        let sites = || self.records().iter().flat_map(|record| &record.alloc_sites);
        let kept: FxHashSet<StackId> = sites()
            .map(|site| site.stack)
            .filter(|&it| keep(it))
            .collect();
        let calls = self.records().iter().flat_map(|record| &record.call_sites);
        let lengths: FxHashSet<usize> =
            calls.map(|call| self.frame_ids(call.stack).len()).collect();
        let mut called: FxHashSet<&[FrameId]> = FxHashSet::default();
        for &stack in &kept {
            let frames = self.frame_ids(stack);
            for &length in lengths.iter().filter(|&&length| length > 0) {
                called.extend(frames.windows(length));
            }
        }
        let mut new = MemProfile::default();
        for record in self.records() {
            let mut cut = record.clone();
            cut.alloc_sites.retain(|site| kept.contains(&site.stack));
            cut.call_sites
                .retain(|call| called.contains(self.frame_ids(call.stack)));
            if cut.alloc_sites.is_empty() && cut.call_sites.is_empty() {
                continue;
            }
            new.copy_record(self, &cut);
        }
        new.data_access.clone_from(&self.data_access);
        let functions: FxHashSet<u64> = new.frames().iter().map(|frame| frame.function).collect();
        let names = self.names.iter().filter(|(id, _)| functions.contains(id));
        new.names = names.map(|(&id, name)| (id, name.clone())).collect();
        let places = self.locations.iter();
        let places = places.filter(|(frame, _)| new.frame_id(frame).is_some());
        new.locations = places
            .map(|(frame, place)| (*frame, place.clone()))
            .collect();
        new
    }

    /// Returns the profile with new names. `new_name` gets the hash of a name, and the name if it is known; it returns the
    /// new name, or `None` to keep the old one. `new_path` does the same for source files.
    #[must_use]
    pub fn rename(
        &self,
        new_name: impl Fn(NameRef, Option<&[u8]>) -> Option<Vec<u8>>,
        new_path: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> MemProfile {
        let named = |id: u64| new_name(NameRef(id), self.names.get(&id).map(Vec::as_slice));
        let renamed = |id: u64| named(id).map_or(id, |new| NameRef::of(&new).0);
        let moved = |frame: &Frame| Frame {
            function: renamed(frame.function),
            ..*frame
        };
        let mut new = MemProfile::default();
        let frames = self
            .frames()
            .iter()
            .map(|frame| new.add_frame(moved(frame)));
        let frames: IndexVec<FrameId, FrameId> = frames.collect();
        let mut stacks: IndexVec<StackId, StackId> = IndexVec::new();
        for stack in self.stacks() {
            let ids: Vec<FrameId> = stack.iter().map(|&id| frames[id]).collect();
            stacks.push(new.add_stack(&ids));
        }
        for record in self.records() {
            let own = new.record_mut(renamed(record.function));
            own.alloc_sites
                .extend(record.alloc_sites.iter().map(|site| AllocSite {
                    stack: stacks[site.stack],
                    ..site.clone()
                }));
            own.call_sites
                .extend(record.call_sites.iter().map(|site| CallSite {
                    stack: stacks[site.stack],
                    callees: site.callees.iter().map(|&id| renamed(id)).collect(),
                }));
        }
        let path = |file: &[u8]| new_path(file).unwrap_or_else(|| file.to_vec());
        let symbol =
            |name: &[u8]| new_name(NameRef::of(name), Some(name)).unwrap_or_else(|| name.to_vec());
        new.data_access = self.data_access.as_ref().map(|data| DataAccess {
            records: data
                .records
                .iter()
                .cloned()
                .map(|mut record| {
                    if let Datum::Symbol(name) = &mut record.datum {
                        *name = symbol(name);
                    }
                    record
                        .locations
                        .iter_mut()
                        .for_each(|(file, _)| *file = path(file));
                    record
                })
                .collect(),
            cold_symbols: data.cold_symbols.iter().map(|name| symbol(name)).collect(),
            cold_hashes: data.cold_hashes.clone(),
        });
        let names = self.names.iter().map(|(&id, name)| match named(id) {
            Some(new) => (NameRef::of(&new).0, new),
            None => (id, name.clone()),
        });
        new.names = names.collect();
        let places = self.locations.iter().map(|(frame, place)| {
            let place = SourceLocation {
                file: if place.file.is_empty() {
                    Vec::new()
                } else {
                    path(&place.file)
                },
                ..place.clone()
            };
            (moved(frame), place)
        });
        new.locations = places.collect();
        new
    }
}
