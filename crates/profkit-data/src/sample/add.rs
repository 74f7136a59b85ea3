//! Adding to samples: counts saturate, vectors stay sorted.
use super::late::{Entry, PendingEntries};
use super::model::{Inlined, Location, Samples, Target};
use super::names::NameId;

/// What did not go smoothly while adding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOutcome {
    /// How many counts would have exceeded 2^64 − 1 and stay there.
    pub overflows: u64,
    /// How many functions, inlined or not, were left out because their checksums differ.
    pub mismatches: u64,
    /// How many functions that were there without a checksum took over that of later samples. What LLVM's rule makes of
    /// such functions depends on the order of inputs.
    pub adopted: u64,
}

impl AddOutcome {
    /// Adds what happened elsewhere.
    pub fn absorb(&mut self, other: AddOutcome) {
        self.overflows += other.overflows;
        self.mismatches += other.mismatches;
        self.adopted += other.adopted;
    }

    /// Whether samples of this checksum are left out of a function; one without a checksum takes it over.
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

    /// `sum += count * weight`, saturating.
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

/// Adds to one [`Samples`] entry by entry. Additions in the order of the vectors find their place without a search; in
/// another order they may reach the vectors only when this is dropped.
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
    /// Goes on where additions were [paused](Self::pause).
    #[inline]
    pub(super) fn resume(samples: &'s mut Samples, pending: PendingEntries) -> Self {
        Adding { samples, pending }
    }

    /// Stops adding for now. What is given back belongs into the samples: in the end it goes to
    /// [`resume`](Self::resume), and what that gives is dropped.
    #[inline]
    pub(super) fn pause(mut self) -> Option<PendingEntries> {
        if self.pending.is_complete() {
            return None;
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_in_many(self.samples);
        (!pending.is_complete()).then_some(pending)
    }

    /// The samples, for what is no vector: some of these may lack entries yet.
    #[inline]
    pub fn samples(&mut self) -> &mut Samples {
        self.samples
    }

    /// Adds samples of a line.
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

    /// Adds samples of a call target. Its line is to be added too.
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

    /// Adds samples of a vtable.
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

    /// The samples of a function inlined at a place, added if it is new, and whether it is.
    #[inline]
    pub fn inlined_at(&mut self, location: Location, name: NameId) -> (&mut Samples, bool) {
        let list = &mut self.samples.inlined;
        let (inlined, is_new) = self.pending.inlined.find_or_add(list, (location, name));
        (&mut inlined.samples, is_new)
    }

    /// Lets `add` add to a function inlined at a place; its second argument says whether that is new.
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

    /// Adds other samples of the same function, `names` giving for each of their names the name here. LLVM's
    /// `FunctionSamples::merge`: where checksums differ nothing is added. `is_new` is whether these were made for these
    /// samples; its name and attributes are the caller's to set.
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
    /// The samples of a function inlined at a place, added if it is new.
    pub fn inlined_at(&mut self, location: Location, name: NameId) -> &mut Samples {
        let found = self
            .inlined
            .binary_search_by_key(&(location, name), Entry::key);
        let (Ok(at) | Err(at)) = found;
        if found.is_err() {
            self.inlined.insert(at, Inlined::empty((location, name)));
        }
        #[expect(clippy::indexing_slicing, reason = "found or inserted there")]
        &mut self.inlined[at].samples
    }

    /// Adds to these samples entry by entry.
    #[inline]
    pub fn adding(&mut self) -> Adding<'_> {
        Adding::resume(self, PendingEntries::default())
    }

    /// Gives back memory that vectors hold for growing.
    pub(super) fn shrink_to_fit(&mut self) {
        self.body.shrink_to_fit();
        self.targets.shrink_to_fit();
        self.vtables.shrink_to_fit();
        self.inlined.shrink_to_fit();
        for inlined in &mut self.inlined {
            inlined.samples.shrink_to_fit();
        }
    }

    /// Brings the vectors into order. Of two entries of one key the first stays where it was before the second.
    pub fn sort(&mut self) {
        self.body.sort_by_key(|line| line.location);
        self.targets
            .sort_by_key(|target| (target.location, target.name));
        self.vtables
            .sort_by_key(|target| (target.location, target.name));
        self.inlined
            .sort_by_key(|inlined| (inlined.location, inlined.samples.name));
    }

    /// The targets called at a place.
    pub fn targets_at(&self, location: Location) -> &[Target] {
        at_location(&self.targets, location)
    }

    /// The vtables seen at a place.
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
