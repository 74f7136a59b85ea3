//! The shares of functions and counts for which a profile and binaries match.
use super::binary::{BinaryFunctions, Outcome, symbol_of};
use super::profile::{Known, ProfileFunctions};
use rustc_hash::FxHashSet;

/// The share of all counts that hot functions have together. Hot functions are the functions with the largest counts
/// (`profile-summary-cutoff-hot` of LLVM).
const HOT_SHARE: f64 = 0.99;

/// The numbers of functions in the binaries, by whether the profile has them. Each name is counted once. A binary has
/// functions that no profile contains, such as `_start`, so fewer than 100 percent match for a fresh profile, too.
/// [`CountShares`] divides the counts of the profile instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionShares {
    /// The number of functions.
    pub total: u64,
    /// Functions whose name and hash are in the profile. If the binary has no hash, the name is enough.
    pub matched: u64,
    /// Functions whose name is in the profile, but only with other hashes.
    pub changed: u64,
    /// Functions that the profile does not have.
    pub unknown: u64,
}

impl FunctionShares {
    /// The share of functions that match, in percent; `None` if there are none.
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
    /// The counts of functions that match.
    pub matched: u128,
    /// The counts of functions that the binaries have with another hash.
    pub changed: u128,
    /// The counts of functions that no binary has.
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
    /// Its name in the profile.
    pub name: Vec<u8>,
    /// Its count.
    pub count: u64,
    /// [`Outcome::Changed`] or [`Outcome::Unknown`].
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
        let counts = profile.functions.iter().flat_map(|(name, known)| {
            known.iter().map(|known| {
                let outcome = binaries.outcome_of(name, known.hash);
                (known.count, name.as_slice(), outcome)
            })
        });
        let mut by_count: Vec<_> = counts.collect();
        by_count.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        let mut counts = CountShares {
            total: profile.total,
            ..CountShares::default()
        };
        for &(count, _, outcome) in &by_count {
            *match outcome {
                Outcome::Matched => &mut counts.matched,
                Outcome::Changed => &mut counts.changed,
                Outcome::Unknown => &mut counts.gone,
            } += u128::from(count);
        }
        let mut before = 0u128;
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let hot = by_count.into_iter().take_while(|&(count, ..)| {
            let is_hot = (before as f64) < HOT_SHARE * counts.total as f64 && count > 0;
            before += u128::from(count);
            is_hot
        });
        let lost = hot.filter(|&(.., outcome)| outcome != Outcome::Matched);
        MatchShares {
            functions: functions(profile, binaries),
            counts,
            hot_lost: lost
                .map(|(count, name, outcome)| LostFunction {
                    name: name.to_vec(),
                    count,
                    outcome,
                })
                .collect(),
        }
    }
}

fn functions(profile: &ProfileFunctions, binaries: &BinaryFunctions) -> FunctionShares {
    let symbols: FxHashSet<&[u8]> = profile
        .functions
        .keys()
        .map(|name| symbol_of(name))
        .collect();
    let mut functions = FunctionShares::default();
    for (name, hashes) in binaries.functions() {
        functions.total += 1;
        let same = |known: &Known| {
            known.hash.is_none() || hashes.contains(&known.hash) || hashes.contains(&None)
        };
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
