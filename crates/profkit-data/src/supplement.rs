//! Corrects an instrumentation profile with the help of a sample profile. The correction is for functions that run
//! often in production but hardly ran in the instrumented run (`adjustInstrProfile` in `llvm-profdata.cpp`).
use crate::Error;
use crate::instr::{InstrProfile, RecordId};
use crate::sample::{
    ProfileKind, SampleName, SampleProfile, SampleReadOptions, Samples, head_estimate, read_with,
    summarize,
};
use crate::summary::{Summary, SummaryBuilder, Thresholds};
use md5::{Digest, Md5};
use profkit_abi::indexed::{PSEUDO_HOT, PSEUDO_WARM, SUMMARY_CUTOFFS};
use profkit_abi::sample::UNIQUE_SUFFIX;
use std::collections::BTreeMap;

/// The limits that decide which functions are corrected, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SupplementOptions {
    /// The smallest number of counters that a corrected function has (`--suppl-min-size-threshold`). Smaller functions
    /// do not change.
    pub least_counters: u64,
    /// The limit for the share of a function's counters that are 0, from 0 to 1 (`--zero-counter-threshold`). If the
    /// share is larger, the function is marked as hot or warm, and its counts are not scaled.
    pub zero_share: f32,
    /// A function is cold if its largest count is at most this number. If the number is 0, the summary of the profile
    /// supplies it (`--instr-prof-cold-threshold`).
    pub cold: u64,
}

impl Default for SupplementOptions {
    fn default() -> Self {
        SupplementOptions {
            least_counters: 10,
            zero_share: 0.7,
            cold: 0,
        }
    }
}

/// The result of correcting an instrumentation profile: how many functions and counts were changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supplemented {
    /// The number of functions whose counts were scaled up.
    pub scaled: u64,
    /// The number of functions that were marked as hot or warm.
    pub marked: u64,
    /// The number of counts that were limited to the largest possible count.
    pub overflows: u64,
    /// Names in the samples that belong to static functions of several files. The functions with such a name are not
    /// corrected, because it is unknown to which of them the samples belong.
    pub ambiguous: Vec<Vec<u8>>,
}

#[derive(Clone, Copy)]
struct Entry {
    table: usize,
    record: RecordId,
    largest: u64,
    counters: u64,
    zero_share: f32,
}

/// The static functions with one name: the full name of the function, if only one file has such a function, or
/// `Several`.
enum Static {
    One(Vec<u8>),
    Several,
}

/// A sample profile that corrects instrumentation profiles.
#[derive(Clone, Debug)]
pub struct Supplement {
    samples: SampleProfile,
    /// The summary that is stored in the sample profile; if the file has none, a summary that is computed from the
    /// samples. A stored summary may include functions that were later removed from the file.
    summary: Summary,
}

impl Supplement {
    /// Reads the intact parts of a sample profile. Also returns the errors of the file.
    pub fn read(data: &[u8], options: &SampleReadOptions) -> (Self, Vec<Error>) {
        let mut samples = SampleProfile::new();
        let report = read_with(data, &mut samples, 1, options);
        let summary = report.summary.unwrap_or_else(|| summarize(&samples));
        (Supplement { samples, summary }, report.faults)
    }

    /// Whether the sample profile has no functions.
    pub fn is_empty(&self) -> bool {
        self.samples.functions().is_empty()
    }

    /// Corrects an instrumentation profile.
    pub fn correct(&self, profile: &mut InstrProfile, options: &SupplementOptions) -> Supplemented {
        supplement(profile, &self.samples, &self.summary, options)
    }
}

fn supplement(
    profile: &mut InstrProfile,
    samples: &SampleProfile,
    summary: &Summary,
    options: &SupplementOptions,
) -> Supplemented {
    let mut builder = SummaryBuilder::new();
    let functions = entries(profile, &mut builder);
    let instr = builder.finish_with(&SUMMARY_CUTOFFS);
    let statics = static_names(&functions, has_unique_names(samples));
    let mut flat = Flat {
        samples,
        functions: &functions,
        statics: &statics,
        contexts: samples.kind.contains(ProfileKind::CONTEXT_SENSITIVE),
        counts: BTreeMap::new(),
    };
    for function in samples.functions() {
        let name = flat.name(&function.samples);
        flat.add(&function.samples, &name);
    }
    let counts = flat.counts;
    // LLVM's tool uses the default thresholds here, even if its options set others.
    let thresholds = Thresholds::default();
    let hot_in = |summary| thresholds.hot(summary).unwrap_or(0);
    let cold_in = |summary| thresholds.cold(summary).unwrap_or(0);
    let (hot_samples, cold_samples) = (hot_in(summary), cold_in(summary));
    let hot = hot_in(&instr);
    let cold = match options.cold {
        0 => cold_in(&instr),
        cold => cold,
    };
    let mut done = Supplemented::default();
    for (name, (entry_count, largest)) in counts {
        let count = entry_count.max(largest);
        if count < cold_samples {
            continue;
        }
        let mut found = functions.get(&name);
        if found.is_none() {
            match statics.get(&name) {
                Some(Static::One(full)) => found = functions.get(full),
                Some(Static::Several) => done.ambiguous.push(name),
                None => {}
            }
        }
        let Some(entry) = found else { continue };
        if entry.largest > cold || entry.counters < options.least_counters {
            continue;
        }
        let is_hot = count >= hot_samples;
        let threshold = if is_hot { hot } else { cold };
        correct(profile, entry, is_hot, threshold, options, &mut done);
    }
    done
}

fn entries(profile: &InstrProfile, builder: &mut SummaryBuilder) -> BTreeMap<Vec<u8>, Entry> {
    let mut entries = BTreeMap::new();
    for (table, functions) in profile.tables.iter().enumerate() {
        for number in (0u32..).take(functions.function_count()) {
            let id = crate::instr::FunctionId(number);
            let mut only = None;
            let mut records = 0;
            for record in functions.record_ids(id) {
                let Some(data) = functions.record(record) else {
                    continue;
                };
                builder.add_counts(data.counts);
                records += 1;
                let zeros = data.counts.iter().filter(|&&count| count == 0).count();
                only = Some(Entry {
                    table,
                    record,
                    largest: data.counts.iter().copied().max().unwrap_or(0),
                    counters: data.counts.len() as u64,
                    zero_share: share(zeros, data.counts.len()),
                });
            }
            if let (Some(entry), 1, Some(function)) = (only, records, functions.function(id)) {
                entries.insert(function.name().to_vec(), entry);
            }
        }
    }
    entries
}

/// LLVM calculates in single precision, and profkit must mark the same functions.
fn share(part: usize, whole: usize) -> f32 {
    part as f32 / whole as f32
}

fn has_unique_names(samples: &SampleProfile) -> bool {
    let contains = |id| match samples.names.get(id) {
        SampleName::Text(name) => memchr::memmem::find(name, UNIQUE_SUFFIX).is_some(),
        SampleName::Guid(_) => false,
    };
    samples.functions().iter().any(|function| {
        contains(function.samples.name) || function.callers.iter().any(|frame| contains(frame.name))
    })
}

/// Maps the names of static functions in samples to their names in instrumentation profiles. A name in an
/// instrumentation profile begins with the name of the source file. `unique` states whether the sampled program has
/// unique names for its static functions.
fn static_names(functions: &BTreeMap<Vec<u8>, Entry>, unique: bool) -> BTreeMap<Vec<u8>, Static> {
    let mut statics = BTreeMap::new();
    for full in functions.keys() {
        let Some(start) = file_end(full) else {
            continue;
        };
        let (file, name) = (
            full.get(..start - 1).unwrap_or_default(),
            full.get(start..).unwrap_or_default(),
        );
        if name.is_empty() {
            continue;
        }
        let suffix = memchr::memmem::find(name, UNIQUE_SUFFIX);
        let key = match suffix {
            Some(suffix) if !unique => name.get(..suffix).unwrap_or_default().to_vec(),
            None if unique => {
                // A name without the suffix `.__uniq.…` gets the suffix that belongs to its file. So static functions
                // of different files with the same name stay distinct.
                let key = [name, unique_suffix(file).as_bytes()].concat();
                statics.insert(key, Static::One(full.clone()));
                continue;
            }
            _ => name.to_vec(),
        };
        statics
            .entry(key)
            .and_modify(|entry| *entry = Static::Several)
            .or_insert_with(|| Static::One(full.clone()));
    }
    statics
}

/// Returns the offset of the function name after a prefix such as `FILE.c;`; `None` if there is no such prefix. If a
/// name contains several of the file extensions in the list below, the extension that comes first in the list decides.
/// The case of letters is ignored.
fn file_end(name: &[u8]) -> Option<usize> {
    let lower = name.to_ascii_lowercase();
    [&b".cpp;"[..], b"cc;", b".c;", b".hpp;", b".h;"]
        .iter()
        .find_map(|ending| Some(memchr::memmem::find(&lower, ending)? + ending.len()))
}

/// The suffix that `-funique-internal-linkage-names` gives to the functions of a file.
fn unique_suffix(file: &[u8]) -> String {
    let digest: [u8; 16] = Md5::digest(file).into();
    format!(".__uniq.{}", u128::from_be_bytes(digest))
}

/// For each function of the sample profile: the sum of its entry counts, and the largest count of its lines.
struct Flat<'a> {
    samples: &'a SampleProfile,
    functions: &'a BTreeMap<Vec<u8>, Entry>,
    statics: &'a BTreeMap<Vec<u8>, Static>,
    contexts: bool,
    counts: BTreeMap<Vec<u8>, (u64, u64)>,
}

impl Flat<'_> {
    fn name(&self, samples: &Samples) -> Vec<u8> {
        match self.samples.names.get(samples.name) {
            SampleName::Text(name) => name.to_vec(),
            guid @ SampleName::Guid(_) => guid.to_string().into_bytes(),
        }
    }

    /// Adds the samples of a function and of the functions inlined into it. If the instrumentation profile does not
    /// contain an inlined function, the samples of the inlined function are added to `root`, the function into which it
    /// was inlined.
    fn add(&mut self, samples: &Samples, root: &[u8]) {
        let name = self.name(samples);
        let mut entry = head_estimate(samples, self.contexts);
        let lines = samples.body.iter().map(|line| line.samples);
        let root = match (self.functions.contains_key(&name), self.statics.get(&name)) {
            (true, _) => name,
            (false, Some(Static::One(full))) => full.clone(),
            (false, Some(Static::Several)) => root.to_vec(),
            (false, None) => {
                entry = 0;
                root.to_vec()
            }
        };
        let sum = self.counts.entry(root.clone()).or_default();
        sum.0 = sum.0.wrapping_add(entry);
        sum.1 = sum.1.max(lines.max().unwrap_or(0));
        for inlined in &samples.inlined {
            self.add(&inlined.samples, &root);
        }
    }
}

/// The largest count that LLVM writes (`getInstrMaxCountValue`).
const LARGEST: u64 = u64::MAX - 2;
/// A hot function is scaled until its largest count is this many times the hot threshold. A warm function is scaled
/// until its largest count is this many times the cold threshold.
const FACTOR: u64 = 3;

fn correct(
    profile: &mut InstrProfile,
    entry: &Entry,
    is_hot: bool,
    threshold: u64,
    options: &SupplementOptions,
    done: &mut Supplemented,
) {
    let Some(table) = profile.tables.get_mut(entry.table) else {
        return;
    };
    let Some(counts) = table.counts_mut(entry.record) else {
        return;
    };
    if entry.largest == 0 || entry.zero_share > options.zero_share {
        if let Some(first) = counts.first_mut() {
            *first = if is_hot { PSEUDO_HOT } else { PSEUDO_WARM };
            done.marked += 1;
        }
        return;
    }
    let (numerator, denominator) = (threshold.wrapping_mul(FACTOR), entry.largest);
    if numerator <= denominator {
        return;
    }
    done.scaled += 1;
    for count in counts {
        let (product, over) = count.overflowing_mul(numerator);
        let scaled = if over { u64::MAX } else { product } / denominator;
        *count = scaled.min(LARGEST);
        done.overflows += u64::from(over || scaled > LARGEST);
    }
    let Some(values) = table.values_mut(entry.record) else {
        return;
    };
    for (_, kind) in values.kinds_mut() {
        for value in kind.entries_mut() {
            let (product, over) = value.count.overflowing_mul(numerator);
            value.count = if over { u64::MAX } else { product } / denominator;
            done.overflows += u64::from(over);
        }
    }
}
