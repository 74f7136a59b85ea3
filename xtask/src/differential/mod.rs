//! `cargo xtask differential`: runs random command lines of llvm-profdata with LLVM's tool and with profkit. The exit
//! code, standard output, standard error and written files must be equal.
mod allowed;
mod cases;
mod run;
mod texts;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use profkit_testkit::Llvm;
use profkit_testkit::Rng;
use rayon::prelude::*;

use crate::steps::built_profkit;
use allowed::reason;
use cases::{Case, Corpus};
use run::{Tools, difference};

/// The number of cases that are made before they run. It is small enough for the memory, and large enough to use all
/// cores.
const AT_ONCE: usize = 64;

/// The inputs are those of LLVM's own tests (target/llvm-suite), this repository's fixtures, and damaged copies of both.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The seed of the random numbers; a new one each time without this option
    #[arg(long)]
    seed: Option<u64>,
    /// The number of command lines
    #[arg(long, default_value_t = 2000)]
    runs: u64,
    /// Report all differences instead of stopping at the first
    #[arg(long)]
    keep_going: bool,
    /// Write the inputs of the shortest command lines into folders below this one
    #[arg(long)]
    save: Option<PathBuf>,
}

/// Compares the tools on random command lines.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (runs, keep_going) = (arguments.runs, arguments.keep_going);
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
    };
    println!("seed {seed}, {runs} command lines");
    let llvm = Llvm::find(22).context("llvm-22 is not installed")?;
    let tools = Tools {
        llvm: llvm.profdata().to_owned(),
        profkit: built_profkit()?,
    };
    let corpus = Corpus::collect()?;
    let mut rng = Rng::new(seed);
    let mut same = 0;
    let mut allowed: BTreeMap<&str, u64> = BTreeMap::new();
    let mut different = 0;
    let mut number = 0;
    while number < runs && (different == 0 || keep_going) {
        let cases: Vec<Case> = (number..runs)
            .take(AT_ONCE)
            .map(|_| corpus.case(&mut rng))
            .collect();
        for (case, outcome) in cases.iter().zip(outcomes(&tools, &cases)?) {
            match outcome {
                Outcome::Same => same += 1,
                Outcome::Allowed(reason) => *allowed.entry(reason).or_default() += 1,
                Outcome::Different => {
                    different += 1;
                    let shortest = shortest(&tools, case.clone())?;
                    let (theirs, ours) = tools.both(&shortest)?;
                    println!("run {number}: {}", difference(&shortest, &theirs, &ours));
                    if let Some(folder) = &arguments.save {
                        shortest.save(&folder.join(format!("{seed}-{number}")))?;
                    }
                    if !keep_going {
                        break;
                    }
                }
            }
            number += 1;
        }
    }
    for (reason, count) in &allowed {
        println!("allowed {count} times: {reason}");
    }
    let sum: u64 = allowed.values().sum();
    println!("{same} same, {sum} allowed, {different} different");
    if different > 0 {
        bail!("the tools differ; to repeat: cargo xtask differential --seed {seed} --runs {runs}");
    }
    Ok(())
}

/// The result of comparing the tools on a case.
enum Outcome {
    Same,
    /// The tools differ, and this reason allows it.
    Allowed(&'static str),
    Different,
}

/// Runs the cases on all cores. Returns the outcomes in the order of the cases.
fn outcomes(tools: &Tools, cases: &[Case]) -> Result<Vec<Outcome>> {
    cases
        .par_iter()
        .map(|case| {
            let (theirs, ours) = tools.both(case)?;
            if theirs == ours {
                return Ok(Outcome::Same);
            }
            let reason = reason(tools, case, &theirs, &ours)?;
            Ok(reason.map_or(Outcome::Different, Outcome::Allowed))
        })
        .collect()
}

/// Removes options and inputs one at a time, as long as the tools still differ without an allowed reason.
fn shortest(tools: &Tools, case: Case) -> Result<Case> {
    let mut shortest = case;
    'again: loop {
        let candidates: Vec<Case> = shortest.shorter().collect();
        for candidate in candidates {
            let (theirs, ours) = tools.both(&candidate)?;
            if theirs != ours && reason(tools, &candidate, &theirs, &ours)?.is_none() {
                shortest = candidate;
                continue 'again;
            }
        }
        return Ok(shortest);
    }
}
