//! What a job gave, for people and as JSON.
use crate::run::{Lost, Outcome};
use profkit_analysis::names;
use profkit_report::{Answer, Document, grouped, percent, plural, share_percent};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Version of the JSON. It is raised when a member is renamed or removed, or changes its meaning.
const SCHEMA_VERSION: u32 = 1;

fn median(times: &[Duration]) -> Option<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).map(Duration::as_secs_f64)
}

fn seconds(times: &[Duration]) -> Value {
    times.iter().map(Duration::as_secs_f64).collect()
}

/// The most lost functions that people are shown.
const MOST_LOST: usize = 10;

/// Adds the hot functions whose counts the build cannot use.
fn add_lost(document: &mut Document, lost: &[Lost]) {
    if lost.is_empty() {
        return;
    }
    document.section("Hot functions that the build does not use");
    document.facts(lost.iter().take(MOST_LOST).map(|lost| {
        let why = match lost.changed {
            true => "differs in the build",
            false => "in no program of the build",
        };
        let name = names::display(lost.name.as_bytes()).into_owned();
        (name, share_percent(lost.share), why)
    }));
    let more = lost.len().saturating_sub(MOST_LOST);
    if more > 0 {
        document.line(format_args!("and {}", plural(more as u64, "other")));
    }
}

/// The most programs that no training ran that people are shown.
const MOST_UNTRAINED: usize = 10;

/// Adds the programs and libraries that no training ran.
fn add_untrained(document: &mut Document, untrained: &[PathBuf]) {
    if untrained.is_empty() {
        return;
    }
    document.section("No training ran");
    let here = std::env::current_dir().unwrap_or_default();
    document.facts(untrained.iter().take(MOST_UNTRAINED).map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_library = name.contains(".so") || name.ends_with(".dylib");
        let why = match is_library {
            true => "a library: did the training load one from elsewhere?",
            false => "",
        };
        let shown = path.strip_prefix(&here).unwrap_or(path);
        (shown.display().to_string(), String::new(), why)
    }));
    let more = untrained.len().saturating_sub(MOST_UNTRAINED);
    if more > 0 {
        document.line(format_args!("and {}", plural(more as u64, "other")));
    }
}

impl Answer for Outcome {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let profile = &self.profile;
        document.section("Profile");
        let of = |part: u64, whole: u64| match whole {
            0 => String::new(),
            _ => percent(part.into(), whole.into()),
        };
        document.facts([
            (
                if profile.sampled {
                    "recordings"
                } else {
                    "raw profiles"
                },
                grouped(profile.inputs),
                match profile.inputs == profile.merged {
                    true => String::new(),
                    false => format!("{} of them could be read", grouped(profile.merged)),
                },
            ),
            ("functions", grouped(profile.functions), String::new()),
            (
                "of them ran",
                grouped(profile.ran),
                of(profile.ran, profile.functions),
            ),
        ]);
        if let Some(shares) = &self.shares {
            document.section("The build uses");
            let counts = shares.counts.map_or_else(String::new, share_percent);
            document.facts([
                (
                    "functions with a profile",
                    grouped(shares.profiled),
                    of(shares.profiled, shares.functions),
                ),
                (
                    "functions without",
                    grouped(shares.functions - shares.profiled),
                    "in programs that no training ran".to_owned(),
                ),
                ("share of all counts", counts, String::new()),
            ]);
            add_lost(&mut document, &shares.lost);
            add_untrained(&mut document, &shares.untrained);
        }
        document.section("Programs and libraries");
        let mut rows = vec![("number", grouped(self.programs.len() as u64), String::new())];
        if let Some(before) = self.sizes.before {
            rows.push(("bytes without a profile", grouped(before), String::new()));
        }
        let change = self
            .sizes
            .before
            .filter(|&before| before > 0)
            .map(|before| {
                format!(
                    "{:+.1}%",
                    (self.sizes.after as f64 / before as f64 - 1.0) * 100.0
                )
            });
        rows.push((
            "bytes with it",
            grouped(self.sizes.after),
            change.unwrap_or_default(),
        ));
        document.facts(rows);
        if self.programs.is_empty() {
            document.line(
                "The build wrote no program where profkit looks: whether it was compiled with the profile is not known.",
            );
        }
        if let Some(times) = &self.times
            && let (Some(before), Some(after), Some([middle, least, most])) =
                (median(&times.before), median(&times.after), times.speedup())
        {
            document.section("Benchmark");
            document.facts([
                (
                    "seconds without a profile",
                    format!("{before:.3}"),
                    format!("median of {} runs", times.before.len()),
                ),
                ("seconds with it", format!("{after:.3}"), String::new()),
                (
                    "times as fast",
                    format!("{middle:.2}"),
                    format!("{least:.2} to {most:.2} in pairs of runs"),
                ),
            ]);
        }
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let profile = &self.profile;
        let document = json!({
            "schema": "profkit-pgo",
            "schema_version": SCHEMA_VERSION,
            "profile": {
                "path": profile.path.to_string_lossy(),
                "llvm": profile.release,
                "kind": if profile.sampled { "sample" } else { "instr" },
                "inputs": profile.inputs,
                "merged": profile.merged,
                "functions": profile.functions,
                "ran": profile.ran,
            },
            "used": self.shares.as_ref().map(|shares| json!({
                "functions": shares.functions,
                "profiled": shares.profiled,
                "counts_share": shares.counts,
                "untrained": shares.untrained.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
                "hot_lost": shares.lost.iter().map(|lost| json!({
                    "function": lost.name,
                    "share": lost.share,
                    "outcome": if lost.changed { "changed" } else { "unknown" },
                })).collect::<Vec<_>>(),
            })),
            "programs": self.programs.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
            "bytes": { "before": self.sizes.before, "after": self.sizes.after },
            "benchmark": self.times.as_ref().map(|times| json!({
                "seconds_before": seconds(&times.before),
                "seconds_after": seconds(&times.after),
                "times_as_fast": times.speedup().map(|[median, least, most]| json!({ "median": median, "least": least, "most": most })),
            })),
        });
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }
}
