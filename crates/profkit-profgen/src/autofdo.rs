//! Sample profiles, counted as the tools `create_llvm_prof` and `create_gcov` of google/autofdo (release 0.19) count.
//!
//! Counts belong to the single bytes of the code of functions, whose extents are those in the symbol table. Each byte
//! from the start of a range up to the first byte of its last instruction gets the count of the range. A line gets the
//! largest count of its bytes. Each function on the inline stack gets the sum of the counts of its bytes as its total.
//! A branch to the start of a function is a call. If several branches at one line go to one function, only the one with
//! the highest address counts. Functions with few samples are left out, together with the calls to and from them.
//!
//! With `--use_lbr=false`, each sampled address gives its byte a count, in place of the ranges. Branches count as before.
use crate::checked::{Figures, add};
use crate::discriminators::Discriminators;
use crate::finish::{Density, density};
use crate::lines::{FinishedProfile, line_at};
use crate::program::Program;
use profkit_data::limits::SAMPLE_INLINE_DEPTH;
use profkit_data::sample::{AddOutcome, Location, NameId, SampleName, SampleProfile, Samples};
use profkit_object::code_symbols::CodeSymbol;
use profkit_object::symbolize::{FrameId, Locations};
use profkit_perf::collect::{Numbering, Sums};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The largest length in bytes of a range between two branches. A longer range cannot be real.
const LONGEST_RANGE: u64 = 1 << 20;
/// The share of all samples, in millionths, that a function must exceed to be in the profile.
const LEAST_SHARE: u64 = 5;
/// The number of samples that a function must exceed to be in the profile.
const LEAST: u64 = 10;
/// The name that is written for an inlined function without a name.
const NO_NAME: &[u8] = b"noname";
/// The mask for a line offset. Line offsets in sample profiles have 16 bits.
const OFFSET_MASK: u32 = 0xffff;

struct Symbol<'s> {
    start: u64,
    end: u64,
    name: &'s [u8],
    aliases: Vec<&'s [u8]>,
    /// By how much the count changes at each address: up at the start of a range, down after its end.
    steps: BTreeMap<u64, i128>,
    samples: u64,
    branches: BTreeMap<(u64, u64), u64>,
}

/// Makes the profile of a binary from its counts.
///
/// `symbols` are the functions of the binary, sorted by address. If `plain_addresses` is true, sampled
/// addresses are counted and not ranges (`--use_lbr=false`).
pub fn autofdo_profile(
    program: &Program<'_>,
    symbols: &[CodeSymbol],
    counts: &[(&Sums, Numbering)],
    discriminators: Discriminators,
    plain_addresses: bool,
) -> FinishedProfile {
    let mut figures = Figures::default();
    let mut functions = functions(symbols);
    let all = distribute(
        program,
        &mut functions,
        counts,
        plain_addresses,
        &mut figures,
    );
    let least = (all / 1_000_000)
        .saturating_mul(LEAST_SHARE)
        .saturating_add(all % 1_000_000 * LEAST_SHARE / 1_000_000)
        .max(LEAST);
    let emitted: FxHashMap<u64, usize> = functions
        .iter()
        .enumerate()
        .filter(|(_, function)| function.samples > least)
        .map(|(index, function)| (function.start, index))
        .collect();
    let mut order: Vec<usize> = emitted.values().copied().collect();
    order.sort_unstable();
    let callee = |to: u64| {
        let callee = emitted.get(&to).and_then(|&index| functions.get(index));
        callee.map(|callee| callee.name)
    };
    // All addresses are looked up together, so that each unit of the debug info is read only once.
    let mut addresses = Vec::new();
    let found = order.iter().filter_map(|&index| functions.get(index));
    let parts: Vec<Part<'_>> = found
        .map(|function| Part::of(program, function, &callee, &mut addresses))
        .collect();
    let locations = program.symbolizer.symbolize(&addresses);
    let mut builder = Builder {
        profile: SampleProfile::new(),
        locations: &locations,
        discriminators,
    };
    for part in &parts {
        builder.add(part, &mut figures);
    }
    let mut profile = builder.profile;
    join_parts(&mut profile);
    discriminators.finish(&mut profile);
    profile.retain(|function| function.samples.total > least);
    for function in functions.iter().filter(|it| it.samples > least) {
        add_aliases(&mut profile, function);
    }
    let density = density(&profile, Density::CUTOFF);
    FinishedProfile {
        profile,
        figures,
        density,
        warnings: locations.warnings().to_vec(),
    }
}

/// The functions, sorted by address. Of several symbols at one address, the first gives the name.
fn functions(symbols: &[CodeSymbol]) -> Vec<Symbol<'_>> {
    let mut functions: Vec<Symbol<'_>> = Vec::new();
    for symbol in symbols.iter().filter(|symbol| symbol.size > 0) {
        match functions.last_mut() {
            Some(last) if last.start == symbol.address => last.aliases.push(&symbol.name),
            _ => functions.push(Symbol {
                start: symbol.address,
                end: symbol.address.saturating_add(symbol.size),
                name: &symbol.name,
                aliases: Vec::new(),
                steps: BTreeMap::new(),
                samples: 0,
                branches: BTreeMap::new(),
            }),
        }
    }
    functions
}

fn distribute(
    program: &Program<'_>,
    functions: &mut [Symbol<'_>],
    counts: &[(&Sums, Numbering)],
    plain_addresses: bool,
    figures: &mut Figures,
) -> u64 {
    let mut all = 0;
    // Which functions have few samples is decided by the ranges if there are any, also if addresses are counted.
    let has_ranges = counts.iter().any(|(sums, _)| !sums.ranges.is_empty());
    for (sums, numbering) in counts {
        let address = |place| program.address(*numbering, place);
        for sample in sums.addresses.iter().filter(|_| plain_addresses) {
            let count = sample.count;
            let weight = if has_ranges { 0 } else { count };
            add(&mut all, weight);
            let place = address(sample.place)
                .and_then(|address| Some((address, function_at(functions, address)?)));
            let Some((address, function)) = place else {
                add(&mut figures.addresses_off_boundary, count);
                continue;
            };
            add(&mut figures.addresses_used, count);
            add(&mut function.samples, weight);
            function.count(address, address, count);
        }
        // The figures are those of what is counted.
        let mut unused = Figures::default();
        let figures = if plain_addresses {
            &mut unused
        } else {
            &mut *figures
        };
        for range in &sums.ranges {
            let count = range.count;
            let (Some(start), Some(end)) = (address(range.start), address(range.end)) else {
                add(&mut figures.outside_code, count);
                continue;
            };
            add(&mut figures.ranges, count);
            let length = end.checked_sub(start).filter(|&it| it <= LONGEST_RANGE);
            let Some(length) = length else {
                add(&mut figures.impossible, count);
                continue;
            };
            let weight = count.saturating_mul(length);
            add(&mut all, weight);
            let Some(function) = function_at(functions, start) else {
                add(&mut figures.no_function, count);
                continue;
            };
            if end >= function.end {
                add(&mut figures.across_functions, count);
            }
            add(&mut function.samples, weight);
            add(&mut figures.used, count);
            if !plain_addresses {
                function.count(start, end, count);
            }
        }
        for branch in &sums.branches {
            let end = |place: profkit_perf::collect::Place| place.get().and_then(address);
            add(&mut figures.branches, branch.count);
            if let (Some(from), Some(to)) = (end(branch.from), end(branch.to))
                && let Some(function) = function_at(functions, from)
            {
                let count = function.branches.entry((from, to)).or_default();
                add(count, branch.count);
            }
        }
    }
    all
}

impl Symbol<'_> {
    /// Adds a count to the bytes from one address to another, both included.
    fn count(&mut self, first: u64, last: u64, count: u64) {
        let count = i128::from(count);
        *self.steps.entry(first).or_default() += count;
        *self.steps.entry(last.saturating_add(1)).or_default() -= count;
    }
}

fn function_at<'f, 's>(
    functions: &'f mut [Symbol<'s>],
    address: u64,
) -> Option<&'f mut Symbol<'s>> {
    let after = functions.partition_point(|function| function.start <= address);
    let function = functions.get_mut(after.checked_sub(1)?)?;
    (address < function.end).then_some(function)
}

#[derive(Clone, Copy, Default)]
struct FrameCounts {
    total: u64,
    line: u64,
}

struct Part<'s> {
    name: &'s [u8],
    /// The index of the first instruction in the list of all addresses. The addresses of calls follow.
    first: usize,
    instructions: Vec<FrameCounts>,
    calls: Vec<(&'s [u8], u64)>,
}

impl<'s> Part<'s> {
    fn of(
        program: &Program<'_>,
        function: &Symbol<'s>,
        callee: &dyn Fn(u64) -> Option<&'s [u8]>,
        addresses: &mut Vec<u64>,
    ) -> Self {
        let mut part = Part {
            name: function.name,
            first: addresses.len(),
            instructions: Vec::new(),
            calls: Vec::new(),
        };
        let mut steps = function.steps.iter().peekable();
        let mut count: i128 = 0;
        for one in program.code.between(function.start, function.end - 1) {
            let mut sum = FrameCounts::default();
            for byte in one.address..one.address.saturating_add(one.size.into()) {
                while let Some((_, change)) = steps.next_if(|(at, _)| **at <= byte) {
                    count += change;
                }
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                add(&mut sum.total, count);
                sum.line = sum.line.max(count);
            }
            addresses.push(one.address);
            part.instructions.push(sum);
        }
        for (&(from, to), &count) in &function.branches {
            if let Some(callee) = callee(to) {
                addresses.push(from);
                part.calls.push((callee, count));
            }
        }
        part
    }
}

struct Builder<'l> {
    profile: SampleProfile,
    locations: &'l Locations,
    discriminators: Discriminators,
}

impl Builder<'_> {
    fn add(&mut self, part: &Part<'_>, figures: &mut Figures) {
        let Some(name) = self.profile.intern(SampleName::Text(part.name)) else {
            return;
        };
        let locations = self.locations;
        figures.instructions += part.instructions.len() as u64;
        let mut order: Vec<FrameId> = Vec::new();
        let mut frames: FxHashMap<FrameId, FrameCounts> = FxHashMap::default();
        for (index, sum) in part.instructions.iter().enumerate() {
            let Some(leaf) = locations.leaf(part.first + index) else {
                figures.instructions_without_line += 1;
                continue;
            };
            let counts = frames.entry(leaf).or_insert_with(|| {
                order.push(leaf);
                FrameCounts::default()
            });
            add(&mut counts.total, sum.total);
            counts.line = counts.line.max(sum.line);
        }
        for leaf in order {
            let counts = frames.get(&leaf).copied().unwrap_or_default();
            let factor = self.factor(leaf);
            let total = counts.total.saturating_mul(factor);
            if let Some((samples, location)) = self.enter(name, leaf, total) {
                let line = line_at(samples, location);
                *line = (*line).max(counts.line.saturating_mul(factor));
            }
        }
        let first_call = part.first + part.instructions.len();
        for (index, &(callee, count)) in part.calls.iter().enumerate() {
            add(&mut figures.calls, count);
            self.add_call(name, locations.leaf(first_call + index), callee, count);
        }
    }

    fn factor(&self, leaf: FrameId) -> u64 {
        let frame = self.locations.frame(leaf);
        frame.map_or(1, |frame| {
            self.discriminators.factor(frame.discriminator).into()
        })
    }

    fn add_call(&mut self, function: NameId, leaf: Option<FrameId>, callee: &[u8], count: u64) {
        let Some(head) = self.profile.intern(SampleName::Text(callee)) else {
            return;
        };
        let index = self.profile.find_or_add(&[], head);
        if let Some(samples) = self.profile.samples_mut(index) {
            add(&mut samples.head, count);
        }
        let Some(target) = self
            .profile
            .intern(SampleName::Text(whole_function(callee)))
        else {
            return;
        };
        if let Some(leaf) = leaf
            && let Some((samples, location)) = self.enter(function, leaf, 0)
        {
            line_at(samples, location);
            set_target(samples, location, target, count);
        }
    }

    /// The samples of the innermost function of a frame, and its line. Adds `total` along the inline stack; `None` if
    /// that is too deep.
    fn enter(
        &mut self,
        function: NameId,
        leaf: FrameId,
        total: u64,
    ) -> Option<(&mut Samples, Location)> {
        let locations = self.locations;
        let frames = std::iter::successors(Some(leaf), |&frame| locations.caller(frame));
        let frames = frames.take(SAMPLE_INLINE_DEPTH + 1);
        let frames: Vec<_> = frames.filter_map(|id| locations.frame(id)).collect();
        if frames.len() > SAMPLE_INLINE_DEPTH {
            return None;
        }
        let mut path: Vec<(Option<NameId>, Location)> = Vec::with_capacity(frames.len());
        for (depth, frame) in frames.iter().rev().enumerate() {
            let discriminator = self.discriminators.place(frame.discriminator);
            let line = frame.line.wrapping_sub(frame.function_line) & OFFSET_MASK;
            let name = frame.function.filter(|name| !name.is_empty());
            let name = SampleName::Text(name.unwrap_or(NO_NAME));
            let name = (depth > 0).then(|| self.profile.intern(name));
            path.push((name.flatten(), Location::new(line, discriminator)));
        }
        let index = self.profile.find_or_add(&[], function);
        let mut samples = self.profile.samples_mut(index)?;
        add(&mut samples.total, total);
        let mut site = Location::default();
        for (name, location) in path {
            if let Some(name) = name {
                samples = samples.inlined_at(site, name);
                add(&mut samples.total, total);
            }
            site = location;
        }
        Some((samples, site))
    }
}

fn set_target(samples: &mut Samples, location: Location, target: NameId, count: u64) {
    let mut targets = samples.targets.iter_mut();
    if let Some(known) = targets.find(|it| it.location == location && it.name == target) {
        known.count = count;
        return;
    }
    let mut outcome = AddOutcome::default();
    samples
        .adding()
        .add_target(location, target, count, 1, &mut outcome);
}

fn whole_function(name: &[u8]) -> &[u8] {
    let dot = name.iter().position(|&byte| byte == b'.');
    dot.and_then(|dot| name.get(..dot)).unwrap_or(name)
}

fn join_parts(profile: &mut SampleProfile) {
    let mut joined = Vec::new();
    for function in profile.take_functions() {
        let name = match profile.names.get(function.samples.name) {
            SampleName::Text(name) => whole_function(name).to_vec(),
            SampleName::Guid(_) => Vec::new(),
        };
        joined.push((name, function.samples));
    }
    for (name, mut samples) in joined {
        let Some(name) = profile.intern(SampleName::Text(&name)) else {
            continue;
        };
        samples.name = name;
        let mut outcome = AddOutcome::default();
        let mut additions = profile.additions();
        additions.merge(&[], &samples, |name| name, 1, &mut outcome);
    }
}

fn add_aliases(profile: &mut SampleProfile, function: &Symbol<'_>) {
    let name = profile
        .names
        .find(SampleName::Text(whole_function(function.name)));
    let Some(found) = name.and_then(|name| profile.find(&[], name)) else {
        return;
    };
    let Some(samples) = profile.functions().get(found).map(|it| it.samples.clone()) else {
        return;
    };
    for alias in &function.aliases {
        let Some(name) = profile.intern(SampleName::Text(whole_function(alias))) else {
            return;
        };
        if profile.find(&[], name).is_none() {
            let mut copy = samples.clone();
            copy.name = name;
            profile.push(profkit_data::sample::Function {
                callers: Box::default(),
                samples: copy,
            });
        }
    }
}
