//! `profkit merge --stable`.
use super::args::StableArgs;
use crate::exit::{Failure, Result};
use profkit_analysis::stable::{Stabilised, Stable};
use profkit_data::instr::{InstrProfile, InstrReader};
use profkit_data::sample::SampleProfile;
use profkit_report::merge::stable_notes;

/// How a result is made stable.
#[derive(Debug)]
pub struct StableJob {
    rule: Stable,
    /// The older profile whose counts are kept.
    like: Option<InstrProfile>,
}

impl StableJob {
    pub fn new(args: &StableArgs) -> Result<Option<Self>> {
        let Some(bits) = args.stable else {
            return Ok(None);
        };
        let mut like = None;
        if let Some(path) = &args.like {
            let input = crate::io::open(path)?;
            let read = |mut reader| InstrProfile::read(&mut reader);
            let profile = InstrReader::open(input.bytes()).and_then(read);
            like = Some(profile.map_err(|error| Failure::file(input.name(), &error))?);
        }
        let rule = Stable { bits };
        Ok(Some(StableJob { rule, like }))
    }

    pub fn for_samples(args: &StableArgs) -> Result<Option<Self>> {
        if args.like.is_some() {
            return Err(Failure::usage(
                "--like is for instrumentation profiles, and the inputs are sample profiles",
            )
            .with_hint("leave out --like"));
        }
        Self::new(args)
    }

    pub fn functions(
        &self,
        profile: &mut InstrProfile,
        strict: bool,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let done = self.rule.instr(profile, self.like.as_ref());
        report(&done, strict, notes)
    }

    pub fn samples(
        &self,
        profile: &mut SampleProfile,
        strict: bool,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        report(&self.rule.samples(profile), strict, notes)
    }
}

fn report(done: &Stabilised, strict: bool, notes: &mut Vec<String>) -> Result<()> {
    let (about, paths) = stable_notes(done);
    notes.extend(about);
    match paths {
        Some(paths) if strict => Err(Failure::input(format_args!(
            "nothing was written, because --strict allows no paths of this machine: {paths}"
        ))),
        paths => {
            notes.extend(paths);
            Ok(())
        }
    }
}

/// Sizes, lifetimes and accesses differ from run to run by more than rounding covers.
pub fn no_heap() -> Failure {
    Failure::usage(
        "--stable is for counts of functions, and the inputs hold a heap profile, whose lifetimes and accesses it does not cover",
    )
    .with_hint("leave out --stable, or the heap profile: --only instr")
}
