//! The shares of functions and counts for which a profile and binaries match.
use super::binary::{BinaryFunctions, Outcome, checksum_of, fits, symbol_of};
use super::profile::{Known, ProfileFunctions, own_samples, sample_name};
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::sample::{NameId, SampleName, SampleProfile, Samples};
use profkit_object::functions::without_suffix;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The share of all counts that hot functions have together. Hot functions are the functions with the largest counts
/// (`profile-summary-cutoff-hot` of LLVM).
const HOT_SHARE: f64 = 0.99;

/// The numbers of functions in the binaries, by whether the profile has them. Each name is counted once. A binary has
/// functions that no profile contains, such as `_start`, so fewer than 100 percent of them match even if the profile is
/// fresh. [`CountShares`] divides the counts of the profile instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionShares {
    /// The number of all functions in the binaries.
    pub total: u64,
    /// The number of functions whose name and hash are in the profile. If the binary has no hash, the name is enough.
    pub matched: u64,
    /// The number of functions whose name is in the profile, but only with other hashes.
    pub changed: u64,
    /// The number of functions that the profile does not have.
    pub unknown: u64,
}

impl FunctionShares {
    /// The share of functions that match, in percent; `None` if the binaries have no functions.
    pub fn matched_percent(&self) -> Option<f64> {
        percent(self.matched.into(), self.total.into())
    }
}

/// The counts of the profile, by whether the binaries can use them.
///
/// A function is known to have changed only if the binary has hashes
/// ([`Origin::Sections`](profkit_object::functions::Origin::Sections),
/// [`Origin::DebugInfo`](profkit_object::functions::Origin::DebugInfo)). If the binary has only symbols, only names are
/// compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountShares {
    /// The sum of all counts.
    pub total: u128,
    /// The sum of the counts of functions that match.
    pub matched: u128,
    /// The sum of the counts of functions that the binaries have with another hash.
    pub changed: u128,
    /// The sum of the counts of functions that the binaries have only inlined into other functions, so that their hash
    /// is not known.
    pub inlined: u128,
    /// The sum of the counts of functions that no binary has.
    pub gone: u128,
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

/// A hot function of the profile that does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostFunction {
    /// The function's name in the profile.
    pub name: Vec<u8>,
    /// The function's count.
    pub count: u64,
    /// Why the function does not match: [`Outcome::Changed`], [`Outcome::Inlined`] or [`Outcome::Unknown`].
    pub outcome: Outcome,
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
    /// The functions of the binaries.
    pub functions: FunctionShares,
    /// The sums of the profile's counts.
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
        by_count.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let mut counts = CountShares {
            total: profile.total,
            ..CountShares::default()
        };
        for (count, _, outcome) in &by_count {
            *match outcome {
                Outcome::Matched => &mut counts.matched,
                Outcome::Changed => &mut counts.changed,
                Outcome::Inlined => &mut counts.inlined,
                Outcome::Unknown => &mut counts.gone,
            } += u128::from(*count);
        }
        let mut before = 0u128;
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let hot = by_count.into_iter().take_while(|&(count, ..)| {
            let is_hot = (before as f64) < HOT_SHARE * counts.total as f64 && count > 0;
            before += u128::from(count);
            is_hot
        });
        let lost = hot.filter(|(.., outcome)| *outcome != Outcome::Matched);
        MatchShares {
            functions: functions(profile, binaries),
            counts,
            hot_lost: lost
                .map(|(count, name, outcome)| LostFunction {
                    name: name.into_owned(),
                    count,
                    outcome,
                })
                .collect(),
        }
    }
}

/// The count, the name and the outcome of a function.
type Counted<'p> = (u64, Cow<'p, [u8]>, Outcome);

fn by_function<'p>(
    profile: &'p ProfileFunctions,
    binaries: &BinaryFunctions,
) -> impl Iterator<Item = Counted<'p>> {
    profile.functions.iter().flat_map(|(name, known)| {
        known.iter().map(|known| {
            let outcome = binaries.outcome_of(name, known.hash);
            (known.count, Cow::Borrowed(name.as_slice()), outcome)
        })
    })
}

/// Whether no binary has a function of the profile that was called.
pub(super) fn is_any_missing(profile: &ProfileFunctions, binaries: &BinaryFunctions) -> bool {
    let is_missing = |(count, _, outcome): Counted<'_>| count > 0 && outcome == Outcome::Unknown;
    match &profile.samples {
        Some(samples) => by_sample(samples, binaries).into_iter().any(is_missing),
        None => by_function(profile, binaries).any(is_missing),
    }
}

/// The samples of each function. A compiler that rejects a function also loses the functions that were inlined into it,
/// so their samples count for the function that is lost.
fn by_sample<'p>(profile: &SampleProfile, binaries: &BinaryFunctions) -> Vec<Counted<'p>> {
    let mut sums: FxHashMap<(NameId, Outcome), u64> = FxHashMap::default();
    let functions = profile.functions().iter();
    let mut open: Vec<(&Samples, Option<(NameId, Outcome)>)> = functions
        .map(|function| (&function.samples, None))
        .collect();
    while let Some((samples, lost)) = open.pop() {
        let key = lost.unwrap_or_else(|| {
            let name = profile.names.get(samples.name);
            (
                samples.name,
                binaries.outcome_of_sample(name, samples.checksum),
            )
        });
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(own_samples(samples));
        let lost = (key.1 != Outcome::Matched).then_some(key);
        open.extend(
            samples
                .inlined
                .iter()
                .map(|inlined| (&inlined.samples, lost)),
        );
    }
    let counted = |((name, outcome), sum)| {
        (
            sum,
            Cow::Owned(sample_name(profile.names.get(name))),
            outcome,
        )
    };
    sums.into_iter().map(counted).collect()
}

/// The numbers of functions in the binaries, by whether a sample profile has them.
fn sampled(profile: &SampleProfile, binaries: &BinaryFunctions) -> FunctionShares {
    let mut known: FxHashMap<NameRef, FxHashSet<Option<FuncHash>>> = FxHashMap::default();
    let mut open: Vec<&Samples> = profile.functions().iter().map(|it| &it.samples).collect();
    while let Some(samples) = open.pop() {
        let guid = match profile.names.get(samples.name) {
            SampleName::Text(text) => NameRef::of(without_suffix(text)),
            SampleName::Guid(guid) => guid,
        };
        let checksums = known.entry(guid).or_default();
        checksums.insert(checksum_of(samples.checksum));
        open.extend(samples.inlined.iter().map(|inlined| &inlined.samples));
    }
    let mut functions = FunctionShares::default();
    for (name, hashes) in binaries.functions() {
        functions.total += 1;
        match known.get(&NameRef::of(name)) {
            Some(known) if known.iter().any(|&checksum| fits(hashes, checksum)) => {
                functions.matched += 1
            }
            Some(_) => functions.changed += 1,
            None => functions.unknown += 1,
        }
    }
    functions
}

fn functions(profile: &ProfileFunctions, binaries: &BinaryFunctions) -> FunctionShares {
    if let Some(samples) = &profile.samples {
        return sampled(samples, binaries);
    }
    let symbols: FxHashSet<&[u8]> = profile
        .functions
        .keys()
        .map(|name| symbol_of(name))
        .collect();
    let mut functions = FunctionShares::default();
    for (name, hashes) in binaries.functions() {
        functions.total += 1;
        let same = |known: &Known| fits(hashes, known.hash);
        match profile.functions.get(name) {
            Some(known) if known.iter().any(same) => functions.matched += 1,
            Some(_) => functions.changed += 1,
            None if hashes.contains(&None) && symbols.contains(name) => functions.matched += 1,
            None => functions.unknown += 1,
        }
    }
    functions
}

#[allow(clippy::cast_precision_loss, reason = "a share")]
fn percent(part: u128, whole: u128) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}
