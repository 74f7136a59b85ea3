//! A heap profile as it was found in a file: opened from any form, and how its contexts are named and printed.
use super::inputs::Loaded;
use super::{is_memprof_input, load};
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use clap::Args;
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::{IndexedBinaries, SourceLocation};
use profkit_analysis::names;
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::memprof::indexed::IndexedMemProf;
use profkit_data::memprof::{
    Allocations, Field, Hotness, MemInfoBlock, MemProfile, StackId, Thresholds,
};
use profkit_data::{Error, ErrorKind};
use profkit_merge::RunOptions;
use profkit_merge::files::{Input, SingleInput};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// Where cold ends and hot begins.
#[derive(Debug, Args)]
#[command(next_help_heading = "Heap profiles")]
pub struct ThresholdArgs {
    /// Cold contexts have fewer accesses for each byte and second lived
    #[arg(long, value_name = "DENSITY", default_value_t = Thresholds::default().cold_density)]
    cold_density: f32,

    /// Cold contexts live at least so many seconds on average
    #[arg(long, value_name = "SECONDS", default_value_t = Thresholds::default().cold_lifetime)]
    cold_lifetime: u32,

    /// Hot contexts have more accesses for each byte and second lived
    #[arg(long, value_name = "DENSITY", default_value_t = Thresholds::default().hot_density)]
    hot_density: f32,
}

impl ThresholdArgs {
    /// The thresholds.
    pub fn thresholds(&self) -> Thresholds {
        Thresholds {
            cold_density: self.cold_density,
            cold_lifetime: self.cold_lifetime,
            hot_density: self.hot_density,
        }
    }
}

/// What a kind of contexts is called.
pub fn hotness_name(hotness: Hotness) -> &'static str {
    match hotness {
        Hotness::Cold => "cold",
        Hotness::Warm => "warm",
        Hotness::Hot => "hot",
    }
}

/// The average of a field over the allocations of a context.
pub fn average(block: &MemInfoBlock, field: Field) -> f64 {
    to_f64(block.get(field)) / to_f64(block.get(Field::AllocCount).max(1))
}

/// Accesses for each byte and second lived, on average. Stored times 100.
pub fn density(block: &MemInfoBlock) -> f64 {
    average(block, Field::TotalLifetimeAccessDensity) / 100.0
}

#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
pub fn to_f64(number: u64) -> f64 {
    number as f64
}

/// A share in percent; 0 of nothing.
pub fn percent(part: u64, whole: u64) -> f64 {
    100.0 * to_f64(part) / to_f64(whole.max(1))
}

/// A heap profile, and what there is to tell of its file.
pub struct Heap {
    pub profile: MemProfile,
    /// Where its frames are, in their order; empty if the file does not say.
    locations: Vec<SourceLocation>,
    /// "raw", "indexed" or "YAML".
    pub form: &'static str,
    pub version: Option<u32>,
    pub notes: Vec<String>,
    damage: Faults,
}

impl Heap {
    /// Opens a heap profile of any form.
    ///
    /// # Errors
    /// If the file is none, nothing of it can be read, or raw dumps come without their binaries.
    pub fn open(binaries: &BinaryArgs, input: &Input) -> Result<Self, Failure> {
        if detect(input.bytes()) == FileKind::InstrIndexed {
            return Self::open_indexed(input);
        }
        let mut notes = Vec::new();
        let found = binaries.index(&mut notes, false)?;
        let source =
            IndexedBinaries::new(&found.index, &found.debug_folders, found.servers.as_deref());
        let loaded: Loaded =
            load(&SingleInput(input), &RunOptions::new(), &source).map_err(Failure::input)?;
        let raw = loaded.dumps() > 0;
        notes.extend(loaded.notes());
        if loaded.kept() == 0 || loaded.profile.is_empty() {
            let first = loaded.errors().next();
            let failure = match first {
                Some(error) => Failure::file(input.name(), error),
                None if raw && !binaries.is_used() => Failure::usage(
                    "raw heap profiles hold addresses: name the programs and libraries that ran with --binaries",
                ),
                None => Failure::input(format_args!("{}: there are no contexts", input.name())),
            };
            return Err(notes.iter().fold(failure, Failure::with_hint));
        }
        let mut damage = Faults::default();
        for error in loaded.errors() {
            damage.push(error.clone());
        }
        Ok(Heap {
            form: if raw { "raw" } else { "YAML" },
            version: raw.then_some(loaded.details().newest_raw_version),
            profile: loaded.profile,
            locations: loaded.locations,
            notes,
            damage,
        })
    }

    fn open_indexed(input: &Input) -> Result<Self, Failure> {
        let failed = |error: Error| Failure::file(input.name(), &error);
        let data = input.bytes();
        let profile = IndexedProfile::parse(data).map_err(failed)?;
        let Some(section) = profile.memprof() else {
            return Err(failed(Error::new(
                ErrorKind::Unsupported,
                "the profile has no MemProf section",
            ))
            .with_hint("it holds counters only: `profkit show` without --memory shows them"));
        };
        let end = usize::try_from(section.offset)
            .unwrap_or(usize::MAX)
            .saturating_add(section.bytes.len());
        let section = IndexedMemProf::parse(data.get(..end).unwrap_or(data), section.offset)
            .map_err(failed)?;
        let mut damage = Faults::default();
        let profile = section.to_profile_salvaging(|error| damage.push(error));
        Ok(Heap {
            profile,
            locations: Vec::new(),
            form: "indexed",
            version: Some(section.version()),
            notes: Vec::new(),
            damage,
        })
    }

    /// What the file is: "heap profile, indexed version 4".
    pub fn describe(&self) -> String {
        let version = self.version.map(|version| format!(" version {version}"));
        format!("heap profile, {}{}", self.form, version.unwrap_or_default())
    }

    /// The name of a function as the profile knows it. An empty one is as good as none.
    pub fn known_name(&self, function: u64) -> Option<&[u8]> {
        let name = self.profile.names.get(&function)?;
        (!name.is_empty()).then_some(name)
    }

    /// The name of a function for people, or its GUID.
    pub fn name(&self, function: u64, mangled: bool) -> Cow<'_, str> {
        match self.known_name(function) {
            Some(name) => names::display(name, mangled),
            None => Cow::Owned(format!("{function:#018x}")),
        }
    }

    /// Prints a call stack, a line a frame, the allocation first.
    pub fn print_stack(
        &self,
        stack: StackId,
        mangled: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        for &number in self.profile.stack_numbers(stack) {
            let Some(frame) = self.profile.frames().get(number as usize) else {
                continue;
            };
            let inlined = if frame.is_inline { " (inlined)" } else { "" };
            write!(
                out,
                "        {}{inlined}",
                self.name(frame.function, mangled)
            )?;
            match self.locations.get(number as usize) {
                Some(place) if !place.file.is_empty() => {
                    let file = names::printable(&place.file);
                    writeln!(out, " {file}:{}:{}", place.line, place.column)?;
                }
                _ => writeln!(
                    out,
                    " +{}:{}",
                    frame.line_offset.cast_signed(),
                    frame.column
                )?,
            }
        }
        Ok(())
    }

    /// A call stack for programs, the allocation first.
    pub fn json_stack(&self, stack: StackId) -> Vec<JsonFrame> {
        let numbers = self.profile.stack_numbers(stack).iter();
        let frames = numbers.filter_map(|&number| {
            let frame = self.profile.frames().get(number as usize)?;
            let place = self.locations.get(number as usize);
            let place = place.filter(|place| !place.file.is_empty());
            let name = self.known_name(frame.function);
            Some(JsonFrame {
                guid: format!("{:#018x}", frame.function),
                name: name.map(|name| names::printable(name).into_owned()),
                demangled: name.and_then(names::demangle),
                line_offset: frame.line_offset,
                column: frame.column,
                inlined: frame.is_inline,
                file: place.map(|place| names::printable(&place.file).into_owned()),
                line: place.map(|place| place.line),
                discriminator: place.map(|place| place.discriminator),
            })
        });
        frames.collect()
    }

    /// Where the frames are, if the file says so.
    pub fn locations(&self) -> &[SourceLocation] {
        &self.locations
    }

    /// What was wrong with the file.
    pub fn damage(&self) -> &Faults {
        &self.damage
    }

    /// The end of a command that has shown what is sound: the errors of files, each with its name.
    ///
    /// # Errors
    /// If there are any.
    pub fn finish(files: &[(&Input, &Heap)]) -> exit::Result {
        let mut failure: Option<Failure> = None;
        for (input, heap) in files {
            let told = heap.damage.first.iter().map(ToString::to_string);
            let untold = heap.damage.more();
            let more = (untold > 0).then(|| format!("and {untold} more errors"));
            for error in told.chain(more) {
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

/// A frame for programs; docs/formats/show-json.md.
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

/// How many contexts there are of a kind, and what they allocate.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Share {
    pub contexts: u64,
    pub allocations: u64,
    pub bytes: u64,
}

impl Share {
    /// The share of some contexts.
    pub fn of<'a>(contexts: impl IntoIterator<Item = &'a Allocations>) -> Self {
        let mut share = Share::default();
        for context in contexts {
            let field = |field| context.block.get(field);
            share.contexts += 1;
            share.allocations = share.allocations.saturating_add(field(Field::AllocCount));
            share.bytes = share.bytes.saturating_add(field(Field::TotalSize));
        }
        share
    }
}

/// Whether a file can be a heap profile: one of its own, or an indexed profile.
pub fn may_be_heap(bytes: &[u8]) -> bool {
    is_memprof_input(bytes) || detect(bytes) == FileKind::InstrIndexed
}
