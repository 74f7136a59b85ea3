//! Heap profiles of any form: opens them, and reports their errors.
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure};
use crate::io::add_binaries;
use clap::Args;
use profkit_analysis::heap::{
    FrameRule, HeapProfile, IndexedBinaries, LoadedHeap, ProgramFrames, load_heap,
};
use profkit_analysis::matching::BinaryFunctions;
use profkit_analysis::names::Spelling;
use profkit_data::ErrorKind;
use profkit_data::detect::{FileKind, detect};
use profkit_data::memprof::Thresholds;
use profkit_merge::files::{Input, SingleInput};
use profkit_merge::{MergeError, RunOptions};
use profkit_object::debug_files::DebugFolders;
use profkit_report::heap::{HeapView, completed_notes};
use std::path::PathBuf;

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
    pub fn thresholds(&self) -> Thresholds {
        Thresholds {
            cold_density: self.cold_density,
            cold_lifetime: self.cold_lifetime,
            hot_density: self.hot_density,
        }
    }
}

/// A heap profile, with notes about what was read and what was left out.
pub struct Heap {
    pub heap: HeapProfile,
    pub notes: Vec<String>,
}

impl Heap {
    /// Opens a heap profile. `rule` says which contexts of a raw dump are read.
    pub fn open(binaries: &BinaryArgs, input: &Input, rule: FrameRule) -> Result<Self, Failure> {
        if detect(input.bytes()) == FileKind::InstrIndexed {
            let mut heap = Self::open_indexed(input)?;
            heap.add_names(binaries)?;
            return Ok(heap);
        }
        let mut notes = Vec::new();
        let found = binaries.index(&mut notes, false)?;
        let source = IndexedBinaries::of(&found);
        let loaded = load_heap(&SingleInput(input), &RunOptions::new(), &source, rule);
        let loaded = match loaded {
            Err(MergeError::NothingLeft(report)) => LoadedHeap {
                report: *report,
                ..LoadedHeap::default()
            },
            other => other.map_err(Failure::input)?,
        };
        notes.extend(profkit_report::heap::notes(&loaded));
        if loaded.kept() == 0 || loaded.profile.is_empty() {
            let first = loaded.errors().next();
            let failure = match first {
                Some(error) => Failure::file(input.name(), error),
                None if loaded.dumps() > 0 && !binaries.is_used() => Failure::usage(
                    "raw heap profiles hold addresses only: use --binaries to name the programs and libraries that ran",
                ),
                None if loaded.total.contexts > 0 => Failure::input(format_args!(
                    "{}: debug info of the binaries covers no frame of the heap profile",
                    input.name()
                )),
                None => Failure::input(format_args!(
                    "{}: the heap profile has no contexts",
                    input.name()
                )),
            };
            return Err(notes.iter().fold(failure, Failure::with_hint));
        }
        let names_alone = loaded.dumps() == 0;
        let heap = HeapProfile::from_loaded(loaded);
        let mut heap = Heap { heap, notes };
        if names_alone {
            heap.add_names(binaries)?;
        }
        Ok(heap)
    }

    /// Opens two heap profiles that are compared. A raw dump has all its contexts if the other profile is one too; a
    /// profile for compilers has none without debug info.
    pub fn open_both(binaries: &BinaryArgs, inputs: [&Input; 2]) -> Result<[Self; 2], Failure> {
        let raw = |input: &&Input| detect(input.bytes()) == FileKind::MemProfRaw;
        let rule = match inputs.iter().all(raw) {
            true => FrameRule::All,
            false => FrameRule::Compiler,
        };
        let [old, new] = inputs;
        Ok([
            Self::open(binaries, old, rule)?,
            Self::open(binaries, new, rule)?,
        ])
    }

    /// Gives names and source lines to frames that have none. They come from the binaries that the user named: from the
    /// debug info, which has functions that are only inlined, and from symbols.
    fn add_names(&mut self, binaries: &BinaryArgs) -> Result<(), Failure> {
        if binaries.binaries.is_empty() || !self.heap.is_incomplete() {
            return Ok(());
        }
        let mut functions = BinaryFunctions::for_names();
        add_binaries(&mut functions, &binaries.binaries)?;
        let mut programs = ProgramFrames::wanted_by(&self.heap.profile);
        programs.open_all(
            binaries.binaries.iter().map(PathBuf::as_path),
            &DebugFolders {
                folders: binaries.debug_file_directory.clone(),
            },
        );
        let mut done = self.heap.complete(&programs);
        let (named, unnamed) = self.heap.add_names(&functions);
        done.named += named;
        done.unnamed = unnamed;
        self.notes.extend(completed_notes(&done));
        Ok(())
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

    pub fn view<'a>(&'a self, input: &'a Input, spelling: Spelling) -> HeapView<'a> {
        HeapView {
            path: input.name(),
            size: input.len() as u64,
            heap: &self.heap,
            notes: &self.notes,
            spelling,
            whole_stacks: false,
        }
    }

    /// Ends a command that has printed the sound parts of its files: reports the errors of each file, with the file's
    /// name.
    pub fn finish(files: &[(&Input, &Heap)]) -> exit::Result {
        let files = files.iter();
        let lines =
            files.flat_map(|(input, shown)| exit::lines_of(input.name(), &shown.heap.damage));
        exit::done_unless(Failure::inputs(lines))
    }
}
