//! What `profkit match` tells. docs/formats/match-json.md describes the JSON.
use super::compare::{Comparison, Fate, Profile, symbol_of};
use profkit_object::functions::Origin;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::fmt;

/// Version of the JSON.
const SCHEMA: u32 = 1;
/// Functions that account for this share of all counts are hot (`profile-summary-cutoff-hot` of LLVM).
const HOT_SHARE: f64 = 0.99;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct MatchReport {
    schema: u32,
    profile: String,
    /// Builds that the profile was collected from, as far as it says.
    build_ids: Vec<String>,
    binaries: Vec<BinaryReport>,
    functions: FunctionShares,
    /// Counts of the profile, by what becomes of their functions.
    pub counts: CountShares,
    hot_lost: Vec<Lost>,
    /// Hot functions lost that are not listed.
    hot_lost_more: u64,
}

#[derive(Clone, Debug, Serialize)]
struct BinaryReport {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<String>,
    /// Whether the profile was collected from this build; nothing if it or the binary has no id.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_build: Option<bool>,
    /// `sections`, `debug-info` or `symbols`.
    origin: &'static str,
    functions: u64,
}

/// Functions of the binaries.
#[derive(Clone, Debug, Default, Serialize)]
struct FunctionShares {
    total: u64,
    matched: u64,
    changed: u64,
    unknown: u64,
    matched_percent: f64,
}

/// Counts of the profile.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CountShares {
    total: u128,
    matched: u128,
    changed: u128,
    /// Of functions that no binary has.
    gone: u128,
    /// Share of all counts that is matched; 100 if there are none.
    pub matched_percent: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Lost {
    function: String,
    count: u64,
    percent: f64,
    /// `changed` or `gone`.
    fate: &'static str,
}

impl MatchReport {
    /// Compares.
    pub fn new(name: &str, profile: &Profile, binaries: &Comparison, top: usize) -> Self {
        let symbols: FxHashSet<&[u8]> = profile
            .functions
            .keys()
            .map(|name| symbol_of(name))
            .collect();
        let mut functions = FunctionShares::default();
        for (name, hashes) in binaries.functions() {
            functions.total += 1;
            let known = profile.functions.get(name);
            let same = |known: &super::compare::Known| {
                known.hash.is_none() || hashes.contains(&known.hash) || hashes.contains(&None)
            };
            match known {
                Some(known) if known.iter().any(same) => functions.matched += 1,
                Some(_) => functions.changed += 1,
                None if hashes.contains(&None) && symbols.contains(name) => functions.matched += 1,
                None => functions.unknown += 1,
            }
        }
        functions.matched_percent = percent(functions.matched.into(), functions.total.into());
        let mut counts = CountShares {
            total: profile.total,
            ..CountShares::default()
        };
        let mut by_count = Vec::new();
        for (name, known) in &profile.functions {
            for known in known {
                let fate = binaries.fate_in_binaries(name, known.hash);
                *match fate {
                    Fate::Matched => &mut counts.matched,
                    Fate::Changed => &mut counts.changed,
                    Fate::Unknown => &mut counts.gone,
                } += u128::from(known.count);
                by_count.push((known.count, name.as_slice(), fate));
            }
        }
        counts.matched_percent = percent(counts.matched, counts.total);
        by_count.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        let mut before = 0u128;
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let hot = by_count.into_iter().take_while(|&(count, ..)| {
            let is_hot = (before as f64) < HOT_SHARE * counts.total as f64 && count > 0;
            before += u128::from(count);
            is_hot
        });
        let lost: Vec<_> = hot.filter(|&(.., fate)| fate != Fate::Matched).collect();
        let hot_lost_more = lost.len().saturating_sub(top) as u64;
        let lost = lost.into_iter().take(top).map(|(count, name, fate)| Lost {
            function: String::from_utf8_lossy(name).into_owned(),
            count,
            percent: percent(count.into(), counts.total),
            fate: match fate {
                Fate::Changed => "changed",
                _ => "gone",
            },
        });
        MatchReport {
            schema: SCHEMA,
            profile: name.to_owned(),
            build_ids: profile.build_ids.iter().map(ToString::to_string).collect(),
            binaries: binaries
                .binaries
                .iter()
                .map(|binary| BinaryReport {
                    path: binary.path.clone(),
                    build_id: binary.build_id.as_ref().map(ToString::to_string),
                    same_build: binary
                        .build_id
                        .as_ref()
                        .filter(|_| !profile.build_ids.is_empty())
                        .map(|id| profile.build_ids.contains(id)),
                    origin: match binary.origin {
                        Origin::Sections => "sections",
                        Origin::DebugInfo => "debug-info",
                        Origin::Symbols => "symbols",
                    },
                    functions: binary.functions as u64,
                })
                .collect(),
            functions,
            hot_lost: lost.collect(),
            hot_lost_more,
            counts,
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a share")]
fn percent(part: u128, whole: u128) -> f64 {
    if whole == 0 {
        return 100.0;
    }
    part as f64 * 100.0 / whole as f64
}

impl fmt::Display for MatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for binary in &self.binaries {
            let from = match binary.origin {
                "sections" => "names and hashes from its profile sections",
                "debug-info" => "names and hashes from its debug info",
                _ => "symbols only: hashes cannot be compared",
            };
            let build = match binary.same_build {
                Some(true) => "; the profile is of this build",
                Some(false) => "; the profile is of another build",
                None => "",
            };
            let BinaryReport {
                path, functions, ..
            } = binary;
            writeln!(f, "{path}: {functions} functions, {from}{build}")?;
        }
        let FunctionShares {
            total,
            matched,
            changed,
            unknown,
            matched_percent,
        } = self.functions;
        writeln!(f, "\nFunctions of the binaries  {total}")?;
        writeln!(
            f,
            "  matched by the profile   {matched} ({matched_percent:.2} %)"
        )?;
        writeln!(f, "  changed since            {changed}")?;
        writeln!(f, "  not in the profile       {unknown}")?;
        let counts = &self.counts;
        writeln!(f, "\nCounts of the profile      {}", counts.total)?;
        writeln!(
            f,
            "  of matched functions     {} ({:.2} %)",
            counts.matched, counts.matched_percent
        )?;
        let share = |part| percent(part, counts.total);
        if counts.total > 0 {
            writeln!(
                f,
                "  of changed functions     {} ({:.2} %)",
                counts.changed,
                share(counts.changed)
            )?;
            writeln!(
                f,
                "  of functions not there   {} ({:.2} %)",
                counts.gone,
                share(counts.gone)
            )?;
        }
        if !self.hot_lost.is_empty() {
            writeln!(f, "\nHot functions lost")?;
        }
        for lost in &self.hot_lost {
            writeln!(
                f,
                "  {:6.2} %  {}  {}",
                lost.percent, lost.fate, lost.function
            )?;
        }
        if self.hot_lost_more > 0 {
            writeln!(f, "  and {} more", self.hot_lost_more)?;
        }
        Ok(())
    }
}
