//! The functions in which the samples of a recording are, with their callers.
mod find;
mod symbols;

use profkit_data::ids::BuildId;
use profkit_object::binaries::Binaries;
use profkit_perf::Recording;
use profkit_perf::collect::{BinaryKey, CONTEXT_MEMORY, CallStacks, Selection, StackPlace};
use rustc_hash::FxHashMap;
use std::path::PathBuf;

/// How the functions of a recording are found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StackOptions {
    /// The samples that are counted.
    pub selection: Selection,
    /// The largest memory in bytes for the distinct stacks of an event; see [`CallStacks::of`].
    pub memory: u64,
    /// Whether frames have their source file and line, from debug info.
    pub lines: bool,
    /// Whether a binary that is not among the given ones is looked for at its path in the recording. It is used only if
    /// its build id is that of the recording.
    pub recorded_paths: bool,
}

impl Default for StackOptions {
    fn default() -> Self {
        StackOptions {
            selection: Selection::default(),
            memory: CONTEXT_MEMORY,
            lines: false,
            recorded_paths: true,
        }
    }
}

/// The samples of a recording by event, with the functions of their call stacks. A function is a symbol of a binary;
/// what was inlined into it counts as its own code.
///
/// Equal recordings and binaries give the same lists in the same order.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FunctionStacks {
    /// The binaries that have samples or callers of samples, those with the most samples first.
    pub binaries: Vec<StackBinary>,
    /// The functions. Equal functions of different binaries are different functions.
    pub functions: Vec<StackFunction>,
    /// The frames of the stacks.
    pub frames: Vec<StackFrame>,
    /// The events that have samples with addresses, in the order of the recording.
    pub events: Vec<EventStacks>,
    /// The number of samples that are in no event's stacks, because their event records no addresses.
    pub without_address: u64,
}

/// A binary of a recording, and the file that was read for its functions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackBinary {
    /// The path in the recording, or a name such as `[kernel.kallsyms]_text`.
    pub path: Vec<u8>,
    /// The build id; `None` if the recording does not state it.
    pub build_id: Option<BuildId>,
    /// Where the names of its functions come from.
    pub names: NamesFrom,
    /// The number of samples in the binary, of all events.
    pub samples: u64,
    /// The number of these samples at addresses that have no symbol.
    pub unnamed: u64,
}

/// Where the names of a binary's functions come from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamesFrom {
    /// The symbols of this file.
    File(PathBuf),
    /// The file has no symbols of functions.
    NoSymbols(PathBuf),
    /// The symbols of the running kernel, which has the build id of the recorded one.
    RunningKernel,
    /// A file has the name of the binary, but another build id.
    OtherBuild(PathBuf),
    /// The file cannot be read; the text is the reason.
    Unreadable(PathBuf, String),
    /// No file was found.
    Nothing,
}

/// A function in which samples are, or a place without a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StackFunction {
    /// The symbol. `None` stands for all places of the binary that no symbol covers.
    pub symbol: Option<Vec<u8>>,
    /// The index in [`FunctionStacks::binaries`]. `None` stands for places where no file was mapped.
    pub binary: Option<usize>,
}

/// A function at a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StackFrame {
    /// The index in [`FunctionStacks::functions`].
    pub function: usize,
    /// The path of the source file; empty if it is not known.
    pub file: Vec<u8>,
    /// The line in the source file, counted from 1; 0 if it is not known.
    pub line: u32,
}

/// The samples of an event by call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventStacks {
    /// The name of the event.
    pub event: String,
    /// The number of samples.
    pub samples: u64,
    /// The number of samples that have a call chain.
    pub with_chain: u64,
    /// The number of samples whose stacks lack their outer part, because all stacks did not fit into the memory.
    pub shortened: u64,
    /// The stacks. Each is a list of indices in [`FunctionStacks::frames`], innermost frame first, and a number of
    /// samples.
    pub stacks: Vec<(Box<[u32]>, u64)>,
}

/// The samples of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionSamples {
    /// The index in [`FunctionStacks::functions`].
    pub function: usize,
    /// The number of samples in the function itself.
    pub own: u64,
    /// The number of samples in the function and in what it called. A sample counts once, even if the function is in
    /// its stack several times.
    pub total: u64,
}

impl FunctionStacks {
    /// Counts the samples of a recording by the functions of their stacks. The binaries are those of `binaries`, found
    /// by build id, or by file name if the recording has no build id.
    pub fn of(recording: &Recording<'_>, binaries: &Binaries, options: &StackOptions) -> Self {
        let mut names: Vec<String> = Vec::new();
        for event in recording.events().iter() {
            if !names.contains(&event.name) {
                names.push(event.name.clone());
            }
        }
        let wanted = &options.selection.events;
        names.retain(|name| wanted.is_empty() || wanted.contains(name));
        let mut sum = FunctionStacks::default();
        let mut by_event = Vec::new();
        for name in names {
            let mut selection = options.selection.clone();
            selection.events = vec![name.clone()];
            let stacks = CallStacks::of(recording, &selection, options.memory);
            sum.without_address += stacks.without_address;
            if stacks.samples > 0 {
                by_event.push((name, stacks));
            }
        }
        let mut keys: Vec<&BinaryKey> = by_event
            .iter()
            .flat_map(|(_, stacks)| &stacks.binaries)
            .collect();
        keys.sort();
        keys.dedup();
        let mut named = Naming::new(&keys, binaries, options);
        named.find_places(&by_event);
        for (event, stacks) in &by_event {
            let of_event = named.event(event, stacks);
            sum.events.push(of_event);
        }
        named.finish(sum)
    }

    /// The event with the most samples; the first of several.
    pub fn main_event(&self) -> Option<&EventStacks> {
        self.events.iter().rev().max_by_key(|event| event.samples)
    }

    /// Returns the index of the function of a frame.
    pub fn function_of(&self, frame: u32) -> Option<usize> {
        self.frames.get(frame as usize).map(|frame| frame.function)
    }

    /// Returns the functions of an event: those with the most samples of their own first, then those with the most
    /// samples in total, then by their order in [`functions`](Self::functions).
    pub fn by_samples(&self, event: &EventStacks) -> Vec<FunctionSamples> {
        let mut sums: Vec<FunctionSamples> = (0..self.functions.len())
            .map(|function| FunctionSamples {
                function,
                own: 0,
                total: 0,
            })
            .collect();
        let mut seen: Vec<usize> = vec![usize::MAX; self.functions.len()];
        for (index, (stack, count)) in event.stacks.iter().enumerate() {
            for (depth, function) in stack
                .iter()
                .filter_map(|&id| self.function_of(id))
                .enumerate()
            {
                let (Some(sum), Some(last)) = (sums.get_mut(function), seen.get_mut(function))
                else {
                    continue;
                };
                if depth == 0 {
                    sum.own = sum.own.saturating_add(*count);
                }
                if std::mem::replace(last, index) != index {
                    sum.total = sum.total.saturating_add(*count);
                }
            }
        }
        sums.retain(|sum| sum.total > 0);
        sums.sort_by_key(|sum| (std::cmp::Reverse((sum.own, sum.total)), sum.function));
        sums
    }

    /// Returns the direct callers and the direct callees of a function, each with the number of samples in whose stack
    /// the one called the other, the most samples first.
    pub fn neighbours(&self, event: &EventStacks, function: usize) -> [Vec<(usize, u64)>; 2] {
        let mut sums: [FxHashMap<usize, u64>; 2] = Default::default();
        for (stack, count) in &event.stacks {
            let functions: Vec<usize> = stack
                .iter()
                .filter_map(|&id| self.function_of(id))
                .collect();
            let mut seen: [Vec<usize>; 2] = Default::default();
            for pair in functions.windows(2) {
                let [inner, outer] = pair else { continue };
                for (which, (one, other)) in
                    [(inner, outer), (outer, inner)].into_iter().enumerate()
                {
                    let (Some(sums), Some(seen)) = (sums.get_mut(which), seen.get_mut(which))
                    else {
                        continue;
                    };
                    if *one == function && !seen.contains(other) {
                        seen.push(*other);
                        let sum = sums.entry(*other).or_default();
                        *sum = sum.saturating_add(*count);
                    }
                }
            }
        }
        sums.map(|sums| {
            let mut list: Vec<(usize, u64)> = sums.into_iter().collect();
            list.sort_by_key(|&(function, count)| (std::cmp::Reverse(count), function));
            list
        })
    }
}

/// The tables that stacks are converted with.
struct Naming<'k> {
    keys: &'k [&'k BinaryKey],
    found: Vec<find::Found>,
    lines: bool,
    binaries: Vec<StackBinary>,
    /// For each binary, the frame of each place: the offset or address, and whether it is a return address.
    places: Vec<FxHashMap<(u64, bool), u32>>,
    functions: Vec<StackFunction>,
    function_numbers: FxHashMap<StackFunction, usize>,
    frames: Vec<StackFrame>,
    frame_numbers: FxHashMap<StackFrame, u32>,
}

impl<'k> Naming<'k> {
    fn new(keys: &'k [&'k BinaryKey], binaries: &Binaries, options: &StackOptions) -> Self {
        let found: Vec<find::Found> = keys
            .iter()
            .map(|key| find::find(key, binaries, options.recorded_paths))
            .collect();
        let list = keys.iter().zip(&found).map(|(key, found)| StackBinary {
            path: key.path.clone(),
            build_id: key.build_id.clone(),
            names: found.names.clone(),
            samples: 0,
            unnamed: 0,
        });
        Naming {
            binaries: list.collect(),
            places: vec![FxHashMap::default(); keys.len()],
            keys,
            found,
            lines: options.lines,
            functions: Vec::new(),
            function_numbers: FxHashMap::default(),
            frames: Vec::new(),
            frame_numbers: FxHashMap::default(),
        }
    }

    /// The number of the binary with this index in the binaries of `stacks`.
    fn binary(&self, stacks: &CallStacks, index: usize) -> Option<usize> {
        let key = stacks.binaries.get(index)?;
        self.keys.binary_search(&key).ok()
    }

    /// Makes the frames of all places in all stacks.
    fn find_places(&mut self, events: &[(String, CallStacks)]) {
        let mut wanted: Vec<Vec<(u64, bool)>> = vec![Vec::new(); self.keys.len()];
        for (_, stacks) in events {
            let numbers: Vec<Option<usize>> = (0..stacks.binaries.len())
                .map(|index| self.binary(stacks, index))
                .collect();
            for sample in &stacks.stacks.samples {
                for (depth, place) in sample.chain.iter().enumerate() {
                    let Some(&(binary, at)) = stacks.stacks.places().get(place.index()) else {
                        continue;
                    };
                    let number = numbers.get(binary).copied().flatten();
                    if let Some(list) = number.and_then(|number| wanted.get_mut(number)) {
                        list.push((at, depth > 0));
                    }
                }
            }
        }
        for (number, mut list) in wanted.into_iter().enumerate() {
            list.sort_unstable();
            list.dedup();
            let (Some(key), Some(found)) = (self.keys.get(number), self.found.get(number)) else {
                continue;
            };
            let named = found.named(key, &list, self.lines);
            for (place, named) in list.into_iter().zip(named) {
                let frame = self.frame(Some(number), named);
                if let Some(places) = self.places.get_mut(number) {
                    places.insert(place, frame);
                }
            }
        }
    }

    fn frame(&mut self, binary: Option<usize>, named: find::Named) -> u32 {
        let function = StackFunction {
            symbol: named.symbol,
            binary,
        };
        let next = self.functions.len();
        let functions = &mut self.functions;
        let function = *self
            .function_numbers
            .entry(function)
            .or_insert_with_key(|function| {
                functions.push(function.clone());
                next
            });
        let frame = StackFrame {
            function,
            file: named.file,
            line: named.line,
        };
        let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        let frames = &mut self.frames;
        *self.frame_numbers.entry(frame).or_insert_with_key(|frame| {
            frames.push(frame.clone());
            next
        })
    }

    fn event(&mut self, event: &str, stacks: &CallStacks) -> EventStacks {
        let nowhere = self.frame(None, find::Named::default());
        let numbers: Vec<Option<usize>> = (0..stacks.binaries.len())
            .map(|index| self.binary(stacks, index))
            .collect();
        let mut sums: FxHashMap<Box<[u32]>, u64> = FxHashMap::default();
        for sample in &stacks.stacks.samples {
            let frame = |(depth, place): (usize, &StackPlace)| {
                let (binary, at) = *stacks.stacks.places().get(place.index())?;
                let number = numbers.get(binary).copied().flatten()?;
                let frame = self.places.get(number)?.get(&(at, depth > 0))?;
                Some((number, *frame))
            };
            let frames: Vec<Option<(usize, u32)>> =
                sample.chain.iter().enumerate().map(frame).collect();
            if let Some(&Some((number, frame))) = frames.first()
                && let Some(binary) = self.binaries.get_mut(number)
            {
                binary.samples = binary.samples.saturating_add(sample.count);
                let function = self.frames.get(frame as usize);
                let function = function.and_then(|frame| self.functions.get(frame.function));
                if function.is_some_and(|function| function.symbol.is_none()) {
                    binary.unnamed = binary.unnamed.saturating_add(sample.count);
                }
            }
            let frames = frames.iter().map(|it| it.map_or(nowhere, |it| it.1));
            let sum = sums.entry(frames.collect()).or_default();
            *sum = sum.saturating_add(sample.count);
        }
        let mut list: Vec<(Box<[u32]>, u64)> = sums.into_iter().collect();
        list.sort_unstable();
        EventStacks {
            event: event.to_owned(),
            samples: stacks.samples,
            with_chain: stacks.with_chain,
            shortened: stacks.stacks.shortened,
            stacks: list,
        }
    }

    /// Sorts the binaries by their samples.
    fn finish(self, mut sum: FunctionStacks) -> FunctionStacks {
        let mut order: Vec<usize> = (0..self.binaries.len()).collect();
        order.sort_by_key(|&index| {
            let samples = self.binaries.get(index).map(|binary| binary.samples);
            (std::cmp::Reverse(samples), index)
        });
        let mut moved = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            if let Some(place) = moved.get_mut(old) {
                *place = new;
            }
        }
        let binaries = order.iter().filter_map(|&old| self.binaries.get(old));
        sum.binaries = binaries.cloned().collect();
        sum.functions = self.functions;
        for function in &mut sum.functions {
            function.binary = function.binary.and_then(|old| moved.get(old).copied());
        }
        sum.frames = self.frames;
        sum
    }
}
