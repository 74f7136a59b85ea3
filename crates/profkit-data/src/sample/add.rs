//! Adding to samples: counts saturate, vectors stay sorted.
use super::model::{BodyLine, Inlined, Location, Samples, Target};
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

/// Where in the vectors of one [`Samples`] the last additions went. Additions in the order of the vectors find their
/// place without a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    body: usize,
    targets: usize,
    inlined: usize,
    vtables: usize,
}

/// The place of a key in a sorted vector, from a guess: where it is, or where it belongs.
#[inline]
fn place<T, K: Ord>(
    list: &[T],
    hint: usize,
    key: K,
    key_of: impl Fn(&T) -> K,
) -> Result<usize, usize> {
    let after_hint = hint == 0 || list.get(hint - 1).is_some_and(|item| key_of(item) < key);
    if after_hint {
        match list.get(hint) {
            None if hint == list.len() => return Err(hint),
            Some(item) if key_of(item) == key => return Ok(hint),
            Some(item) if key_of(item) > key => return Err(hint),
            _ => {}
        }
    }
    list.binary_search_by(|item| key_of(item).cmp(&key))
}

impl Samples {
    /// Adds samples of a line.
    #[inline]
    pub fn add_line(
        &mut self,
        hints: &mut Hints,
        location: Location,
        samples: u64,
        weight: u64,
        outcome: &mut AddOutcome,
    ) {
        let at = match place(&self.body, hints.body, location, |line| line.location) {
            Ok(at) => at,
            Err(at) => {
                let line = BodyLine {
                    location,
                    samples: 0,
                };
                self.body.insert(at, line);
                at
            }
        };
        hints.body = at + 1;
        if let Some(line) = self.body.get_mut(at) {
            outcome.accumulate(&mut line.samples, samples, weight);
        }
    }

    /// Adds samples of a call target. Its line is to be added too.
    #[inline]
    pub fn add_target(
        &mut self,
        hints: &mut Hints,
        location: Location,
        name: NameId,
        count: u64,
        weight: u64,
        outcome: &mut AddOutcome,
    ) {
        let at = add_to(&mut self.targets, hints.targets, location, name);
        hints.targets = at + 1;
        if let Some(target) = self.targets.get_mut(at) {
            outcome.accumulate(&mut target.count, count, weight);
        }
    }

    /// Adds samples of a vtable.
    #[inline]
    pub fn add_vtable(
        &mut self,
        hints: &mut Hints,
        location: Location,
        name: NameId,
        count: u64,
        weight: u64,
        outcome: &mut AddOutcome,
    ) {
        let at = add_to(&mut self.vtables, hints.vtables, location, name);
        hints.vtables = at + 1;
        if let Some(target) = self.vtables.get_mut(at) {
            outcome.accumulate(&mut target.count, count, weight);
        }
    }

    /// The samples of a function inlined at a place, added if it is new, and whether it is.
    #[inline]
    pub fn inlined_at(
        &mut self,
        hints: &mut Hints,
        location: Location,
        name: NameId,
    ) -> (&mut Samples, bool) {
        let found = place(&self.inlined, hints.inlined, (location, name), |inlined| {
            (inlined.location, inlined.samples.name)
        });
        let (Ok(at) | Err(at)) = found;
        hints.inlined = at + 1;
        if found.is_err() {
            let mut inlined = Inlined {
                location,
                ..Inlined::default()
            };
            inlined.samples.name = name;
            // Most functions inline one or two, which are large.
            if self.inlined.len() == self.inlined.capacity() {
                self.inlined.reserve_exact(self.inlined.len() / 2 + 1);
            }
            self.inlined.insert(at, inlined);
        }
        #[expect(clippy::indexing_slicing, reason = "found or inserted there")]
        (&mut self.inlined[at].samples, found.is_err())
    }

    /// Adds other samples of the same function, `names` giving for each of their names the name here. LLVM's
    /// `FunctionSamples::merge`: where checksums differ nothing is added. `is_new` is whether `self` was made for these
    /// samples; its name and attributes are the caller's to set.
    pub fn merge(
        &mut self,
        other: &Samples,
        is_new: bool,
        names: impl Fn(NameId) -> NameId + Copy,
        weight: u64,
        outcome: &mut AddOutcome,
    ) {
        if outcome.is_mismatch(&mut self.checksum, is_new, other.checksum) {
            return;
        }
        outcome.accumulate(&mut self.total, other.total, weight);
        outcome.accumulate(&mut self.head, other.head, weight);
        if self.body.is_empty() && self.inlined.is_empty() {
            self.body.reserve_exact(other.body.len());
            self.targets.reserve_exact(other.targets.len());
            self.inlined.reserve_exact(other.inlined.len());
        }
        let hints = &mut Hints::default();
        for line in &other.body {
            self.add_line(hints, line.location, line.samples, weight, outcome);
        }
        for target in &other.targets {
            let name = names(target.name);
            self.add_target(hints, target.location, name, target.count, weight, outcome);
        }
        for target in &other.vtables {
            let name = names(target.name);
            self.add_vtable(hints, target.location, name, target.count, weight, outcome);
        }
        for inlined in &other.inlined {
            let name = names(inlined.samples.name);
            let (samples, is_new) = self.inlined_at(hints, inlined.location, name);
            if is_new {
                samples.attributes = inlined.samples.attributes;
            }
            samples.merge(&inlined.samples, is_new, names, weight, outcome);
        }
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

#[inline]
fn add_to(list: &mut Vec<Target>, hint: usize, location: Location, name: NameId) -> usize {
    match place(list, hint, (location, name), |item| {
        (item.location, item.name)
    }) {
        Ok(at) => at,
        Err(at) => {
            let target = Target {
                location,
                name,
                count: 0,
            };
            list.insert(at, target);
            at
        }
    }
}

fn at_location(list: &[Target], location: Location) -> &[Target] {
    let start = list.partition_point(|target| target.location < location);
    let rest = list.get(start..).unwrap_or_default();
    let len = rest.partition_point(|target| target.location == location);
    rest.get(..len).unwrap_or_default()
}
