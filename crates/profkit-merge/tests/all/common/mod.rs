//! Inputs in memory, and results as bytes.
#![allow(dead_code, reason = "each test file uses a part")]

use profkit_data::instr::InstrProfile;
use profkit_data::instr::indexed::{IndexedWriteOptions, write};
use profkit_data::instr::text::TextOptions;
use profkit_merge::{
    InputData, Inputs, MergeError, MergeOptions, MergeOutcome, Weight, merge_instr,
};

pub struct Files(pub Vec<(String, Weight, Vec<u8>)>);

impl Files {
    pub fn new<N: Into<String>>(files: impl IntoIterator<Item = (N, Vec<u8>)>) -> Self {
        let file = |(name, bytes): (N, Vec<u8>)| (name.into(), Weight::ONE, bytes);
        Files(files.into_iter().map(file).collect())
    }

    pub fn weighted(mut self, weights: &[u64]) -> Self {
        for ((_, weight, _), &value) in self.0.iter_mut().zip(weights) {
            *weight = Weight::integer(value);
        }
        self
    }

    pub fn merge(&self, options: &MergeOptions) -> Result<MergeOutcome, MergeError> {
        merge_instr(self, options)
    }
}

impl Inputs for Files {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn name(&self, index: usize) -> std::borrow::Cow<'_, str> {
        self.0[index].0.as_str().into()
    }

    fn weight(&self, index: usize) -> Weight {
        self.0[index].1
    }

    fn open<'s>(&'s self, index: usize, _: &mut Vec<u8>) -> std::io::Result<InputData<'s>> {
        Ok(InputData::Borrowed(&self.0[index].2))
    }
}

pub fn indexed(profile: &InstrProfile, version: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(
        profile,
        &IndexedWriteOptions::for_version(version),
        &mut bytes,
    )
    .unwrap();
    bytes
}

pub fn text(profile: &InstrProfile) -> String {
    let mut bytes = Vec::new();
    profkit_data::instr::text::write(profile, &TextOptions::default(), &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

pub fn threads(count: usize) -> MergeOptions {
    MergeOptions::new().threads(std::num::NonZeroUsize::new(count))
}

pub fn whole(outcome: &MergeOutcome) -> (Vec<Vec<u8>>, Vec<String>, profkit_merge::Totals) {
    let bytes = outcome
        .profiles
        .iter()
        .map(|merged| indexed(&merged.profile, 13))
        .collect();
    let events = outcome
        .report
        .events
        .iter()
        .map(|event| format!("{event:?}"));
    let mut totals = outcome.report.totals;
    totals.fast_profiles = 0;
    totals.layouts = 0;
    (bytes, events.collect(), totals)
}
