//! `profkit merge --supplement-with`: a merged instrumentation profile corrected by a sample profile.
use crate::exit::{Failure, Result};
use clap::Args;
use profkit_analysis::supplement::{self, SupplementOptions};
use profkit_data::instr::InstrProfile;
use profkit_data::sample::SampleReadOptions;
use profkit_merge::files::Input;
use std::path::PathBuf;

/// Which functions are corrected by what.
#[derive(Debug, Args)]
#[command(next_help_heading = "Correction by a sample profile")]
pub struct SupplementArgs {
    /// Correct functions that are cold in the merged profile but warm or hot in this sample profile
    ///
    /// Their counts are scaled up, or they are marked as warm or hot where most of their counters are zero: what
    /// llvm-profdata merge --supplement-instr-with-sample does, after merging. For instrumentation of IR.
    #[arg(long, value_name = "FILE")]
    supplement_with: Option<PathBuf>,

    /// Functions with fewer counters stay as they are; 10 by default
    #[arg(long, value_name = "N", requires = "supplement_with")]
    supplement_min_counters: Option<u64>,

    /// Functions with a larger share of zero counters are marked, not scaled; 0.7 by default
    #[arg(long, value_name = "SHARE", requires = "supplement_with")]
    supplement_zero_share: Option<f32>,

    /// Functions whose largest count is at most this are cold; by default the profile's summary decides
    #[arg(long, value_name = "COUNT", requires = "supplement_with")]
    supplement_cold: Option<u64>,
}

/// A sample profile to correct by.
#[derive(Debug)]
pub struct Supplement {
    name: String,
    samples: supplement::Supplement,
    options: SupplementOptions,
}

impl SupplementArgs {
    /// Refuses what means nothing for sample profiles.
    ///
    /// # Errors
    /// If it was given.
    pub fn refuse(&self) -> Result<()> {
        match self.supplement_with {
            Some(_) => Err(Failure::usage(
                "--supplement-with corrects instrumentation profiles, and the inputs are sample profiles",
            )),
            None => Ok(()),
        }
    }

    /// Reads the sample profile, with a note on what is damaged in it.
    ///
    /// # Errors
    /// If it cannot be read, or if nothing can be read from it; with `strict` if anything cannot.
    pub fn load(&self, strict: bool, notes: &mut Vec<String>) -> Result<Option<Supplement>> {
        let Some(path) = &self.supplement_with else {
            return Ok(None);
        };
        let input = Input::open(path)?;
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
    /// Corrects a profile, and says what was done.
    pub fn correct(&self, profile: &mut InstrProfile, notes: &mut Vec<String>) {
        let done = self.samples.correct(profile, &self.options);
        notes.push(format!(
            "{}: functions scaled up: {}; marked as warm or hot: {}",
            self.name, done.scaled, done.marked
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
                "{}: counts that reached the largest number: {}",
                self.name, done.overflows
            ));
        }
    }
}
