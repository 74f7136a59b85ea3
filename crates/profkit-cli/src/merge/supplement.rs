//! `profkit merge --supplement-with`: corrects a merged instrumentation profile by a sample profile.
use crate::exit::{Failure, Result};
use crate::print::plural;
use clap::Args;
use profkit_data::instr::InstrProfile;
use profkit_data::sample::SampleReadOptions;
use profkit_data::supplement::{self, SupplementOptions};
use std::path::PathBuf;

/// The options that choose the sample profile and the functions to correct.
#[derive(Debug, Args)]
#[command(next_help_heading = "Correction by a sample profile")]
pub struct SupplementArgs {
    /// Correct functions that are cold in the merged profile but warm or hot in this sample profile
    ///
    /// Their counts are scaled up; functions whose counters are mostly zero are marked as warm or hot instead. This
    /// does the same as llvm-profdata merge --supplement-instr-with-sample, after the merge. It is meant for profiles
    /// of IR instrumentation.
    #[arg(long, value_name = "FILE")]
    pub(super) supplement_with: Option<PathBuf>,

    /// Leave functions with fewer counters than this unchanged; 10 by default
    #[arg(long, value_name = "N", requires = "supplement_with")]
    supplement_min_counters: Option<u64>,

    /// Mark functions as warm or hot, instead of scaling their counts, if their share of zero counters is larger than
    /// this; 0.7 by default
    #[arg(long, value_name = "SHARE", requires = "supplement_with", value_parser = profkit_report::typed::share)]
    supplement_zero_share: Option<f32>,

    /// Treat functions as cold whose largest count is at most this; by default the profile's summary decides
    #[arg(long, value_name = "COUNT", requires = "supplement_with")]
    supplement_cold: Option<u64>,
}

#[derive(Debug)]
pub struct Supplement {
    name: String,
    samples: supplement::Supplement,
    options: SupplementOptions,
}

impl SupplementArgs {
    pub fn refuse(&self) -> Result<()> {
        match self.supplement_with {
            Some(_) => Err(Failure::usage(
                "--supplement-with corrects instrumentation profiles, but the inputs are sample profiles",
            )),
            None => Ok(()),
        }
    }

    pub fn load(&self, strict: bool, notes: &mut Vec<String>) -> Result<Option<Supplement>> {
        let Some(path) = &self.supplement_with else {
            return Ok(None);
        };
        let input = crate::io::open(path)?;
        let (samples, faults) = supplement::Supplement::read(&input, &SampleReadOptions::default());
        if let Some(fault) = faults.first()
            && (strict || samples.is_empty())
        {
            return Err(Failure::file(input.name(), fault));
        }
        let in_file = |fault| format!("{}: {fault}", input.name());
        notes.extend(faults.iter().map(in_file));
        let defaults = SupplementOptions::default();
        Ok(Some(Supplement {
            name: input.name().to_owned(),
            samples,
            options: SupplementOptions {
                least_counters: self
                    .supplement_min_counters
                    .unwrap_or(defaults.least_counters),
                zero_share: self.supplement_zero_share.unwrap_or(defaults.zero_share),
                cold: self.supplement_cold.unwrap_or(defaults.cold),
            },
        }))
    }
}

impl Supplement {
    pub fn correct(&self, profile: &mut InstrProfile, notes: &mut Vec<String>) {
        let done = self.samples.correct(profile, &self.options);
        notes.push(format!(
            "{}: scaled up the counts of {}, and marked {} as warm or hot",
            self.name,
            plural(done.scaled, "function"),
            plural(done.marked, "function")
        ));
        for name in &done.ambiguous {
            notes.push(format!(
                "{}: static function {} is in several files: it is not corrected",
                self.name,
                profkit_data::printable(name)
            ));
        }
        if done.overflows > 0 {
            notes.push(format!(
                "{}: counts that reached the largest possible value: {}",
                self.name, done.overflows
            ));
        }
    }
}
