//! Computes for what share of the functions, and of the counts, a profile matches binaries.
use super::binary::{BinaryFunctions, NamedFunctions, Outcome, checksum_of, fits};
use super::profile::{FunctionCounts, ProfileFunctions, each_function, sample_name};
use super::successors::{Successor, find_successors};
use crate::samples::self_samples;
use profkit_data::ids::FuncHash;
use profkit_data::sample::{NameId, SampleName, SampleProfile, Samples};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The hot functions are the functions with the largest counts, which together have this share of all counts (LLVM's
/// `profile-summary-cutoff-hot`).
const HOT_SHARE: f64 = 0.99;

/// The numbers of functions in the binaries: those that match the profile, those that have different hashes in the
/// profile, and those that the profile lacks. Functions that share a name and differ in their hash count one by one. A binary has functions that no profile
/// contains, such as `_start`. So fewer than 100 percent of its functions match even if the profile is fresh.
/// [`CountShares`] has no such gap, because it starts from the functions of the profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FunctionShares {
    /// The number of all functions in the binaries.
    pub total: u64,
    /// The number of functions whose name and hash are in the profile. If the binary has no hash, the name is enough.
    pub matched: u64,
    /// The number of functions whose name is in the profile, but only with different hashes.
    pub changed: u64,
    /// The number of functions that the profile does not have.
    pub unknown: u64,
}

impl FunctionShares {
    /// Counts the functions of one name in the binaries. `known` has the hashes of that name in the profile; `None` if
    /// the profile does not have the name.
    fn add(
        &mut self,
        named: &NamedFunctions,
        known: Option<impl Iterator<Item = Option<FuncHash>> + Clone>,
    ) {
        let with_hash = named.hashes.iter().filter(|hash| hash.is_some()).count() as u64;
        let count = with_hash.max(1);
        self.total += count;
        let Some(mut known) = known else {
            self.unknown += count;
            return;
        };
        let matched = match with_hash {
            0 => u64::from(known.any(|hash| fits(&named.hashes, hash))),
            _ => {
                let any_fits = named.hashes.contains(&None);
                let fits = |own: &&Option<FuncHash>| {
                    let mut known = known.clone();
                    own.is_some() && known.any(|hash| any_fits || hash.is_none() || hash == **own)
                };
                named.hashes.iter().filter(fits).count() as u64
            }
        };
        self.matched += matched;
        self.changed += count - matched;
    }

    /// The share of functions that match, in percent; `None` if the binaries have no functions.
    pub fn matched_percent(&self) -> Option<f64> {
        percent(self.matched.into(), self.total.into())
    }
}

/// The sums of the profile's counts: those that the binaries can use, and those that they cannot use.
///
/// A function is known to have changed only if the binary has hashes
/// ([`Origin::Sections`](profkit_object::functions::Origin::Sections),
/// [`Origin::DebugInfo`](profkit_object::functions::Origin::DebugInfo)). If the binary has only symbols, only names are
/// compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CountShares {
    /// The sum of all counts.
    pub total: u128,
    /// The sum of the counts of functions that match.
    pub matched: u128,
    /// The sum of the counts of functions that the binaries have with a different hash.
    pub changed: u128,
    /// The sum of the counts of functions that the binaries have only inlined into other functions. The hashes of these
    /// functions are not known.
    pub inlined: u128,
    /// The sum of the counts of functions that no binary has.
    pub gone: u128,
    /// The sum of the counts of functions that were inlined everywhere or are gone: a binary without hashes and without
    /// debug info does not show which.
    pub inlined_or_gone: u128,
}

impl CountShares {
    /// The share of counts that match, in percent; `None` if all counts are zero.
    pub fn matched_percent(&self) -> Option<f64> {
        self.percent(self.matched)
    }

    /// Returns what percentage of all counts a part is; `None` if all counts are zero.
    pub fn percent(&self, part: u128) -> Option<f64> {
        percent(part, self.total)
    }
}

/// A hot function of the profile that does not match, or of which it is not known: see [`Outcome::Inlined`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostFunction {
    /// The function's name in the profile.
    pub name: Vec<u8>,
    /// The function's count.
    pub count: u64,
    /// Why the function does not match: any outcome but [`Outcome::Matched`].
    pub outcome: Outcome,
    /// The function's hash; `None` if the profile has none.
    pub hash: Option<FuncHash>,
    /// Whether `name` is the hash of the name as a decimal number, because the profile has only the hash.
    pub is_name_hash: bool,
    /// The function in the binaries that this function has probably become; `None` if no function is a likely
    /// successor.
    pub successor: Option<Successor>,
}

/// How well a profile and binaries match.
///
/// ```
/// use profkit_analysis::matching::{BinaryFunctions, MatchShares, ProfileFunctions};
///
/// let profile = ProfileFunctions::parse(b":ir\nmain\n12\n2\n90\n10\n")?;
/// // A binary that does not have the function: `BinaryFunctions::open` reads one from a file.
/// let binaries = BinaryFunctions::default();
/// let shares = MatchShares::new(&profile, &binaries);
/// assert_eq!(shares.counts.total, 100);
/// assert_eq!(shares.counts.matched_percent(), Some(0.0));
/// assert_eq!(shares.hot_lost[0].name, b"main");
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MatchShares {
    /// How many functions of the binaries match the profile, how many have different hashes in the profile, and how
    /// many the profile lacks.
    pub functions: FunctionShares,
    /// The sums of the profile's counts that the binaries can and cannot use.
    pub counts: CountShares,
    /// Hot functions that do not match. The largest count comes first.
    pub hot_lost: Vec<LostFunction>,
}

impl MatchShares {
    /// Compares a profile with binaries.
    pub fn new(profile: &ProfileFunctions, binaries: &BinaryFunctions) -> Self {
        let mut by_count = match &profile.samples {
            Some(samples) => by_sample(samples, binaries),
            None => by_function(profile, binaries).collect(),
        };
        if binaries.hides_functions() {
            for one in &mut by_count {
                if one.outcome == Outcome::Unknown {
                    one.outcome = Outcome::InlinedOrGone;
                }
            }
        }
        let mut counts = CountShares {
            total: profile.total,
            ..CountShares::default()
        };
        for one in &by_count {
            *match one.outcome {
                Outcome::Matched => &mut counts.matched,
                Outcome::Changed => &mut counts.changed,
                Outcome::Inlined => &mut counts.inlined,
                Outcome::Unknown => &mut counts.gone,
                Outcome::InlinedOrGone => &mut counts.inlined_or_gone,
            } += u128::from(one.count);
        }
        // Most functions never ran. They are not sorted, and nothing is said of them one by one.
        by_count.retain(|one| one.count > 0);
        by_count.sort_unstable_by(|a, b| {
            let order = b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name));
            order.then_with(|| a.hash.cmp(&b.hash))
        });
        let mut before = 0u128;
        let hot = by_count.into_iter().take_while(|one| {
            let is_hot = (before as f64) < HOT_SHARE * counts.total as f64;
            before += u128::from(one.count);
            is_hot
        });
        let lost = hot.filter(|one| one.outcome != Outcome::Matched);
        let mut hot_lost: Vec<LostFunction> = lost
            .map(|one| LostFunction {
                name: one.name.into_owned(),
                count: one.count,
                outcome: one.outcome,
                hash: one.hash,
                is_name_hash: one.is_name_hash,
                successor: None,
            })
            .collect();
        let (functions, mut new) = functions(profile, binaries);
        // If the counters come from another stage of the compiler, the hashes cannot be compared, so no successors are
        // searched.
        if !(binaries.binaries.iter()).any(|binary| binary.is_other_stage(profile)) {
            find_successors(profile, binaries, &mut new, &mut hot_lost);
        }
        MatchShares {
            functions,
            counts,
            hot_lost,
        }
    }
}

struct Counted<'p> {
    count: u64,
    name: Cow<'p, [u8]>,
    outcome: Outcome,
    hash: Option<FuncHash>,
    is_name_hash: bool,
}

fn by_function<'p>(
    profile: &'p ProfileFunctions,
    binaries: &BinaryFunctions,
) -> impl Iterator<Item = Counted<'p>> {
    profile.functions.iter().flat_map(|(name, known)| {
        known.iter().map(|known| Counted {
            count: known.count,
            name: Cow::Borrowed(name.as_slice()),
            outcome: binaries.outcome_of(name, known.hash),
            hash: known.hash,
            is_name_hash: false,
        })
    })
}

/// Whether the profile has a function that was called and that no binary has.
pub(super) fn is_any_missing(profile: &ProfileFunctions, binaries: &BinaryFunctions) -> bool {
    let is_missing = |one: Counted<'_>| one.count > 0 && one.outcome == Outcome::Unknown;
    match &profile.samples {
        Some(samples) => by_sample(samples, binaries).into_iter().any(is_missing),
        None => by_function(profile, binaries).any(is_missing),
    }
}

/// Returns the functions of a sample profile with their samples. A compiler that rejects a function also loses the
/// functions that were inlined into it. The samples of the inlined functions therefore count for the rejected function.
fn by_sample<'p>(profile: &SampleProfile, binaries: &BinaryFunctions) -> Vec<Counted<'p>> {
    type Key = (NameId, Outcome, u64);
    let mut sums: FxHashMap<Key, u64> = FxHashMap::default();
    let functions = profile.functions().iter();
    let mut open: Vec<(&Samples, Option<Key>)> = functions
        .map(|function| (&function.samples, None))
        .collect();
    while let Some((samples, lost)) = open.pop() {
        let key = lost.unwrap_or_else(|| {
            let name = profile.names.get(samples.name);
            let outcome = binaries.outcome_of_sample(name, samples.checksum);
            (samples.name, outcome, samples.checksum)
        });
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(self_samples(samples));
        let lost = (key.1 != Outcome::Matched).then_some(key);
        open.extend(
            samples
                .inlined
                .iter()
                .map(|inlined| (&inlined.samples, lost)),
        );
    }
    let counted = |((name, outcome, checksum), count)| Counted {
        count,
        name: Cow::Owned(sample_name(profile.names.get(name))),
        outcome,
        hash: checksum_of(checksum),
        is_name_hash: matches!(profile.names.get(name), SampleName::Guid(_)),
    };
    sums.into_iter().map(counted).collect()
}

/// A function of the binaries whose name the profile does not have.
pub(super) type NewFunction<'b> = (&'b [u8], &'b NamedFunctions);

/// Compares the functions of the binaries with a sample profile. Returns how many of them the profile has, and the
/// functions that it does not have.
fn sampled<'b>(
    profile: &SampleProfile,
    binaries: &'b BinaryFunctions,
) -> (FunctionShares, Vec<NewFunction<'b>>) {
    let mut known: FxHashMap<&[u8], FxHashSet<Option<FuncHash>>> = FxHashMap::default();
    each_function(profile, |samples| {
        if let Some(name) = binaries.sampled_name(profile.names.get(samples.name)) {
            let checksums = known.entry(name).or_default();
            checksums.insert(checksum_of(samples.checksum));
        }
    });
    let (mut functions, mut new) = (FunctionShares::default(), Vec::new());
    for (name, named) in binaries.functions() {
        let known = known.get(name);
        functions.add(named, known.map(|known| known.iter().copied()));
        if known.is_none() {
            new.push((name, named));
        }
    }
    (functions, new)
}

/// Compares the functions of the binaries with the profile. Returns how many of them the profile has, and the functions
/// that it does not have.
fn functions<'b>(
    profile: &ProfileFunctions,
    binaries: &'b BinaryFunctions,
) -> (FunctionShares, Vec<NewFunction<'b>>) {
    if let Some(samples) = &profile.samples {
        return sampled(samples, binaries);
    }
    // Collects the functions that have a different name in the binaries than in the profile. For example, the name of a
    // local function may lack the source file in the binaries.
    let others: FxHashMap<&[u8], &[FunctionCounts]> = (profile.functions.iter())
        .filter_map(|(name, known)| {
            let (there, _) = binaries.named(name)?;
            (there != name).then_some((there, known.as_slice()))
        })
        .collect();
    let (mut functions, mut new) = (FunctionShares::default(), Vec::new());
    for (name, named) in binaries.functions() {
        let known = profile.functions.get(name).map(Vec::as_slice);
        let known = known.or_else(|| others.get(name).copied());
        functions.add(named, known.map(|known| known.iter().map(|one| one.hash)));
        if known.is_none() {
            new.push((name, named));
        }
    }
    (functions, new)
}

fn percent(part: u128, whole: u128) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}
