//! Parts of merges: sums of inputs, written down so that they can be added up anywhere, in any order.
//!
//! A part holds everything that a merge knows before it decides anything: an indexed profile has lost the report, the
//! records that contradict each other, values beyond the limit of a site, and which inputs are in it. A [`Merger`] adds
//! profiles and parts up, and gives a part or the merged profile. The profile is a function of the set of inputs: it has
//! the same bytes as a merge with [`MergeOptions::order_free`] of all inputs at once.
//!
//! Each input has an id ([`Inputs::id`]). An input whose id is there already is not added again, and a part whose
//! inputs are all there is left out. A part of which some inputs are there is an error, because sums cannot be taken
//! apart.
//!
//! ```
//! use profkit_files::Shard;
//! use profkit_merge::part::Merger;
//! use profkit_merge::{MergeOptions, Weight};
//!
//! let shard = |id: &str, bytes: &'static [u8]| Shard {
//!     id: id.to_owned(),
//!     name: format!("{id}.profraw"),
//!     weight: Weight::ONE,
//!     bytes,
//! };
//! let options = MergeOptions::new();
//! let mut here = Merger::new(options.clone())?;
//! here.add(&[shard("monday", b":ir\nmain\n1234\n1\n90\n")])?;
//! let mut there = Merger::new(options.clone())?;
//! there.add(&[shard("tuesday", b":ir\nmain\n1234\n1\n10\n")])?;
//!
//! let mut all = Merger::new(options)?;
//! all.add_part("here", &here.encode()?)?;
//! all.add_part("there", &there.encode()?)?;
//! // Delivered again, the shard does not count again.
//! all.add(&[shard("monday", b":ir\nmain\n1234\n1\n90\n")])?;
//! let merged = all.finish_instr()?;
//! let function = merged.profiles[0].profile.tables[0].functions().next().unwrap();
//! assert_eq!(function.records().next().unwrap().counts, [100]);
//! assert_eq!(merged.report.totals.files, 2);
//! # Ok::<(), profkit_merge::MergeError>(())
//! ```
mod bytes;
mod decode;
mod encode;
mod error;
mod heap;
mod inputs;
mod instr;
mod key;
mod mip;
mod samples;
mod sum;
mod unsound;

use crate::MergeOutcome;
use crate::driver::{InputStore, RunOptions, Threads};
use crate::engine;
use crate::error::MergeError;
use crate::families::{Merged, family_of};
use crate::mip::{self as mip_engine, MipMergeOptions, MipOutcome, MipTarget};
use crate::options::{MergeOptions, Policy, ValueWeights};
use crate::report::Report;
use crate::sample::{self, SampleMergeOptions, SampleOutcome};
use decode::Decoded;
pub(crate) use decode::find_inputs;
pub use decode::{PartFacts, VERSION, examine};
pub use error::PartError;
use inputs::{Entry, Found, Names, Taken, unite};
pub(crate) use inputs::{StoredInputs, content_of, id_of};
use key::Key;
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::sample::SampleReadOptions;
use profkit_files::{InputData, Inputs, Subset, is_named_as_profile, portable_name};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::fmt;
use std::path::Path;
use sum::Sum;
pub(crate) use unsound::Unsound;

/// The smallest number of inputs that are looked at before a merge, and how many of them one is looked at of.
const LOOKED_AT: (usize, usize) = (16, 20);

/// Whether inputs must be merged by the rules of parts, as far as this shows before the merge.
///
/// A merge that meets a part stops there and begins again, which costs time, and which it cannot if an input is a pipe. So the
/// first bytes of inputs are looked at, but not of those whose names say which kind of profile they are, and of many inputs only
/// of some: opening each file twice would take a quarter of the time of a merge of many small ones.
pub(crate) fn is_for(
    inputs: &InputStore<'_>,
    order_free: bool,
    policy: Policy,
    run: &RunOptions,
) -> bool {
    if order_free || policy == Policy::Llvm || run.is_cancelled() {
        return order_free;
    }
    let can_reopen = (0..inputs.len()).all(|index| inputs.can_reopen(index));
    let most = match can_reopen {
        true => LOOKED_AT.0.max(inputs.len() / LOOKED_AT.1),
        false => inputs.len(),
    };
    let says_nothing =
        |index: &usize| !can_reopen || !is_named_as_profile(Path::new(&*inputs.name(*index)));
    let mut looked_at = (0..inputs.len()).filter(says_nothing).take(most);
    looked_at.any(|index| is_part(inputs, index))
}

fn is_part(inputs: &InputStore<'_>, index: usize) -> bool {
    let Ok(front) = inputs.first_bytes(index, 64) else {
        return false;
    };
    let kind = match detect(&front) {
        // Compressed.
        FileKind::Foreign(_) => inputs.kind(index),
        kind => Ok(kind),
    };
    matches!(kind, Ok(FileKind::Part(_)))
}

/// Inputs that a thread looks at before it gets others.
const LOOKED_AT_ONCE: usize = 64;

/// The indexes of the parts among inputs, by their first bytes.
fn parts_among(inputs: &InputStore<'_>, threads: &Threads) -> Vec<usize> {
    let found = threads.run(inputs.len().div_ceil(LOOKED_AT_ONCE), |number| {
        let first = number * LOOKED_AT_ONCE;
        let some = first..inputs.len().min(first + LOOKED_AT_ONCE);
        some.filter(|&index| is_part(inputs, index))
            .collect::<Vec<_>>()
    });
    found.concat()
}

/// Merges sample profiles, among which may be parts.
pub(crate) fn merge_samples(
    inputs: &dyn Inputs,
    options: &SampleMergeOptions,
) -> Result<SampleOutcome, MergeError> {
    let mut merger = Merger::of_samples(options.clone())?;
    merger.add(inputs)?;
    merger.finish_samples()
}

/// Merges inputs that are not sample profiles, among which may be parts.
pub(crate) fn merge(
    inputs: &dyn Inputs,
    options: &MergeOptions,
) -> Result<MergeOutcome, MergeError> {
    let store = InputStore::new(inputs);
    let mut options = options.clone();
    if !options.order_free {
        // The parts among the inputs ask for these rules, and not the user.
        options.value_weights = ValueWeights::Exact;
    }
    let mut merger = Merger::of_instr(options)?;
    let parts = parts_among(&store, &merger.options.run.threads);
    if !parts.is_empty() {
        merger.add_as(Family::Instr, &store, &parts)?;
        return merger.finish_instr();
    }
    // Without parts nothing need be numbered again.
    let all = (0..store.len()).collect();
    let (kept, repeated) = choose(merger.identify(&store, all), &store)?;
    let order: Vec<usize> = kept.iter().filter_map(Candidate::index).collect();
    let ordered = Subset::new(&store, order.clone());
    let mut outcome = engine::merge_order_free(&ordered, &merger.options)?;
    for input in outcome.profiles.iter_mut().flat_map(|one| &mut one.inputs) {
        *input = order.get(*input).copied().unwrap_or(*input);
    }
    for profile in &mut outcome.profiles {
        profile.inputs.sort_unstable();
    }
    outcome.report.repeated = repeated;
    forget_kinds(&mut outcome.report);
    Ok(outcome)
}

/// Parts do not hold the kinds of files, so a front end must not give other hints where inputs came in none.
fn forget_kinds(report: &mut Report) {
    for event in &mut report.events {
        event.kind = None;
    }
}

/// Adds profiles and parts up.
pub struct Merger {
    options: MergeOptions,
    samples: SampleMergeOptions,
    targets: Vec<MipTarget>,
    mip: MipMergeOptions,
    /// The family of the profiles; `None` if the first sound input decides it.
    family: Option<Family>,
    /// The options that decide the content of a part. `None` as long as nothing was added.
    key: Option<Key>,
    entries: Vec<Entry>,
    /// `None` as long as nothing was added.
    sum: Option<Sum>,
    repeated: Vec<String>,
    /// The first input without an id.
    unnamed: Option<String>,
}

impl fmt::Debug for Merger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merger")
            .field("options", &self.options)
            .field("inputs", &self.entries.len())
            .finish_non_exhaustive()
    }
}

/// A sum that may be added, with its inputs.
struct Candidate<'a> {
    name: String,
    entries: Vec<Entry>,
    what: What<'a>,
}

enum What<'a> {
    /// The sum that the merger has.
    Own,
    Part(Box<Decoded<'a>>),
    /// The input with this index.
    Plain(usize),
}

impl Candidate<'_> {
    fn index(&self) -> Option<usize> {
        match self.what {
            What::Plain(index) => Some(index),
            What::Own | What::Part(_) => None,
        }
    }
}

/// Leaves out what other candidates hold, and returns the names of that. Of the rest, those that are single inputs have
/// the order of a report.
fn choose<'a>(
    mut candidates: Vec<Candidate<'a>>,
    plain: &InputStore<'_>,
) -> Result<(Vec<Candidate<'a>>, Vec<String>), PartError> {
    let mut times: FxHashMap<u64, usize> = FxHashMap::default();
    for entry in candidates.iter().flat_map(|one| &one.entries) {
        *times.entry(entry.id).or_default() += 1;
    }
    // The content of a single input is not known before it is read; here only that of repeated ones matters.
    for candidate in &mut candidates {
        let Some(index) = candidate.index() else {
            continue;
        };
        for entry in &mut candidate.entries {
            if times.get(&entry.id).is_some_and(|&times| times > 1) {
                entry.content = content_at(plain, index);
            }
        }
    }
    // The largest come first, because they may hold what smaller ones hold too.
    candidates.sort_by(|a, b| {
        let fewer = Reverse(a.entries.len()).cmp(&Reverse(b.entries.len()));
        fewer.then_with(|| a.entries.cmp(&b.entries))
    });
    let mut taken = Taken::default();
    let (mut kept, mut repeated) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match taken.take(&candidate.name, &candidate.entries)? {
            Found::New => kept.push(candidate),
            Found::Repeated if matches!(candidate.what, What::Own) => {}
            Found::Repeated => repeated.push(candidate.name),
        }
    }
    repeated.sort_unstable();
    Ok((kept, repeated))
}

fn content_at(inputs: &InputStore<'_>, index: usize) -> u64 {
    let weight = inputs.weight(index);
    let content = inputs.peek(index, |bytes| content_of(bytes, weight));
    content.unwrap_or(0)
}

impl Merger {
    /// Makes a sum of nothing. The first sound input decides the family of the profiles; sample profiles are merged with
    /// those options that they have too.
    ///
    /// # Errors
    /// [`PartError::Options`] for options whose result depends on the order of inputs: [`Policy::Llvm`] and
    /// [`ValueWeights::AsLlvm`].
    pub fn new(options: MergeOptions) -> Result<Self, MergeError> {
        if options.policy == Policy::Llvm {
            return Err(PartError::Options("LLVM's policy").into());
        }
        if options.value_weights == ValueWeights::AsLlvm {
            return Err(PartError::Options("LLVM's rule for the weights of values").into());
        }
        Ok(Merger {
            samples: SampleMergeOptions::like(&options),
            targets: Vec::new(),
            mip: MipMergeOptions::new()
                .run(options.run.clone())
                .take_profiles(true),
            family: None,
            options: options.order_free(true),
            key: None,
            entries: Vec::new(),
            sum: None,
            repeated: Vec::new(),
            unnamed: None,
        })
    }

    /// Sets how sample profiles are read, and whether their lists of symbols are left out. [`new`](Self::new) knows only the
    /// options that all profiles have.
    #[must_use]
    pub fn sample_options(mut self, read: SampleReadOptions, drop_symbols: bool) -> Self {
        self.samples.read = read;
        self.samples.drop_symbols = drop_symbols;
        self
    }

    /// Makes a sum of nothing, for instrumentation profiles only.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn of_instr(options: MergeOptions) -> Result<Self, MergeError> {
        Ok(Merger {
            family: Some(Family::Instr),
            ..Self::new(options)?
        })
    }

    /// Makes a sum of nothing, for sample profiles only.
    ///
    /// # Errors
    /// [`PartError::Options`] for [`Policy::Llvm`], whose result depends on the order of inputs.
    pub fn of_samples(options: SampleMergeOptions) -> Result<Self, MergeError> {
        let like = MergeOptions::new().policy(options.policy);
        Ok(Merger {
            family: Some(Family::Sample),
            samples: options,
            ..Self::new(like)?
        })
    }

    /// Makes a sum of nothing, for MIP files only. `targets` are the profiles of their builds; the counts that they have are
    /// not part of the sum, and [`finish_mip`](Self::finish_mip) adds the sum to them.
    pub fn of_mip(targets: Vec<MipTarget>, options: MipMergeOptions) -> Self {
        Merger {
            family: Some(Family::Mip),
            targets,
            mip: options,
            options: MergeOptions::new().order_free(true),
            samples: SampleMergeOptions::new(),
            key: None,
            entries: Vec::new(),
            sum: None,
            repeated: Vec::new(),
            unnamed: None,
        }
    }

    /// The number of inputs that were added, those of parts among them.
    pub fn inputs(&self) -> usize {
        self.entries.len()
    }

    /// Adds inputs: profiles, and parts of merges. The first sound one decides the family of the sum. Those that are there
    /// already are left out, and so are parts that hold nothing else. Adding many inputs at once is faster than adding one
    /// after the other.
    ///
    /// # Errors
    /// [`MergeError::Part`] and [`MergeError::Cancelled`]; nothing was added then. An input that cannot be read is no
    /// error: the report of the result has it.
    pub fn add(&mut self, inputs: &(impl Inputs + ?Sized)) -> Result<(), MergeError> {
        let store = InputStore::new(&inputs);
        let family = self.family().unwrap_or_else(|| family_of(&store));
        let parts = parts_among(&store, &self.options.run.threads);
        self.add_as(family, &store, &parts)
    }

    /// The family that the profiles must have. `None` if no input was sound and none is asked for.
    pub fn family(&self) -> Option<Family> {
        let sum = self.sum.as_ref().filter(|sum| !sum.is_neutral());
        self.family.or(sum.map(Sum::family))
    }

    /// Adds inputs. `found` has the indexes of the parts among them, in order.
    fn add_as(
        &mut self,
        family: Family,
        store: &InputStore<'_>,
        found: &[usize],
    ) -> Result<(), MergeError> {
        let mut opened: Vec<(usize, InputData<'_>)> = Vec::new();
        let mut plain = Vec::new();
        for index in 0..store.len() {
            let is_part = found.binary_search(&index).is_ok();
            match is_part.then(|| store.take(index, &mut Vec::new())) {
                Some(Ok(data)) => opened.push((index, data)),
                _ => plain.push(index),
            }
        }
        let mut parts = Vec::new();
        let mut unread = Vec::new();
        for (index, data) in &opened {
            let name = store.name(*index).into_owned();
            match Decoded::parse(data.as_ref()) {
                Ok(_) if !store.weight(*index).is_one() => {
                    return Err(PartError::Weight { name }.into());
                }
                Ok(part) => parts.push((name, part)),
                // The reader of profiles says what is wrong with it.
                Err(_) => unread.push(*index),
            }
        }
        plain.extend(&unread);
        let kept = InputStore::new(store);
        for (index, data) in &opened {
            if unread.contains(index) {
                kept.keep(*index, InputData::Borrowed(data.as_ref()));
            }
        }
        self.add_all(family, parts, &kept, plain)
    }

    /// Adds a part.
    ///
    /// # Errors
    /// [`MergeError::Part`]: [`PartError::Damaged`] also for bytes that are no part. Nothing was added then.
    pub fn add_part(&mut self, name: &str, bytes: &[u8]) -> Result<(), MergeError> {
        let part = Decoded::parse(bytes).map_err(|error| PartError::Damaged {
            name: name.to_owned(),
            error: Box::new(error),
        })?;
        let none = InputStore::new(&NO_INPUTS);
        let family = self.family().unwrap_or(part.family);
        self.add_all(family, vec![(name.to_owned(), part)], &none, Vec::new())
    }

    fn add_all(
        &mut self,
        family: Family,
        parts: Vec<(String, Decoded<'_>)>,
        inputs: &InputStore<'_>,
        plain: Vec<usize>,
    ) -> Result<(), MergeError> {
        if self.options.normalize && !plain.is_empty() {
            return Err(PartError::Normalize.into());
        }
        let other = |(_, part): &&(String, Decoded<'_>)| part.family != family;
        let known = parts.iter().filter(|(_, part)| !part.is_neutral());
        if let Some((name, part)) = known.clone().find(other) {
            return Err(PartError::OtherFamily {
                name: name.clone(),
                found: part.family,
                expected: family,
            }
            .into());
        }
        let key = self.key_with(family, known, !plain.is_empty())?;
        let mut candidates = self.identify(inputs, plain);
        let unnamed = candidates.iter().find(|one| one.name.is_empty());
        let unnamed = unnamed
            .and_then(|one| one.entries.first())
            .map(|entry| entry.name.clone());
        candidates.extend(parts.into_iter().map(|(name, part)| Candidate {
            name,
            entries: part.entries.clone(),
            what: What::Part(Box::new(part)),
        }));
        if !self.entries.is_empty() {
            candidates.push(Candidate {
                name: "the inputs before".to_owned(),
                entries: self.entries.clone(),
                what: What::Own,
            });
        }
        let (kept, repeated) = choose(candidates, inputs)?;
        let order: Vec<usize> = kept.iter().filter_map(Candidate::index).collect();
        let mut sums: Vec<(Vec<Entry>, Sum)> = Vec::new();
        let mut entries = Vec::new();
        let mut own = false;
        for candidate in kept {
            match candidate.what {
                What::Own => own = true,
                What::Plain(_) => entries.extend(candidate.entries),
                What::Part(part) => {
                    let sum = part.sum().map_err(|error| PartError::Damaged {
                        name: candidate.name,
                        error: Box::new(error),
                    })?;
                    sums.push((candidate.entries, sum));
                }
            }
        }
        if !order.is_empty() {
            let ordered = Subset::new(inputs, order);
            let sum = self.collect(family, &ordered)?;
            for &(input, content) in sum.contents() {
                let entry = entries.get_mut(input);
                entry
                    .into_iter()
                    .for_each(|entry: &mut Entry| entry.content = content);
            }
            sums.push((entries, sum));
        }
        match &self.sum {
            // The others may contradict it, and then it must stay as it is.
            Some(Sum::Mip(sum)) if own => {
                sums.push((self.entries.clone(), Sum::Mip(sum.clone())));
            }
            _ if own => sums.extend(
                self.sum
                    .take()
                    .map(|sum| (std::mem::take(&mut self.entries), sum)),
            ),
            _ => {}
        }
        let lists: Vec<&[Entry]> = sums.iter().map(|(entries, _)| &**entries).collect();
        let (united, numbers) = unite(&lists);
        let mut all = Sum::of(family);
        for ((_, mut sum), numbers) in sums.into_iter().zip(numbers) {
            if sum.family() != family {
                sum = Sum::of_report(family, sum.into_report());
            }
            sum.renumber(&|input| numbers.get(input).copied().unwrap_or(input));
            all.absorb(sum, &key);
        }
        if let Sum::Mip(sum) = &mut all
            && let Some(build) = sum.contradiction.take()
        {
            let build = build.to_string();
            return Err(PartError::Contradiction { build }.into());
        }
        self.entries = united;
        self.sum = Some(all);
        self.key = Some(key);
        self.repeated.extend(repeated);
        self.unnamed = self.unnamed.take().or(unnamed);
        Ok(())
    }

    /// Reads inputs that are no parts.
    fn collect(&self, family: Family, inputs: &dyn Inputs) -> Result<Sum, MergeError> {
        if family == Family::Sample {
            return sample::collect(inputs, &self.samples).map(Sum::Sample);
        }
        if family == Family::Mip {
            let mut targets = self.targets.iter();
            if let Some(one) = targets.find(|one| one.profile.identity.is_unknown()) {
                let name = one.name.clone();
                return Err(PartError::UnknownBuild { name }.into());
            }
            return mip_engine::collect(&self.targets, inputs, &self.mip).map(Sum::Mip);
        }
        engine::collect(inputs, &self.options).map(Sum::Instr)
    }

    /// The options that decide the content of a part of this family, and what they are by default.
    fn own_key(&self, family: Family) -> [Key; 2] {
        match family {
            Family::Sample => [&self.samples, &SampleMergeOptions::new()].map(Key::of_samples),
            Family::Mip => [Key::of_mip(), Key::of_mip()],
            _ => [&self.options, &MergeOptions::new()].map(Key::of_instr),
        }
    }

    /// The options of parts that these parts and the sum have in common.
    fn key_with<'p>(
        &self,
        family: Family,
        parts: impl Iterator<Item = &'p (String, Decoded<'p>)>,
        has_plain: bool,
    ) -> Result<Key, PartError> {
        let [own, default] = self.own_key(family);
        let is_known = self.family() == Some(family);
        let mut expected = self.key.clone().filter(|_| is_known);
        if has_plain || own != default {
            if let Some(other) = expected.filter(|other| *other != own) {
                return Err(PartError::OtherOptions {
                    name: "the inputs before".to_owned(),
                    found: other.to_string(),
                    expected: own.to_string(),
                });
            }
            expected = Some(own.clone());
        }
        for (name, part) in parts {
            // A part that is finished without other options has its own.
            let expected = expected.get_or_insert_with(|| part.key.clone());
            if *expected != part.key {
                return Err(PartError::OtherOptions {
                    name: name.clone(),
                    found: part.key.to_string(),
                    expected: expected.to_string(),
                });
            }
        }
        Ok(expected.unwrap_or(own))
    }

    /// The inputs with these indexes. Those without an id have no name here: only their entries have.
    fn identify(&self, inputs: &InputStore<'_>, indexes: Vec<usize>) -> Vec<Candidate<'static>> {
        let mut same: FxHashMap<(u64, String), u64> = FxHashMap::default();
        let mut identify = |index: usize| {
            // A part must not show on which system it was made.
            let name = portable_name(&inputs.name(index)).into_owned();
            if let Some(id) = inputs.id(index) {
                return (name.clone(), name, id_of(&id));
            }
            // Equal inputs of equal names are told apart by their number, so that each counts.
            let content = content_at(inputs, index);
            let times = same.entry((content, name.clone())).or_default();
            *times += 1;
            let earlier = self.entries.len();
            let id = format!("content {content:016x} {name} {earlier} {times}");
            (String::new(), name, id_of(&id))
        };
        let candidates = indexes.into_iter().map(|index| {
            let (candidate, name, id) = identify(index);
            Candidate {
                name: candidate,
                entries: vec![Entry {
                    name,
                    id,
                    content: 0,
                }],
                what: What::Plain(index),
            }
        });
        candidates.collect()
    }

    /// Encodes the sum as a part.
    ///
    /// # Errors
    /// [`PartError::NoId`] if an input has no id.
    pub fn encode(&self) -> Result<Vec<u8>, MergeError> {
        if let Some(name) = &self.unnamed {
            return Err(PartError::NoId { name: name.clone() }.into());
        }
        let [own, _] = self.own_key(self.sum.as_ref().map_or(Family::Instr, Sum::family));
        let key = self.key.clone().unwrap_or(own);
        let none = Sum::of(Family::Instr);
        let sum = self.sum.as_ref().unwrap_or(&none);
        encode::encode(&key, &self.entries, sum).map_err(|error| {
            PartError::Damaged {
                name: "the sum".to_owned(),
                error: Box::new(error),
            }
            .into()
        })
    }

    /// Finishes the merge.
    ///
    /// # Errors
    /// Those of [`merge_instr`](crate::merge_instr), [`merge_sample`](crate::sample::merge_sample) or
    /// [`merge_mip`](crate::mip::merge_mip).
    pub fn finish(self) -> Result<Merged, MergeError> {
        let Some(sum) = self.sum.filter(|_| !self.entries.is_empty()) else {
            return Err(MergeError::NoInputs);
        };
        let names = Names(&self.entries);
        let mut merged = match sum {
            Sum::Instr(sum) => {
                let mut options = self.options;
                options.normalize = false;
                if let Some(key) = self.key {
                    options.traces = key.traces;
                    options.separate_by_build_id = key.separate;
                }
                let mut outcome = engine::finish_collected(&names, &options, sum)?;
                // The numbers of inputs in parts mean nothing to the caller.
                for profile in &mut outcome.profiles {
                    profile.inputs.clear();
                }
                Merged::Instr(outcome)
            }
            Sum::Sample(sum) => Merged::Sample(sum.finish(&names, &self.samples)?),
            Sum::Mip(sum) => Merged::Mip(sum.finish(self.targets, &names, &self.mip)),
        };
        let report = merged.report_mut();
        report.repeated = self.repeated;
        forget_kinds(report);
        Ok(merged)
    }

    /// Finishes a merge of instrumentation profiles.
    ///
    /// # Errors
    /// Those of [`merge_instr`](crate::merge_instr); [`MergeError::NoInputs`] if the inputs are sample profiles.
    pub fn finish_instr(self) -> Result<MergeOutcome, MergeError> {
        match self.finish()? {
            Merged::Instr(outcome) => Ok(outcome),
            _ => Err(MergeError::NoInputs),
        }
    }

    /// Finishes a merge of sample profiles.
    ///
    /// # Errors
    /// Those of [`merge_sample`](crate::sample::merge_sample); [`MergeError::NoInputs`] if the inputs are others.
    pub fn finish_samples(self) -> Result<SampleOutcome, MergeError> {
        match self.finish()? {
            Merged::Sample(outcome) => Ok(outcome),
            _ => Err(MergeError::NoInputs),
        }
    }

    /// Finishes a merge of MIP files.
    ///
    /// # Errors
    /// [`MergeError::NoInputs`] if the inputs are others, or none.
    pub fn finish_mip(self) -> Result<MipOutcome, MergeError> {
        match self.finish()? {
            Merged::Mip(outcome) => Ok(outcome),
            _ => Err(MergeError::NoInputs),
        }
    }

    /// The ids of the inputs that could not be read.
    pub(crate) fn unread(&self) -> impl Iterator<Item = u64> {
        let unread = self.entries.iter().filter(|entry| entry.content == 0);
        unread.map(|entry| entry.id)
    }

    /// The names of inputs and parts that were left out, because their counts are there already.
    pub fn repeated(&self) -> &[String] {
        &self.repeated
    }
}

const NO_INPUTS: [&[u8]; 0] = [];
