//! Adds counts to the samples of functions. Sums stop at 2^64 − 1, and the vectors of samples stay sorted.
use super::late::{Entry, PendingEntries};
use super::model::{Inlined, Location, Samples, Target};
use super::names::NameId;

/// Counts what went wrong while samples were added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOutcome {
    /// The number of additions whose sum exceeded 2^64 − 1. Such a sum stays at 2^64 − 1.
    pub overflows: u64,
    /// The number of functions, including inlined ones, that were left out because their checksums differ.
    pub mismatches: u64,
    /// The number of functions that had no checksum and took over the checksum of samples that were added later. For
    /// such functions, LLVM's result depends on the order of the inputs.
    pub adopted: u64,
}

impl AddOutcome {
    /// Adds the numbers in `other` to the numbers of this value.
    pub fn absorb(&mut self, other: AddOutcome) {
        self.overflows += other.overflows;
        self.mismatches += other.mismatches;
        self.adopted += other.adopted;
    }

    /// Whether samples with `checksum` must be left out of a function whose checksum is `own`. If `own` is 0, the
    /// function has no checksum yet and takes over `checksum`. This is counted in [`adopted`](Self::adopted), unless
    /// `is_new` states that the function was just created.
    #[inline]
    pub(super) fn is_mismatch(&mut self, own: &mut u64, is_new: bool, checksum: u64) -> bool {
        if *own == 0 && checksum != 0 {
            *own = checksum;
            self.adopted += u64::from(!is_new);
        }
        let differs = *own != checksum;
        self.mismatches += u64::from(differs);
        differs
    }

    /// Adds `count` × `weight` to `sum`. The result is at most 2^64 − 1.
    #[inline]
    pub fn accumulate(&mut self, sum: &mut u64, count: u64, weight: u64) {
        let (product, over) = count.overflowing_mul(weight);
        match sum.checked_add(product) {
            Some(total) if !over => *sum = total,
            _ => {
                *sum = u64::MAX;
                self.overflows += 1;
            }
        }
    }
}

/// Adds lines, call targets, vtables and inlined functions to one [`Samples`]. An entry whose key is larger than all
/// keys so far is appended to its sorted vector without a search. Other entries may be kept outside the sorted vectors;
/// they are moved into the vectors when this value is dropped.
#[derive(Debug)]
pub struct Adding<'s> {
    samples: &'s mut Samples,
    pending: PendingEntries,
}

impl Drop for Adding<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.pending.is_complete() {
            self.pending.sort_in(self.samples);
        }
    }
}

impl<'s> Adding<'s> {
    #[inline]
    pub(super) fn resume(samples: &'s mut Samples, pending: PendingEntries) -> Self {
        Adding { samples, pending }
    }

    /// Interrupts the additions. Returns the entries that are not in the sorted vectors yet; `None` if there are none.
    /// The caller must later pass these entries to [`resume`](Self::resume). The entries are moved into the vectors
    /// when the result of `resume` is dropped.
    #[inline]
    pub(super) fn pause(mut self) -> Option<PendingEntries> {
        if self.pending.is_complete() {
            return None;
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_in_many(self.samples);
        (!pending.is_complete()).then_some(pending)
    }

    /// Returns the samples, for access to fields other than the sorted vectors. The vectors may lack entries until this
    /// value is dropped.
    #[inline]
    pub fn samples(&mut self) -> &mut Samples {
        self.samples
    }

    /// Adds `samples` × `weight` to the samples of a line.
    #[inline]
    pub fn add_line(
        &mut self,
        location: Location,
        samples: u64,
        weight: u64,
        outcome: &mut AddOutcome,
    ) {
        let (line, _) = self
            .pending
            .body
            .find_or_add(&mut self.samples.body, location);
        outcome.accumulate(&mut line.samples, samples, weight);
    }

    /// Adds `count` × `weight` to a call target. The line of the call must be added too ([`add_line`](Self::add_line)).
    #[inline]
    pub fn add_target(
        &mut self,
        location: Location,
        name: NameId,
        count: u64,
        weight: u64,
        outcome: &mut AddOutcome,
    ) {
        let list = &mut self.samples.targets;
        let (target, _) = self.pending.targets.find_or_add(list, (location, name));
        outcome.accumulate(&mut target.count, count, weight);
    }

    /// Adds `count` × `weight` to a vtable that was loaded at a location.
    #[inline]
    pub fn add_vtable(
        &mut self,
        location: Location,
        name: NameId,
        count: u64,
        weight: u64,
        outcome: &mut AddOutcome,
    ) {
        let list = &mut self.samples.vtables;
        let (target, _) = self.pending.vtables.find_or_add(list, (location, name));
        outcome.accumulate(&mut target.count, count, weight);
    }

    /// Returns the samples of a function that was inlined at a location, and whether they are new. If the function is
    /// new at this location, it is added without counts.
    #[inline]
    pub fn inlined_at(&mut self, location: Location, name: NameId) -> (&mut Samples, bool) {
        let list = &mut self.samples.inlined;
        let (inlined, is_new) = self.pending.inlined.find_or_add(list, (location, name));
        (&mut inlined.samples, is_new)
    }

    /// Calls `add` with the samples of a function that was inlined at a location. The second argument of `add` is
    /// whether these samples are new.
    #[inline]
    pub fn enter(
        &mut self,
        location: Location,
        name: NameId,
        add: impl FnOnce(&mut Adding<'_>, bool),
    ) {
        let key = (location, name);
        let pending = self.pending.resume(key);
        let (samples, is_new) = self.inlined_at(location, name);
        let mut inner = Adding::resume(samples, pending);
        add(&mut inner, is_new);
        if let Some(pending) = inner.pause() {
            self.pending.keep(key, pending);
        }
    }

    /// Adds other samples of the same function, as LLVM's `FunctionSamples::merge` does. If the checksums of the
    /// function differ, nothing is added.
    ///
    /// `other` may come from a different profile. `names` converts the id of a name in that profile to the id of the
    /// same name in this profile. `is_new` states whether this function was just created; the caller then sets the
    /// function's name and attributes.
    pub fn merge(
        &mut self,
        other: &Samples,
        is_new: bool,
        names: impl Fn(NameId) -> NameId + Copy,
        weight: u64,
        outcome: &mut AddOutcome,
    ) {
        let samples = &mut *self.samples;
        if outcome.is_mismatch(&mut samples.checksum, is_new, other.checksum) {
            return;
        }
        outcome.accumulate(&mut samples.total, other.total, weight);
        outcome.accumulate(&mut samples.head, other.head, weight);
        if samples.body.is_empty() && samples.inlined.is_empty() {
            samples.body.reserve_exact(other.body.len());
            samples.targets.reserve_exact(other.targets.len());
            samples.inlined.reserve_exact(other.inlined.len());
        }
        for line in &other.body {
            self.add_line(line.location, line.samples, weight, outcome);
        }
        for target in &other.targets {
            let name = names(target.name);
            self.add_target(target.location, name, target.count, weight, outcome);
        }
        for target in &other.vtables {
            let name = names(target.name);
            self.add_vtable(target.location, name, target.count, weight, outcome);
        }
        for inlined in &other.inlined {
            let name = names(inlined.samples.name);
            self.enter(inlined.location, name, |inner, is_new| {
                if is_new {
                    inner.samples.attributes = inlined.samples.attributes;
                }
                inner.merge(&inlined.samples, is_new, names, weight, outcome);
            });
        }
    }
}

impl Samples {
    /// Returns the samples of a function that was inlined at a location. If the function is new at this location, it is
    /// added without counts.
    pub fn inlined_at(&mut self, location: Location, name: NameId) -> &mut Samples {
        let found = self
            .inlined
            .binary_search_by_key(&(location, name), Entry::key);
        let (Ok(at) | Err(at)) = found;
        if found.is_err() {
            self.inlined.insert(at, Inlined::empty((location, name)));
        }
        &mut self.inlined[at].samples
    }

    /// Starts adding lines, call targets, vtables and inlined functions to these samples.
    #[inline]
    pub fn adding(&mut self) -> Adding<'_> {
        Adding::resume(self, PendingEntries::default())
    }

    /// Frees unused memory of all vectors, also in inlined functions.
    pub(super) fn shrink_to_fit(&mut self) {
        self.body.shrink_to_fit();
        self.targets.shrink_to_fit();
        self.vtables.shrink_to_fit();
        self.inlined.shrink_to_fit();
        for inlined in &mut self.inlined {
            inlined.samples.shrink_to_fit();
        }
    }

    /// Sorts the vectors by their keys. Entries with equal keys keep their order.
    pub fn sort(&mut self) {
        self.body.sort_by_key(|line| line.location);
        self.targets
            .sort_by_key(|target| (target.location, target.name));
        self.vtables
            .sort_by_key(|target| (target.location, target.name));
        self.inlined
            .sort_by_key(|inlined| (inlined.location, inlined.samples.name));
    }

    /// Returns the call targets at a location.
    pub fn targets_at(&self, location: Location) -> &[Target] {
        at_location(&self.targets, location)
    }

    /// Returns the vtables that were loaded at a location.
    pub fn vtables_at(&self, location: Location) -> &[Target] {
        at_location(&self.vtables, location)
    }
}

fn at_location(list: &[Target], location: Location) -> &[Target] {
    let start = list.partition_point(|target| target.location < location);
    let rest = list.get(start..).unwrap_or_default();
    let len = rest.partition_point(|target| target.location == location);
    rest.get(..len).unwrap_or_default()
}
