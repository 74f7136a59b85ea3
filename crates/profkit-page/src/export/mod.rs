//! Profiles for the viewers of other tools: call stacks with their numbers, as files of pprof, speedscope and the
//! Firefox Profiler; and [`tables`] for databases and data frames.
//!
//! ```
//! use profkit_analysis::samples::SampleView;
//! use profkit_page::export::Stacks;
//!
//! let view = SampleView::open(b"main:90:1\n 1: 50\n 2: work:40\n  1: 40\n", None)?;
//! let stacks = Stacks::of_samples("app.prof", &view);
//! assert_eq!((stacks.len(), stacks.total(0)), (2, 90));
//! assert!(stacks.speedscope().to_string().contains("work"));
//! # Ok::<(), profkit_data::Error>(())
//! ```
mod firefox;
mod folded;
mod pprof;
mod speedscope;
pub mod tables;

use profkit_analysis::any::AnyProfile;
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::{HeapFrame, HeapProfile};
use profkit_analysis::instr::{InstrTable, numbers};
use profkit_analysis::mip_numbers::MipNumbers;
use profkit_analysis::names::{self, Spelling, printable};
use profkit_analysis::samples::{SampleView, self_samples};
use profkit_data::memprof::Field;
use profkit_data::mip::MipProfile;
use profkit_data::path_text;
use profkit_data::sample::{Location, NameId, ProfileKind, SampleName};
use profkit_object::symbolize::Declarations;
use profkit_profgen::stacks::{EventStacks, FunctionStacks};
use profkit_report::recording::recorded_name;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The meaning of one of the numbers that each stack has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackUnit {
    /// What the number counts, as pprof names it: `alloc_space`. Of a recording, the name of the event.
    pub what: Cow<'static, str>,
    /// The unit of the number: `bytes` or `count`.
    pub unit: &'static str,
}

/// A frame of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// The demangled name of the function, which people read.
    pub name: String,
    /// The symbol of the function; empty if the profile does not have it.
    pub symbol: String,
    /// The source file; empty if it is not known.
    pub file: String,
    /// The line in the source file; 0 if it is not known.
    pub line: u32,
    /// The index in [`Stacks::binaries`] of the binary of the function.
    pub binary: usize,
}

/// A binary that has functions of call stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackFile {
    /// The path; of a profile whose binary is not known, the name of the profile.
    pub path: String,
    /// The build id in hexadecimal digits; empty if it is not known.
    pub build_id: String,
}

/// Call stacks with numbers. In a profile without calling contexts, each stack begins with one function, and its inner
/// frames are the functions inlined into it.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    file: String,
    units: Vec<StackUnit>,
    /// The number that a viewer shows first, as an index of `units`.
    first: usize,
    binaries: Vec<StackFile>,
    frames: Vec<StackFrame>,
    by_frame: FxHashMap<StackFrame, u32>,
    /// The stacks. Each is a list of frame indexes, outermost frame first, and a number for each unit.
    stacks: Vec<(Vec<u32>, Vec<u64>)>,
}

const fn count(what: &'static str) -> StackUnit {
    StackUnit {
        what: Cow::Borrowed(what),
        unit: "count",
    }
}

impl Stacks {
    /// Makes the stacks of any profile with functions. Also returns the errors of the profile.
    pub fn of(file: &str, profile: &AnyProfile<'_>) -> (Self, Faults) {
        match profile {
            AnyProfile::Instr(table) => Stacks::of_instr(file, table),
            AnyProfile::Sample(view) => (Stacks::of_samples(file, view), view.faults()),
            AnyProfile::Mip(profile, _) => (Stacks::of_mip(file, profile), Faults::default()),
        }
    }

    fn new(file: &str, units: &[StackUnit]) -> Self {
        let file = printable(file.as_bytes()).into_owned();
        let binary = StackFile {
            path: file.clone(),
            ..StackFile::default()
        };
        Stacks {
            file,
            binaries: vec![binary],
            units: units.to_vec(),
            ..Stacks::default()
        }
    }

    /// Makes stacks from the functions of an instrumentation profile. The numbers are the sum of the function's counters
    /// and, if the first counter counts calls, how often the function was called. Records that cannot be read are left
    /// out; their errors are returned.
    pub fn of_instr(file: &str, table: &InstrTable<'_>) -> (Self, Faults) {
        let units = [count("counts"), count("executions")];
        let has_calls = table.facts.instrumentation.counts_calls();
        let mut stacks = Stacks::new(file, if has_calls { &units } else { &units[..1] });
        table.each(|record| {
            if !record.is_pseudo() {
                let numbers = numbers(record);
                let sum = u64::try_from(numbers.sum).unwrap_or(u64::MAX);
                let frame = match record.name.as_slice() {
                    [] => StackFrame::of_text(record.name_ref.to_string()),
                    name => StackFrame::of_symbol(name),
                };
                let both = [sum, numbers.entry];
                stacks.add([frame], both.get(..stacks.units.len()).unwrap_or(&both));
            }
        });
        let mut faults = table.damage.clone();
        let ids_error = table.ids_error.iter();
        ids_error.for_each(|error| faults.push(error.clone()));
        if let ([id], [binary]) = (
            table.profile.binary_ids.as_slice(),
            stacks.binaries.as_mut_slice(),
        ) {
            binary.build_id = id.to_string();
        }
        (stacks, faults)
    }

    /// Makes stacks from a sample profile. A stack is a calling context with its inlined functions.
    pub fn of_samples(file: &str, view: &SampleView<'_>) -> Self {
        let mut stacks = Stacks::new(file, &[count("samples")]);
        let frame = |id: NameId| match view.profile.names.get(id) {
            SampleName::Text(name) => StackFrame::of_symbol(name),
            SampleName::Guid(_) => {
                StackFrame::of_text(view.name(id, Spelling::Demangled).into_owned())
            }
        };
        for function in view.profile.functions() {
            let callers = function.callers.iter().map(|caller| caller.name);
            let base: Vec<_> = callers.chain([function.samples.name]).collect();
            let mut pending = vec![(base, &function.samples)];
            while let Some((stack, samples)) = pending.pop() {
                stacks.add(stack.iter().map(|&id| frame(id)), &[self_samples(samples)]);
                for inlined in samples.inlined.iter().rev() {
                    let mut inner = stack.clone();
                    inner.push(inlined.samples.name);
                    pending.push((inner, &inlined.samples));
                }
            }
        }
        stacks
    }

    /// Makes stacks from a sample profile as [`of_samples`](Self::of_samples) does, but each line with samples is a stack
    /// of its own, and each frame has its source file and line. Profiles of pseudo probes have no lines: their frames
    /// have the line at which the function is declared.
    pub fn of_samples_by_line(
        file: &str,
        view: &SampleView<'_>,
        declarations: &Declarations,
    ) -> Self {
        let mut stacks = Stacks::new(file, &[count("samples")]);
        let by_probes = view.profile.kind.contains(ProfileKind::PROBE_BASED);
        let frame = |id: NameId, at: Location| {
            let name = view.profile.names.get(id);
            let (frame, declared) = match name {
                SampleName::Text(name) => (StackFrame::of_symbol(name), declarations.find(name)),
                SampleName::Guid(guid) => {
                    let text = view.name(id, Spelling::Demangled).into_owned();
                    (StackFrame::of_text(text), declarations.find_hash(guid))
                }
            };
            let Some(declared) = declared else {
                return frame;
            };
            let offset = if by_probes { 0 } else { at.offset() };
            let line = u32::try_from(i64::from(declared.line) + offset);
            StackFrame {
                file: printable(declared.file).into_owned(),
                line: line.unwrap_or(0),
                ..frame
            }
        };
        for function in view.profile.functions() {
            let callers = function.callers.iter();
            let base: Vec<StackFrame> = callers
                .map(|caller| frame(caller.name, caller.location))
                .collect();
            let mut pending = vec![(base, &function.samples)];
            while let Some((callers, samples)) = pending.pop() {
                let with = |at: Location| {
                    let mut stack = callers.clone();
                    stack.push(frame(samples.name, at));
                    stack
                };
                for line in &samples.body {
                    stacks.add(with(line.location), &[line.samples]);
                }
                for inlined in samples.inlined.iter().rev() {
                    pending.push((with(inlined.location), &inlined.samples));
                }
            }
        }
        stacks.name_binary(declarations);
        stacks
    }

    /// Gives frames without a source file the file and line at which their function is declared, and the stacks the name
    /// of the binary, if the declarations are of one.
    pub fn locate(&mut self, declarations: &Declarations) {
        for frame in self.frames.iter_mut().filter(|frame| frame.file.is_empty()) {
            if let Some(declared) = declarations.find(frame.symbol.as_bytes()) {
                frame.file = printable(declared.file).into_owned();
                frame.line = declared.line;
            }
        }
        let frames = self.frames.iter().cloned();
        self.by_frame = frames.zip(0..).collect();
        self.name_binary(declarations);
    }

    fn name_binary(&mut self, declarations: &Declarations) {
        if let ([binary], [declaring]) = (
            self.binaries.as_mut_slice(),
            declarations.binaries.as_slice(),
        ) {
            binary.path = path_text(&declaring.path);
            if let Some(id) = &declaring.build_id {
                binary.build_id = id.to_string();
            }
        }
    }

    /// Makes stacks from the contexts of a heap profile. The numbers are allocations and bytes.
    pub fn of_heap(file: &str, heap: &HeapProfile) -> Self {
        let bytes = StackUnit {
            what: Cow::Borrowed("alloc_space"),
            unit: "bytes",
        };
        let mut stacks = Stacks::new(file, &[count("alloc_objects"), bytes]);
        stacks.first = 1;
        for context in heap.profile.allocations_by_stack() {
            let frames: Vec<_> = heap.frames(context.stack).collect();
            let frames = frames.iter().rev().map(StackFrame::of_heap);
            let field = |field| context.block.get(field);
            stacks.add(frames, &[field(Field::AllocCount), field(Field::TotalSize)]);
        }
        stacks
    }

    /// Makes stacks from the functions of a MIP profile. A stack has the number of runs in which the function was called,
    /// and before it the number of its calls if calls were counted.
    pub fn of_mip(file: &str, profile: &MipProfile) -> Self {
        let all = MipNumbers::of(profile);
        let units = [count("calls"), count("runs")];
        let mut stacks = Stacks::new(file, if all.has_calls { &units } else { &units[1..] });
        for function in profile.functions.iter().filter(|one| !one.is_part()) {
            let mut frame = StackFrame::of_symbol(&function.name);
            if let Some(place) = profile.tables.frames(function.location).next() {
                let path = place.path.unwrap_or_default();
                frame.file = printable(&path).into_owned();
                frame.line = place.line;
            }
            let numbers = [all.count(function), function.called_runs];
            stacks.add(
                [frame],
                numbers.get(2 - stacks.units.len()..).unwrap_or(&numbers),
            );
        }
        stacks
    }

    /// Makes stacks from the samples of a recording. Each event has a number; the one with the most samples comes first
    /// in viewers.
    pub fn of_recording(file: &str, samples: &FunctionStacks) -> Self {
        let units: Vec<StackUnit> = samples
            .events
            .iter()
            .map(|event| StackUnit {
                what: Cow::Owned(printable(event.event.as_bytes()).into_owned()),
                unit: "count",
            })
            .collect();
        let mut stacks = Stacks::new(file, &units);
        let main = samples.main_event();
        let is_main = |event: &EventStacks| main.is_some_and(|main| std::ptr::eq(main, event));
        stacks.first = samples.events.iter().position(is_main).unwrap_or(0);
        let binaries = samples.binaries.iter().map(|binary| StackFile {
            path: printable(&binary.path).into_owned(),
            build_id: binary
                .build_id
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
        });
        // Frames in no file belong to the first entry, which has the name of the recording.
        stacks.binaries.extend(binaries);
        let frames: Vec<StackFrame> = samples
            .frames
            .iter()
            .map(|frame| {
                let function = samples.functions.get(frame.function);
                let symbol = function.and_then(|function| function.symbol.as_deref());
                let binary = function.and_then(|function| function.binary);
                let named = StackFrame {
                    name: recorded_name(samples, frame.function, Spelling::Demangled),
                    symbol: printable(symbol.unwrap_or_default()).into_owned(),
                    file: printable(&frame.file).into_owned(),
                    line: frame.line,
                    binary: binary.map_or(0, |index| index + 1),
                };
                match symbol {
                    Some(_) => named,
                    None => StackFrame {
                        symbol: named.name.clone(),
                        ..named
                    },
                }
            })
            .collect();
        for (at, event) in samples.events.iter().enumerate() {
            let mut numbers = vec![0; units.len()];
            for (stack, count) in &event.stacks {
                if let Some(number) = numbers.get_mut(at) {
                    *number = *count;
                }
                let stack = stack.iter().rev();
                let stack = stack.filter_map(|&id| frames.get(id as usize).cloned());
                stacks.add(stack, &numbers);
            }
        }
        stacks
    }

    /// The binaries of the functions. A profile whose binary is not known has one entry with the name of the profile.
    pub fn binaries(&self) -> &[StackFile] {
        &self.binaries
    }

    /// The number of stacks. Stacks whose numbers are all 0 are left out.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether there is no stack.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The meanings of the numbers that each stack has.
    pub fn units(&self) -> &[StackUnit] {
        &self.units
    }

    /// The sum of one number over all stacks. `unit` is the index of the number in [`units`](Self::units).
    pub fn total(&self, unit: usize) -> u128 {
        let numbers = self.stacks.iter();
        let numbers = numbers.filter_map(|(_, numbers)| numbers.get(unit));
        numbers.map(|&number| u128::from(number)).sum()
    }

    fn add(&mut self, stack: impl IntoIterator<Item = StackFrame>, numbers: &[u64]) {
        if numbers.iter().all(|&number| number == 0) {
            return;
        }
        let stack = stack.into_iter().map(|frame| {
            let next = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
            *self.by_frame.entry(frame).or_insert_with_key(|frame| {
                self.frames.push(frame.clone());
                next
            })
        });
        let stack = stack.collect();
        self.stacks.push((stack, numbers.to_vec()));
    }
}

impl StackFrame {
    /// Converts a frame of a heap profile. The result has a source line if the heap profile has one for this frame.
    fn of_heap(frame: &HeapFrame<'_>) -> Self {
        let function = match frame.name {
            Some(name) => StackFrame::of_symbol(name),
            None => StackFrame::of_text(format!("{:#018x}", frame.frame.function)),
        };
        match frame.location {
            Some(place) => StackFrame {
                file: printable(&place.file).into_owned(),
                line: place.line,
                ..function
            },
            None => function,
        }
    }

    fn of_symbol(symbol: &[u8]) -> Self {
        StackFrame {
            name: names::spelled(symbol, Spelling::Demangled).into_owned(),
            symbol: printable(symbol).into_owned(),
            ..StackFrame::default()
        }
    }

    fn of_text(name: String) -> Self {
        StackFrame {
            symbol: name.clone(),
            name,
            ..StackFrame::default()
        }
    }
}
