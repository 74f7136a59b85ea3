//! Makes a sample profile for LLVM's `-fprofile-sample-use` from a MIP profile and debug info.
//!
//! Every address of a function gets the weight of its block. A source line gets the largest weight of its addresses, as
//! in profiles made from samples. The weight of the entry is the number of calls if calls were counted. Otherwise it is
//! the number of runs that called the function. The weight of any other block is the weight of the entry, multiplied by
//! the number of runs that executed the block, and divided by the number of runs that called the function. A block that
//! was never executed gets 0.
//!
//! Call edges say more: the calls of a function are divided among its call sites in proportion to the weights of its
//! edges. A line with a call site gets at least the calls from there, and so does the block around it, unless it is the
//! entry, whose weight is known.
//!
//! The result is a profile of [`profkit_data::sample`], which can write it in every encoding.
use profkit_data::mip::{EntryKind, Function, FunctionId, MipProfile, Modes, part_of};
use profkit_data::sample::{
    AddOutcome, Location, NameId, SampleName, SampleProfile, Samples, base_discriminator,
};
use profkit_object::symbolize::{Frame, Locations, Symbolizer};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The addresses of one call of the symbolizer. Each takes about sixteen bytes.
const ADDRESSES_AT_ONCE: usize = 1 << 24;

/// The largest line offset in LLVM's sample profiles, which store it in 16 bits (`FunctionSamples::getOffset`).
const OFFSET_MASK: u32 = 0xffff;

/// Suffixes of copied and split functions. Compilers apply a profile before, and look for the plain name.
const SUFFIXES: [&[u8]; 6] = [
    b".llvm.",
    b".cold",
    b".part.",
    b".isra.",
    b".constprop.",
    b".__part.",
];

/// A sample profile made from a MIP profile, and the numbers of functions and call edges that could not be used.
#[derive(Clone, Debug, Default)]
pub struct MadeProfile {
    /// The sample profile.
    pub profile: SampleProfile,
    /// The number of called functions for which the debug info has no line.
    pub without_lines: usize,
    /// Functions left out because their first line, from which lines are counted, is unknown.
    pub without_start: usize,
    /// The number of call edges for which the source location of the call is unknown.
    pub edges_without_lines: usize,
}

/// The symbolizer is that of the binary, with
/// [`Options::symbol_names`](profkit_object::symbolize::Options::symbol_names) off.
pub fn sample_profile(
    profile: &MipProfile,
    symbolizer: &Symbolizer<'_>,
    section: Option<u64>,
) -> MadeProfile {
    let mut made = MadeProfile::default();
    let sites = Sites::of(profile);
    let address_of = |function: &Function| profile.address_of(function, section);
    // A part belongs to the function of its name and signature: several may have the name.
    let mut whole: FxHashMap<(&[u8], u32), &Function> = FxHashMap::default();
    for function in profile.functions.iter().filter(|one| one.is_covered()) {
        whole.insert((&function.name, function.signature), function);
    }
    let called = profile.functions.entries().filter_map(|(id, function)| {
        let whole = if function.is_part() {
            whole.get(&(part_of(&function.name)?, function.signature))?
        } else {
            Some(function).filter(|one| one.is_covered())?
        };
        Some((
            function,
            weights(function, whole, sites.of_caller(id)),
            address_of(function)?,
        ))
    });
    let called: Vec<(&Function, Weights, u64)> = called.collect();
    let mut rest = &*called;
    while !rest.is_empty() {
        let mut addresses = Vec::new();
        let mut taken = 0;
        for (function, _, start) in rest {
            let size = code_size(function) as usize;
            if taken > 0 && addresses.len() + size > ADDRESSES_AT_ONCE {
                break;
            }
            addresses.extend(
                (0..u64::from(code_size(function))).map(|offset| start.wrapping_add(offset)),
            );
            taken += 1;
        }
        let locations = symbolizer.symbolize(&addresses);
        let (now, later) = rest.split_at(taken);
        let mut first = 0;
        for (function, weights, _) in now {
            made.add_function(function, weights, &locations, first);
            first += code_size(function) as usize;
        }
        rest = later;
    }
    made.add_edges(profile, &sites, symbolizer, section);
    let (_, functions) = made.profile.parts_mut();
    for function in functions {
        set_totals(&mut function.samples);
    }
    made
}

/// The number of bytes of a function that are looked at. A damaged profile can state any size, and each byte takes memory.
fn code_size(function: &Function) -> u32 {
    const LARGEST: u32 = 1 << 24;
    function.size.min(LARGEST)
}

fn entry_weight(function: &Function) -> u64 {
    match function.modes.entry() {
        Some(EntryKind::Calls | EntryKind::SampledCalls | EntryKind::Unary) => {
            function.calls.max(1)
        }
        _ => function.called_runs,
    }
}

/// The offset and weight of each block of a function, sorted by offset.
type Weights = Vec<(u32, u64)>;

/// How often each call site called, as the edges of the callee and its calls let it be estimated.
struct Sites {
    /// For each call edge, its calls.
    of_edges: Vec<u64>,
    /// For each caller, the offset of each call site and its calls.
    of_callers: FxHashMap<FunctionId, BTreeMap<u32, u64>>,
}

impl Sites {
    fn of(profile: &MipProfile) -> Self {
        let mut weights: FxHashMap<FunctionId, u64> = FxHashMap::default();
        for edge in &profile.edges {
            let sum = weights.entry(edge.callee).or_default();
            *sum = sum.saturating_add(edge.weight);
        }
        let mut sites = Sites {
            of_edges: Vec::with_capacity(profile.edges.len()),
            of_callers: FxHashMap::default(),
        };
        for edge in &profile.edges {
            let all = weights.get(&edge.callee).copied().unwrap_or(0).max(1);
            let calls = profile.functions[edge.callee].calls;
            let share = u128::from(calls) * u128::from(edge.weight) / u128::from(all);
            let calls = u64::try_from(share).unwrap_or(u64::MAX).max(edge.weight);
            sites.of_edges.push(calls);
            if let Some(caller) = edge.caller {
                let site = sites.of_callers.entry(caller).or_default();
                let sum = site.entry(edge.call_site).or_default();
                *sum = sum.saturating_add(calls);
            }
        }
        sites
    }

    fn of_caller(&self, caller: FunctionId) -> Option<&BTreeMap<u32, u64>> {
        self.of_callers.get(&caller)
    }
}

/// `whole` is the function to which the part belongs, `sites` are its call sites.
fn weights(function: &Function, whole: &Function, sites: Option<&BTreeMap<u32, u64>>) -> Weights {
    let entry = entry_weight(whole);
    let mut weights = Vec::with_capacity(function.blocks.len() + 1);
    if !function.is_part() {
        weights.push((0, entry));
    }
    if function.modes.contains(Modes::BLOCK_COVERAGE) {
        weights.extend(function.blocks.iter().map(|block| {
            let share =
                u128::from(entry) * u128::from(block.runs) / u128::from(whole.called_runs.max(1));
            let weight = u64::try_from(share).unwrap_or(u64::MAX).min(entry);
            (
                block.offset,
                if block.runs == 0 { 0 } else { weight.max(1) },
            )
        }));
        weights.sort_by_key(|(offset, _)| *offset);
    }
    let first = usize::from(!function.is_part());
    for (site, calls) in sites.into_iter().flatten() {
        // The return address is that of the instruction after the call.
        let call = site.saturating_sub(1);
        let block = weights.partition_point(|(start, _)| *start <= call);
        let block = block.checked_sub(1).filter(|&block| block >= first);
        if let Some((_, weight)) = block.and_then(|block| weights.get_mut(block)) {
            *weight = (*weight).max(*calls);
        }
    }
    weights
}

impl MadeProfile {
    fn add_function(
        &mut self,
        function: &Function,
        weights: &[(u32, u64)],
        locations: &Locations,
        first: usize,
    ) {
        let (mut lines, mut starts) = (0_usize, 0_usize);
        let name = base_name(&function.name);
        // Many addresses share their innermost frame: only a larger weight is set again.
        let mut done: FxHashMap<_, u64> = FxHashMap::default();
        for offset in 0..code_size(function) {
            let after = weights.partition_point(|(start, _)| *start <= offset);
            let weight = after
                .checked_sub(1)
                .and_then(|block| weights.get(block))
                .map_or(0, |(_, weight)| *weight);
            let index = first + offset as usize;
            let Some(leaf) = locations.leaf(index) else {
                continue;
            };
            if done.get(&leaf).is_some_and(|&known| known >= weight) {
                continue;
            }
            done.insert(leaf, weight);
            let stack: Vec<Frame<'_>> = locations.stack(index).collect();
            lines += usize::from(stack.iter().any(|frame| frame.line > 0));
            if let Some((samples, location)) = self.place(name, &stack) {
                starts += 1;
                raise_line(samples, location, weight);
            }
        }
        if function.is_part() {
            // These counts must contain each function once, so parts are left out.
        } else if starts > 0 {
            if let Some(samples) = self.function(name) {
                samples.head = samples.head.saturating_add(entry_weight(function));
            }
        } else if lines > 0 {
            self.without_start += 1;
        } else {
            self.without_lines += 1;
        }
    }

    fn name(&mut self, name: &[u8]) -> Option<NameId> {
        self.profile.intern(SampleName::Text(name))
    }

    /// Returns the samples of the function with this name. `None` if the table of names is full (2^32 names).
    fn function(&mut self, name: &[u8]) -> Option<&mut Samples> {
        let name = self.name(name)?;
        let index = self.profile.find_or_add(&[], name);
        self.profile.samples_mut(index)
    }

    /// The samples of a call stack; `None` if a frame has no line, or its function no first line.
    fn place(&mut self, name: &[u8], stack: &[Frame<'_>]) -> Option<(&mut Samples, Location)> {
        if stack
            .iter()
            .any(|frame| frame.line == 0 || frame.function_line == 0)
        {
            return None;
        }
        let (leaf, callers) = stack.split_first()?;
        let callees = stack.iter().rev().skip(1);
        let mut path = Vec::with_capacity(callers.len());
        for (caller, callee) in callers.iter().rev().zip(callees) {
            let callee = self.name(callee.function.unwrap_or_default())?;
            path.push((location(caller), callee));
        }
        let mut samples = self.function(name)?;
        for (location, callee) in path {
            samples = samples.inlined_at(location, callee);
        }
        Some((samples, location(leaf)))
    }

    fn add_edges(
        &mut self,
        profile: &MipProfile,
        sites: &Sites,
        symbolizer: &Symbolizer<'_>,
        section: Option<u64>,
    ) {
        let known = profile.edges.iter().zip(&sites.of_edges);
        let known = known.filter_map(|(edge, calls)| {
            let site = sites.of_caller(edge.caller?)?.get(&edge.call_site)?;
            let caller = &profile.functions[edge.caller?];
            let callee = &profile.functions[edge.callee];
            // A return address follows its call instruction. So the address of the last byte of the call is symbolised.
            let address = profile
                .address_of(caller, section)?
                .wrapping_add(edge.call_site.into())
                .wrapping_sub(1);
            Some((address, caller, callee, *calls, *site))
        });
        let known: Vec<_> = known.collect();
        let addresses: Vec<u64> = known.iter().map(|(address, ..)| *address).collect();
        let locations = symbolizer.symbolize(&addresses);
        self.edges_without_lines += profile.edges.len() - known.len();
        for (index, (_, caller, callee, calls, site)) in known.into_iter().enumerate() {
            let stack: Vec<Frame<'_>> = locations.stack(index).collect();
            let target = self.name(base_name(&callee.name));
            let place = self.place(base_name(&caller.name), &stack);
            let (Some(target), Some((samples, location))) = (target, place) else {
                self.edges_without_lines += 1;
                continue;
            };
            raise_line(samples, location, site);
            let mut outcome = AddOutcome::default();
            samples
                .adding()
                .add_target(location, target, calls, 1, &mut outcome);
        }
    }
}

fn raise_line(samples: &mut Samples, location: Location, weight: u64) {
    let mut outcome = AddOutcome::default();
    samples.adding().add_line(location, 0, 1, &mut outcome);
    let line = samples
        .body
        .binary_search_by_key(&location, |line| line.location)
        .ok()
        .and_then(|at| samples.body.get_mut(at));
    if let Some(line) = line {
        line.samples = line.samples.max(weight);
    }
}

fn set_totals(samples: &mut Samples) -> u64 {
    let own = samples
        .body
        .iter()
        .fold(0_u64, |sum, line| sum.saturating_add(line.samples));
    samples.total = samples.inlined.iter_mut().fold(own, |sum, inlined| {
        sum.saturating_add(set_totals(&mut inlined.samples))
    });
    samples.total
}

fn location(frame: &Frame<'_>) -> Location {
    Location::new(
        frame.line.wrapping_sub(frame.function_line) & OFFSET_MASK,
        base_discriminator(frame.discriminator),
    )
}

/// Returns the name without suffixes. This is the name that the function has when the compiler applies a sample profile.
fn base_name(name: &[u8]) -> &[u8] {
    let cut = SUFFIXES.iter().filter_map(|suffix| {
        name.windows(suffix.len())
            .position(|window| window == *suffix)
    });
    match cut.min() {
        Some(end) if end > 0 => name.get(..end).unwrap_or(name),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::index_vec::IndexVec;
    use profkit_data::mip::{Block, CallEdge};

    #[test]
    fn a_call_site_has_its_share_of_the_calls_and_raises_its_block() {
        let function = |modes: Modes, calls, blocks: &[(u32, u64)]| Function {
            modes,
            called_runs: 2,
            calls,
            size: 0x40,
            blocks: blocks
                .iter()
                .map(|&(offset, runs)| Block { offset, runs })
                .collect(),
            ..Function::default()
        };
        let with_blocks = Modes::CALLS.union(Modes::BLOCK_COVERAGE);
        let functions: IndexVec<FunctionId, Function> = vec![
            function(with_blocks, 4, &[(0x10, 2), (0x20, 1), (0x30, 0)]),
            function(Modes::CALLS, 2000, &[]),
        ]
        .into();
        let ids: Vec<FunctionId> = functions.ids().collect();
        let edge = |call_site, weight| CallEdge {
            caller: Some(ids[0]),
            call_site,
            callee: ids[1],
            weight,
        };
        let profile = MipProfile {
            edges: vec![edge(0x8, 10), edge(0x20, 30)],
            functions,
            ..MipProfile::default()
        };
        let sites = Sites::of(&profile);
        assert_eq!(sites.of_edges, [500, 1500]);
        let caller = &profile.functions[ids[0]];
        // The call before the return address 0x20 is in the block that begins at 0x10. The entry has its own count.
        assert_eq!(
            weights(caller, caller, sites.of_caller(ids[0])),
            [(0, 4), (0x10, 1500), (0x20, 2), (0x30, 0)]
        );
        assert_eq!(weights(caller, caller, None)[1], (0x10, 4));
    }
}
