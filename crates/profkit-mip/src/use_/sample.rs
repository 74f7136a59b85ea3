//! A sample profile, as LLVM reads it for `-fprofile-sample-use`, made of a MIP profile and debug info.
//!
//! Every address of a function has the weight of its block, and a line of the source has the largest weight of its
//! addresses, as in profiles made of samples. The weight of the entry is the number of calls where it was counted, else
//! the number of runs that called the function; a block that ran in some of these runs has its share of that, and one
//! that never ran has 0.
//!
//! Text form: a function is `NAME:TOTAL:HEAD`, its lines ` OFFSET[.DISCRIMINATOR]: COUNT [CALLEE:COUNT…]`, and functions
//! inlined into it ` OFFSET: NAME:TOTAL` with their lines one column further in (LLVM `SampleProfReader.h`).
use crate::instrument::part_of;
use profkit_data::mip::{EntryKind, Function, MipProfile, Modes};
use profkit_object::symbolize::{Frame, Locations, Symbolizer};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Write as _;

/// Addresses that are symbolised at once. More costs memory, some sixteen bytes each.
const ADDRESSES_AT_ONCE: usize = 1 << 24;

/// Line offsets have 16 bits in LLVM's profiles (`FunctionSamples::getOffset`).
const OFFSET_MASK: u32 = 0xffff;

/// What GCC and LLVM append to a function's name when they copy or split it after the source's profile is applied.
const SUFFIXES: [&[u8]; 6] = [
    b".llvm.",
    b".cold",
    b".part.",
    b".isra.",
    b".constprop.",
    b".__part.",
];

/// A place in a function: lines from its first, and the discriminator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineLocation {
    /// Lines from the function's declaration.
    pub offset: u32,
    /// Tells blocks of one line apart.
    pub discriminator: u32,
}

/// What was counted at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineRecord {
    /// How often it ran.
    pub count: u64,
    /// What was called there, with the number of samples.
    pub targets: BTreeMap<Vec<u8>, u64>,
}

/// A function, or one that was inlined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionSamples {
    /// Calls. 0 for inlined functions.
    pub head: u64,
    /// Its own lines.
    pub lines: BTreeMap<LineLocation, LineRecord>,
    /// Functions inlined into it, by place and name.
    pub inlined: BTreeMap<(LineLocation, Vec<u8>), FunctionSamples>,
}

impl FunctionSamples {
    /// All counts together, those of inlined functions too.
    pub fn total(&self) -> u64 {
        let own = self
            .lines
            .values()
            .fold(0_u64, |sum, line| sum.saturating_add(line.count));
        self.inlined
            .values()
            .fold(own, |sum, inlined| sum.saturating_add(inlined.total()))
    }
}

/// A sample profile, and what is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleProfile {
    /// By name.
    pub functions: BTreeMap<Vec<u8>, FunctionSamples>,
    /// Called functions without any line in the debug info.
    pub without_lines: usize,
    /// Called functions whose lines are known, but not the line they begin at, so that offsets cannot be told.
    pub without_start: usize,
    /// Call edges whose place in the source is not known.
    pub edges_without_lines: usize,
}

/// Makes a sample profile. The symbolizer is of the binary that the profile is of, and should take names from the debug
/// info ([`Options::symbol_names`](profkit_object::symbolize::Options::symbol_names) off).
pub fn sample_profile(
    profile: &MipProfile,
    symbolizer: &Symbolizer<'_>,
    section: Option<u64>,
) -> SampleProfile {
    let mut made = SampleProfile::default();
    let address_of = |function: &Function| profile.address_of(function, section);
    // A part has the signature of its function, which tells it from others of that name.
    let mut whole: FxHashMap<(&[u8], u32), &Function> = FxHashMap::default();
    for function in profile.functions.iter().filter(|one| one.is_covered()) {
        whole.insert((&function.name, function.signature), function);
    }
    let called = profile.functions.iter().filter_map(|function| {
        let whole = if function.is_part() {
            whole.get(&(part_of(&function.name)?, function.signature))?
        } else {
            Some(function).filter(|one| one.is_covered())?
        };
        Some((function, whole, address_of(function)?))
    });
    let called: Vec<(&Function, &Function, u64)> = called.collect();
    let mut rest = &*called;
    while !rest.is_empty() {
        let mut addresses = Vec::new();
        let mut taken = 0;
        for (function, _, start) in rest {
            let size = function.size as usize;
            if taken > 0 && addresses.len() + size > ADDRESSES_AT_ONCE {
                break;
            }
            addresses
                .extend((0..u64::from(function.size)).map(|offset| start.wrapping_add(offset)));
            taken += 1;
        }
        let locations = symbolizer.symbolize(&addresses);
        let (now, later) = rest.split_at(taken);
        let mut first = 0;
        for (function, whole, _) in now {
            made.add_function(function, whole, &locations, first);
            first += function.size as usize;
        }
        rest = later;
    }
    made.add_edges(profile, symbolizer, section);
    made
}

/// The weight of a function's entry.
fn entry_weight(function: &Function) -> u64 {
    match function.modes.entry() {
        Some(EntryKind::Calls | EntryKind::Unary) => function.calls.max(1),
        _ => function.called_runs,
    }
}

/// The weight of the code from each offset on, until the next. `whole` is the function, or that which it is a part of.
fn weights(function: &Function, whole: &Function) -> Vec<(u32, u64)> {
    let entry = entry_weight(whole);
    let mut weights = vec![(0, if function.is_part() { 0 } else { entry })];
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
        weights.sort_unstable_by_key(|(offset, _)| *offset);
    }
    weights
}

impl SampleProfile {
    /// Adds the lines of a function or part, whose addresses begin at index `first`.
    fn add_function(
        &mut self,
        function: &Function,
        whole: &Function,
        locations: &Locations,
        first: usize,
    ) {
        let weights = weights(function, whole);
        let (mut lines, mut starts) = (0_usize, 0_usize);
        let name = base_name(&function.name);
        // Many addresses share a frame.
        let mut done: FxHashMap<_, u64> = FxHashMap::default();
        for offset in 0..function.size {
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
            if let Some(record) = self.record(name, &stack) {
                starts += 1;
                record.count = record.count.max(weight);
            }
        }
        if function.is_part() {
            // Its function has the head, and is counted if it has no lines.
        } else if starts > 0 {
            let samples = self.functions.entry(name.to_vec()).or_default();
            samples.head = samples.head.saturating_add(entry_weight(function));
        } else if lines > 0 {
            self.without_start += 1;
        } else {
            self.without_lines += 1;
        }
    }

    /// The record of a stack in the function of this name. `None` if a frame has no line, or no function's line.
    fn record(&mut self, name: &[u8], stack: &[Frame<'_>]) -> Option<&mut LineRecord> {
        if stack.is_empty()
            || stack
                .iter()
                .any(|frame| frame.line == 0 || frame.function_line == 0)
        {
            return None;
        }
        let (leaf, callers) = stack.split_first()?;
        let mut samples = self.functions.entry(name.to_vec()).or_default();
        let callees = stack.iter().rev().skip(1);
        for (caller, callee) in callers.iter().rev().zip(callees) {
            let key = (
                location(caller),
                callee.function.unwrap_or_default().to_vec(),
            );
            samples = samples.inlined.entry(key).or_default();
        }
        Some(samples.lines.entry(location(leaf)).or_default())
    }

    fn add_edges(
        &mut self,
        profile: &MipProfile,
        symbolizer: &Symbolizer<'_>,
        section: Option<u64>,
    ) {
        let known = profile.edges.iter().filter_map(|edge| {
            let caller = profile.functions.get(edge.caller? as usize)?;
            let callee = profile.functions.get(edge.callee as usize)?;
            // The call ends at the return address; its last byte belongs to it.
            let address = profile
                .address_of(caller, section)?
                .wrapping_add(edge.call_site.into())
                .wrapping_sub(1);
            Some((address, caller, callee, edge.weight))
        });
        let known: Vec<_> = known.collect();
        let addresses: Vec<u64> = known.iter().map(|(address, ..)| *address).collect();
        let locations = symbolizer.symbolize(&addresses);
        self.edges_without_lines += profile.edges.len() - known.len();
        for (index, (_, caller, callee, weight)) in known.into_iter().enumerate() {
            let stack: Vec<Frame<'_>> = locations.stack(index).collect();
            let Some(record) = self.record(base_name(&caller.name), &stack) else {
                self.edges_without_lines += 1;
                continue;
            };
            let target = record
                .targets
                .entry(base_name(&callee.name).to_vec())
                .or_default();
            *target = target.saturating_add(weight);
        }
    }

    /// The profile as text.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Hot functions first, as LLVM writes them; writing to memory cannot fail.
        let mut functions: Vec<_> = self
            .functions
            .iter()
            .map(|(name, samples)| (samples.total(), name, samples))
            .collect();
        functions.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        for (total, name, samples) in functions {
            out.extend_from_slice(name);
            let _ = writeln!(out, ":{total}:{}", samples.head);
            write_body(&mut out, samples, 1);
        }
        out
    }
}

fn write_body(out: &mut Vec<u8>, samples: &FunctionSamples, depth: usize) {
    let place = |out: &mut Vec<u8>, location: &LineLocation| {
        out.resize(out.len() + depth, b' ');
        let _ = write!(out, "{}", location.offset);
        if location.discriminator != 0 {
            let _ = write!(out, ".{}", location.discriminator);
        }
        out.extend_from_slice(b": ");
    };
    for (location, record) in &samples.lines {
        place(out, location);
        let _ = write!(out, "{}", record.count);
        let mut targets: Vec<_> = record.targets.iter().collect();
        targets.sort_by(|one, other| other.1.cmp(one.1).then_with(|| one.0.cmp(other.0)));
        for (name, count) in targets {
            out.push(b' ');
            out.extend_from_slice(name);
            let _ = write!(out, ":{count}");
        }
        out.push(b'\n');
    }
    for ((location, name), inlined) in &samples.inlined {
        place(out, location);
        out.extend_from_slice(name);
        let _ = writeln!(out, ":{}", inlined.total());
        write_body(out, inlined, depth + 1);
    }
}

fn location(frame: &Frame<'_>) -> LineLocation {
    LineLocation {
        offset: frame.line.wrapping_sub(frame.function_line) & OFFSET_MASK,
        discriminator: base_discriminator(frame.discriminator),
    }
}

/// The base part of a discriminator, which also holds how often code was copied (LLVM `DebugInfoMetadata.h`): a 1 bit
/// stands for 0; a 0 bit is followed by five bits, and if the next one is set by seven more.
pub fn base_discriminator(discriminator: u32) -> u32 {
    if discriminator & 1 != 0 {
        return 0;
    }
    let rest = discriminator >> 1;
    if rest & 0x20 == 0 {
        rest & 0x1f
    } else {
        ((rest >> 1) & 0xfe0) | (rest & 0x1f)
    }
}

/// The name that the compiler knows the function by while it applies the profile.
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
