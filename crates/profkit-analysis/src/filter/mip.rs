//! MIP profiles cut down.
use super::choice::{self, Candidate, largest_fitting, ranked};
use super::{Filter, Filtered, Redaction};
use crate::heat::Heat;
use crate::mip_numbers::MipNumbers;
use profkit_data::Result as DataResult;
use profkit_data::ids::NameRef;
use profkit_data::index_vec::IndexVec;
use profkit_data::mip::{Function, FunctionId, MipProfile, part_of};
use profkit_data::sample::SampleName;
use rustc_hash::{FxHashMap, FxHashSet};

/// The functions that are kept or cut, each with its parts (`F.cold`). A part whose function is not in the profile is one
/// of them too.
struct Units {
    /// The functions; none of them is a part of another.
    functions: Vec<FunctionId>,
    /// For each function of the profile, its place in `functions`, or that of the function that it is a part of.
    places: IndexVec<FunctionId, usize>,
}

impl Units {
    fn of(profile: &MipProfile) -> Self {
        let mut units = Units {
            functions: Vec::new(),
            places: IndexVec::parallel_to(&profile.functions, 0),
        };
        // Several functions may have one name; as a part belongs to one of them, their signatures tell which one.
        let mut whole: FxHashMap<(&[u8], u32), usize> = FxHashMap::default();
        for (id, function) in profile.functions.entries() {
            if !function.is_part() {
                whole.insert((&function.name, function.signature), units.functions.len());
                units.places[id] = units.functions.len();
                units.functions.push(id);
            }
        }
        for (id, function) in profile.functions.entries() {
            if function.is_part() {
                let name = part_of(&function.name).unwrap_or_default();
                let place = whole.get(&(name, function.signature));
                units.places[id] = place.copied().unwrap_or(units.functions.len());
                if place.is_none() {
                    units.functions.push(id);
                }
            }
        }
        units
    }

    fn candidates<'p>(&self, profile: &'p MipProfile) -> Vec<Candidate<'p>> {
        let numbers = MipNumbers::of(profile);
        let functions = self.functions.iter().map(|&id| &profile.functions[id]);
        functions
            .map(|function| Candidate {
                name: &function.name,
                sum: numbers.count(function).into(),
                max: largest(function, &numbers),
                kept: true,
            })
            .collect()
    }

    /// Keeps the functions at these places, and their parts.
    fn retain(&self, profile: &mut MipProfile, keeps: impl Fn(usize) -> bool) -> DataResult<()> {
        profile.retain(|id| keeps(self.places[id]))
    }
}

/// The largest count of a function: of its calls, and of the runs of its blocks.
fn largest(function: &Function, numbers: &MipNumbers) -> u64 {
    let blocks = function.blocks.iter().map(|block| block.runs);
    blocks.max().unwrap_or(0).max(numbers.count(function))
}

impl Filter {
    /// Cuts a MIP profile down. The count of a function is the number of its calls, or of the runs that called it if calls
    /// were not counted ([`MipNumbers`]). The values are the call edges.
    ///
    /// # Errors
    /// If the new names do not fit into the tables of the profile.
    pub fn mip(&self, profile: &mut MipProfile) -> DataResult<Filtered> {
        let mut filtered = Filtered::default();
        if !self.rename.is_empty() {
            let new_name = |name: &[u8]| self.rename.get(name).map(<[u8]>::to_vec);
            profile.rename(new_name, |_| None)?;
        }
        let units = Units::of(profile);
        let kept: Vec<bool> = {
            let mut all = units.candidates(profile);
            let names: Vec<&[u8]> = all.iter().map(|one| one.name).collect();
            let keeps = |index: usize| {
                let name = names.get(index);
                name.is_some_and(|name| self.keeps(SampleName::Text(name)))
            };
            self.choose_by_name(&mut all, keeps, &mut filtered);
            let numbers = MipNumbers::of(profile);
            let is_cold = |index: usize| {
                let function = units.functions.get(index).map(|&id| &profile.functions[id]);
                function.is_none_or(|function| match numbers.heat(function) {
                    Some(heat) => heat <= Heat::Cold,
                    None => largest(function, &numbers) == 0,
                })
            };
            self.choose_cold(&mut all, is_cold, &mut filtered);
            self.choose_hottest(&mut all, &mut filtered);
            filtered.kept = choice::kept(&all);
            all.into_iter().map(|one| one.kept).collect()
        };
        units.retain(profile, |place| kept.get(place) != Some(&false))?;
        if self.drop_values {
            filtered.values = profile.edges.len() as u64;
            profile.edges.clear();
        }
        if let Some(redaction) = &self.redact {
            let parts = profile.functions.iter().filter(|one| one.is_part());
            let parts: FxHashSet<Vec<u8>> = parts.map(|one| one.name.clone()).collect();
            let new_name = |name: &[u8]| Some(redacted(redaction, name, parts.contains(name)));
            profile.rename(new_name, |path| Some(redaction.path(path)))?;
            filtered.redacted = true;
        }
        Ok(filtered)
    }
}

/// The new name of a function. A part keeps what tells of which function it is one.
fn redacted(redaction: &Redaction, name: &[u8], is_part: bool) -> Vec<u8> {
    let whole = part_of(name).filter(|_| is_part).unwrap_or(name);
    let mut new = redaction.name(NameRef::of(whole));
    new.extend_from_slice(name.get(whole.len()..).unwrap_or_default());
    new
}

impl Filtered {
    /// Drops the functions with the fewest calls until the file has at most `limit` bytes. `size` returns the size of the
    /// file of a profile. Returns whether a profile with one function fits.
    ///
    /// # Errors
    /// The errors of `size`, and those of [`Filter::mip`].
    pub fn fit_mip<E: From<profkit_data::Error>>(
        &mut self,
        profile: &mut MipProfile,
        limit: u64,
        mut size: impl FnMut(&MipProfile) -> Result<u64, E>,
    ) -> Result<bool, E> {
        if size(profile)? <= limit {
            return Ok(true);
        }
        let whole = profile.clone();
        let units = Units::of(&whole);
        let all = units.candidates(&whole);
        let order = ranked(&all);
        let cut_to = |profile: &mut MipProfile, count: usize| {
            let kept: FxHashSet<usize> = order.iter().take(count).copied().collect();
            profile.clone_from(&whole);
            units.retain(profile, |place| kept.contains(&place))
        };
        let found = largest_fitting(order.len().saturating_sub(1), |count| {
            cut_to(profile, count)?;
            size(profile).map(|size| size <= limit)
        })?;
        let count = found.unwrap_or(0);
        cut_to(profile, count)?;
        self.cut_after(&all, order.iter().skip(count));
        Ok(found.is_some())
    }
}
