//! Heap profiles of any form: opens them, and prints their contexts.
use super::{inputs, is_memprof_input};
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use clap::Args;
use profkit_analysis::heap::{ContextSum, HeapFrame, HeapProfile, IndexedBinaries, load_heap};
use profkit_analysis::names;
use profkit_data::ErrorKind;
use profkit_data::detect::{FileKind, detect};
use profkit_data::memprof::{Hotness, StackId, Thresholds};
use profkit_merge::RunOptions;
use profkit_merge::files::{Input, SingleInput};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// The limits that decide which contexts are cold or hot.
#[derive(Debug, Args)]
#[command(next_help_heading = "Heap profiles")]
pub struct ThresholdArgs {
    /// Cold contexts have fewer accesses than this per byte and second of their lifetime
    #[arg(long, value_name = "DENSITY", default_value_t = Thresholds::default().cold_density)]
    cold_density: f32,

    /// Cold contexts have at least this average lifetime, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = Thresholds::default().cold_lifetime)]
    cold_lifetime: u32,

    /// Hot contexts have more accesses than this per byte and second of their lifetime
    #[arg(long, value_name = "DENSITY", default_value_t = Thresholds::default().hot_density)]
    hot_density: f32,
}

impl ThresholdArgs {
    /// Returns the limits as the type that profkit-data uses.
    pub fn thresholds(&self) -> Thresholds {
        Thresholds {
            cold_density: self.cold_density,
            cold_lifetime: self.cold_lifetime,
            hot_density: self.hot_density,
        }
    }
}

/// The word for contexts of this hotness.
pub fn hotness_name(hotness: Hotness) -> &'static str {
    match hotness {
        Hotness::Cold => "cold",
        Hotness::Warm => "warm",
        Hotness::Hot => "hot",
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rounded number for display")]
pub fn to_f64(number: u64) -> f64 {
    number as f64
}

/// Returns a part of a whole in percent; 0 if the whole is 0.
pub fn percent(part: u64, whole: u64) -> f64 {
    100.0 * to_f64(part) / to_f64(whole.max(1))
}

/// A heap profile, with notes about what was read and what was left out.
pub struct Heap {
    pub heap: HeapProfile,
    pub notes: Vec<String>,
}

impl Heap {
    /// Opens a heap profile of any form.
    ///
    /// # Errors
    /// If the file is not a heap profile, if nothing of it can be read, or if it is raw and its binaries are not given.
    pub fn open(binaries: &BinaryArgs, input: &Input) -> Result<Self, Failure> {
        if detect(input.bytes()) == FileKind::InstrIndexed {
            return Self::open_indexed(input);
        }
        let mut notes = Vec::new();
        let found = binaries.index(&mut notes, false)?;
        let source = IndexedBinaries::of(&found);
        let loaded = load_heap(&SingleInput(input), &RunOptions::new(), &source);
        let loaded = loaded.map_err(Failure::input)?;
        notes.extend(inputs::notes(&loaded));
        if loaded.kept() == 0 || loaded.profile.is_empty() {
            let first = loaded.errors().next();
            let failure = match first {
                Some(error) => Failure::file(input.name(), error),
                None if loaded.dumps() > 0 && !binaries.is_used() => Failure::usage(
                    "raw heap profiles hold addresses only: use --binaries to name the programs and libraries that ran",
                ),
                None => Failure::input(format_args!(
                    "{}: the heap profile has no contexts",
                    input.name()
                )),
            };
            return Err(notes.iter().fold(failure, Failure::with_hint));
        }
        let heap = HeapProfile::from_loaded(loaded);
        Ok(Heap { heap, notes })
    }

    fn open_indexed(input: &Input) -> Result<Self, Failure> {
        match HeapProfile::from_indexed(input.bytes()) {
            Ok(heap) => Ok(Heap {
                heap,
                notes: Vec::new(),
            }),
            Err(error) => {
                let failure = Failure::file(input.name(), &error);
                Err(if error.kind() == ErrorKind::Unsupported {
                    failure.with_hint(
                        "the file holds counters only: `profkit show` without --memory shows them",
                    )
                } else {
                    failure
                })
            }
        }
    }

    /// Describes the file, for example "heap profile, indexed version 4".
    pub fn describe(&self) -> String {
        let version = self
            .heap
            .version
            .map(|version| format!(" version {version}"));
        format!(
            "heap profile, {}{}",
            self.heap.form,
            version.unwrap_or_default()
        )
    }

    /// The name of a function for people, or its GUID.
    pub fn name(&self, function: u64, mangled: bool) -> Cow<'_, str> {
        match self.heap.name(function) {
            Some(name) => names::display(name, mangled),
            None => Cow::Owned(format!("{function:#018x}")),
        }
    }

    /// Prints a call stack, one line per frame. The frame that allocates comes first.
    pub fn print_stack(
        &self,
        stack: StackId,
        mangled: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        for HeapFrame {
            frame, location, ..
        } in self.heap.frames(stack)
        {
            let inlined = if frame.is_inline { " (inlined)" } else { "" };
            let name = self.name(frame.function, mangled);
            write!(out, "        {name}{inlined}")?;
            match location {
                Some(place) => {
                    let file = names::printable(&place.file);
                    writeln!(out, " {file}:{}:{}", place.line, place.column)?;
                }
                None => {
                    let line = frame.line_offset.cast_signed();
                    writeln!(out, " +{line}:{}", frame.column)?;
                }
            }
        }
        Ok(())
    }

    /// The frames of a call stack for JSON. The frame that allocates comes first.
    pub fn json_stack(&self, stack: StackId) -> Vec<JsonFrame> {
        let frames = self.heap.frames(stack).map(|known| JsonFrame {
            guid: format!("{:#018x}", known.frame.function),
            name: known.name.map(|name| names::printable(name).into_owned()),
            demangled: known.name.and_then(names::demangle),
            line_offset: known.frame.line_offset,
            column: known.frame.column,
            inlined: known.frame.is_inline,
            file: known
                .location
                .map(|place| names::printable(&place.file).into_owned()),
            line: known.location.map(|place| place.line),
            discriminator: known.location.map(|place| place.discriminator),
        });
        frames.collect()
    }

    /// Ends a command that has printed the sound parts of its files: reports the errors of each file, with the file's
    /// name.
    ///
    /// # Errors
    /// If a file has errors.
    pub fn finish(files: &[(&Input, &Heap)]) -> exit::Result {
        let mut failure: Option<Failure> = None;
        for (input, shown) in files {
            let damage = &shown.heap.damage;
            let first = damage.first.iter().map(ToString::to_string);
            let more = damage.more();
            let more = (more > 0).then(|| format!("and {more} more errors"));
            for error in first.chain(more) {
                let line = format!("{}: {error}", input.name());
                failure = Some(match failure {
                    Some(failure) => failure.and(line),
                    None => Failure::input(line),
                });
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(Status::Done),
        }
    }
}

/// A frame in JSON, as docs/formats/show-json.md describes it.
#[derive(Serialize)]
pub struct JsonFrame {
    guid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demangled: Option<String>,
    line_offset: u32,
    column: u32,
    inlined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discriminator: Option<u32>,
}

/// A sum of contexts in JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct JsonSum {
    contexts: u64,
    allocations: u64,
    bytes: u64,
}

impl From<ContextSum> for JsonSum {
    fn from(sum: ContextSum) -> Self {
        JsonSum {
            contexts: sum.contexts,
            allocations: sum.allocations,
            bytes: sum.bytes,
        }
    }
}

/// Whether a file can hold a heap profile: it is a raw or YAML heap profile, or an indexed profile.
pub fn may_be_heap(bytes: &[u8]) -> bool {
    is_memprof_input(bytes) || detect(bytes) == FileKind::InstrIndexed
}
