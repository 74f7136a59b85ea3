//! The output of `profkit match`. docs/formats/match-json.md describes the JSON.
use profkit_analysis::matching::{BinaryFunctions, MatchShares, Outcome, ProfileFunctions};
use profkit_analysis::names::printable;
use profkit_object::functions::Origin;
use serde::Serialize;
use std::fmt;

/// Version of the JSON.
const SCHEMA: u32 = 2;

/// The result of a comparison, in the form in which it is printed.
#[derive(Clone, Debug, Serialize)]
pub struct MatchReport {
    schema: u32,
    profile: String,
    /// The build ids of the programs that the profile was collected from, if the profile states them.
    build_ids: Vec<String>,
    binaries: Vec<BinaryReport>,
    functions: FunctionShares,
    /// The counts of the profile, divided by whether their functions match.
    pub counts: CountShares,
    hot_lost: Vec<Lost>,
    /// The number of lost hot functions that are not listed.
    hot_lost_more: u64,
}

#[derive(Clone, Debug, Serialize)]
struct BinaryReport {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<String>,
    /// Whether the profile was collected from this build. `None` if the profile or the binary has no build id.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_build: Option<bool>,
    #[serde(serialize_with = "origin")]
    origin: Origin,
    functions: u64,
}

/// The numbers of functions in the binaries.
#[derive(Clone, Debug, Default, Serialize)]
struct FunctionShares {
    total: u64,
    matched: u64,
    changed: u64,
    unknown: u64,
    matched_percent: f64,
}

/// The sums of counts in the profile.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CountShares {
    total: u128,
    matched: u128,
    changed: u128,
    /// Counts of functions that are in no binary.
    gone: u128,
    #[serde(skip)]
    changed_percent: f64,
    #[serde(skip)]
    gone_percent: f64,
    /// The matched share of all counts, in percent; 100 if there are no counts.
    pub matched_percent: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Lost {
    function: String,
    count: u64,
    percent: f64,
    /// `changed` or `gone`.
    outcome: &'static str,
}

impl MatchReport {
    /// Makes the report of a comparison, with at most `top` lost functions.
    pub fn new(
        name: &str,
        profile: &ProfileFunctions,
        binaries: &BinaryFunctions,
        top: usize,
    ) -> Self {
        let MatchShares {
            functions,
            counts,
            hot_lost,
        } = MatchShares::new(profile, binaries);
        let hot_lost_more = hot_lost.len().saturating_sub(top) as u64;
        let lost = hot_lost.into_iter().take(top).map(|lost| Lost {
            function: String::from_utf8_lossy(&lost.name).into_owned(),
            count: lost.count,
            percent: counts.percent(lost.count.into()),
            outcome: match lost.outcome {
                Outcome::Changed => "changed",
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
                    origin: binary.origin,
                    functions: binary.functions as u64,
                })
                .collect(),
            functions: FunctionShares {
                total: functions.total,
                matched: functions.matched,
                changed: functions.changed,
                unknown: functions.unknown,
                matched_percent: functions.matched_percent(),
            },
            hot_lost: lost.collect(),
            hot_lost_more,
            counts: CountShares {
                total: counts.total,
                matched: counts.matched,
                changed: counts.changed,
                gone: counts.gone,
                changed_percent: counts.percent(counts.changed),
                gone_percent: counts.percent(counts.gone),
                matched_percent: counts.matched_percent(),
            },
        }
    }
}

/// Writes where the binary's functions were found: `sections`, `debug-info` or `symbols`.
fn origin<S: serde::Serializer>(origin: &Origin, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match origin {
        Origin::Sections => "sections",
        Origin::DebugInfo => "debug-info",
        Origin::Symbols => "symbols",
    })
}

impl fmt::Display for MatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for binary in &self.binaries {
            let from = match binary.origin {
                Origin::Sections => "names and hashes from its profile sections",
                Origin::DebugInfo => "names and hashes from its debug info",
                Origin::Symbols => "symbols only: hashes cannot be compared",
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
        if counts.total > 0 {
            writeln!(
                f,
                "  of changed functions     {} ({:.2} %)",
                counts.changed, counts.changed_percent
            )?;
            writeln!(
                f,
                "  of missing functions     {} ({:.2} %)",
                counts.gone, counts.gone_percent
            )?;
        }
        if !self.hot_lost.is_empty() {
            writeln!(f, "\nHot functions lost")?;
        }
        for lost in &self.hot_lost {
            writeln!(
                f,
                "  {:6.2} %  {}  {}",
                lost.percent,
                lost.outcome,
                printable(lost.function.as_bytes())
            )?;
        }
        if self.hot_lost_more > 0 {
            writeln!(f, "  and {} more", self.hot_lost_more)?;
        }
        Ok(())
    }
}
