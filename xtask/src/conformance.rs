//! Compares profkit with LLVM's tools: for all combinations of compilers, modes and programs, and for sample profiles
//! of every release and encoding.
use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use profkit_testkit::conformance::{Comparison, Conformance, Outcome, Scope, in_parallel};
use profkit_testkit::matrix::{Set, all_sets};
use profkit_testkit::skip;

use crate::steps::built_profkit;

/// Compares everything and prints a table. With arguments, compares only the sets whose name contains an argument.
/// Sample profiles are then compared only if an argument is `sample`.
pub fn run(arguments: &[String]) -> Result<()> {
    let conformance = Conformance::new(&built_profkit()?, Scope::Full);
    let mut sets = all_sets();
    if !arguments.is_empty() {
        sets.retain(|set| {
            let name = set.to_string();
            arguments.iter().any(|words| name.contains(words.as_str()))
        });
    }
    let samples = arguments.is_empty() || arguments.iter().any(|words| words == "sample");
    ensure!(samples || !sets.is_empty(), "no set is named so");
    let mut comparisons = in_parallel(&sets, |set| match set.build() {
        Ok(raws) => conformance.check(&raws),
        Err(why) => {
            skip(&format!("{set}: {why}"));
            Vec::new()
        }
    });
    if samples {
        comparisons.extend(conformance.check_samples());
    }
    let mut differences = 0;
    for comparison in &comparisons {
        if matches!(comparison.outcome, Outcome::Different(_)) {
            println!("{comparison}");
            differences += 1;
        }
    }
    print_table(&sets, &comparisons);
    ensure!(differences == 0, "{differences} comparisons differ");
    Ok(())
}

fn print_table(sets: &[Set], comparisons: &[Comparison]) {
    let mut rows: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut allowed: BTreeMap<&str, usize> = BTreeMap::new();
    for comparison in comparisons {
        let row = rows.entry(&comparison.what).or_default();
        match &comparison.outcome {
            Outcome::Same => row[0] += 1,
            Outcome::Allowed(reason) => {
                row[1] += 1;
                *allowed.entry(reason).or_default() += 1;
            }
            Outcome::Different(_) => row[2] += 1,
        }
    }
    println!(
        "{:<60} {:>6} {:>8} {:>10}",
        "", "same", "allowed", "different"
    );
    for (what, [same, allowed, different]) in &rows {
        println!("{what:<60} {same:>6} {allowed:>8} {different:>10}");
    }
    let total = |column: usize| rows.values().map(|row| row[column]).sum::<usize>();
    let what = format!("all, on {} sets", sets.len());
    println!(
        "{what:<60} {:>6} {:>8} {:>10}",
        total(0),
        total(1),
        total(2)
    );
    for (reason, count) in allowed {
        println!("allowed {count} times: {reason}");
    }
}
