//! Reproduces `merge --supplement-instr-with-sample` (`supplementInstrProfile` in `llvm-profdata.cpp`).
use super::super::inputs::InputList;
use super::super::merge;
use super::super::options::FORMAT;
use super::{fault, read_options};
use crate::command_line::Parsed;
use crate::messages::{Fault, Session, fault_text};
use profkit_data::instr::InstrProfile;
use profkit_data::supplement::{Supplement, SupplementOptions};
use profkit_merge::{Inputs, MergeOptions, Policy, merge_instr};
use std::num::NonZeroUsize;

/// Runs `merge --supplement-instr-with-sample`.
pub fn run(parsed: &Parsed, inputs: &InputList, session: &Session<'_>) -> Result<(), Fault> {
    if parsed.output() == b"-" {
        return Err(Fault::new("cannot write indexed profdata format to stdout"));
    }
    let [file] = inputs.files.as_slice() else {
        return Err(Fault::new("expect one input to be an instr profile"));
    };
    if file.weight != 1 {
        return Err(Fault::new("expect instr profile doesn't have weight"));
    }
    let name = parsed.text("supplement-instr-with-sample");
    let bytes = session.read(name)?;
    let (supplement, faults) = Supplement::read(bytes.as_ref(), &read_options(parsed));
    if let Some(error) = faults.first() {
        return Err(fault(name, bytes.as_ref(), error));
    }
    let options = MergeOptions::new()
        .policy(Policy::Llvm)
        .read_as(Some(session.release()))
        .threads(NonZeroUsize::new(1));
    let mut outcome = merge_instr(inputs, &options).map_err(|error| merge::merge_fault(&error))?;
    let about_file = |event: &&profkit_merge::Event| event.function.is_none();
    if let Some(event) = outcome.report.events.iter().find(about_file)
        && !event.reason.is_note()
    {
        let text = event
            .llvm
            .as_ref()
            .map_or_else(|| event.message.clone(), fault_text);
        return Err(Fault::of(inputs.name(0).as_bytes(), text));
    }
    let mut profile = match outcome.profiles.pop() {
        Some(merged) => merged.profile,
        None => InstrProfile::default(),
    };
    let defaults = SupplementOptions::default();
    let zero_share = std::str::from_utf8(parsed.text("zero-counter-threshold"));
    let zero_share = zero_share
        .ok()
        .and_then(|text| text.trim_start().parse().ok());
    let supplement_options = SupplementOptions {
        least_counters: parsed
            .number("suppl-min-size-threshold")
            .unwrap_or(defaults.least_counters),
        zero_share: zero_share.unwrap_or(defaults.zero_share),
        cold: parsed.number("instr-prof-cold-threshold").unwrap_or(0),
    };
    let done = supplement.correct(&mut profile, &supplement_options);
    for name in &done.ambiguous {
        let name = String::from_utf8_lossy(name);
        let text =
            format!("Static function {name} has multiple promoted names, cannot adjust profile.");
        session.warning(b"", &text);
    }
    for _ in 0..done.overflows {
        session.warning(b"", "counter overflow");
    }
    merge::write(
        parsed,
        (&profile, None),
        parsed.word(FORMAT) == Some("text"),
        &options.run.threads,
        session,
    )
}
