//! `profkit show` of a recording of Linux perf.
use super::ShowArgs;
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure};
use crate::memprof::flame;
use crate::print;
use profkit_data::detect::{FileKind, detect};
use profkit_merge::files::Input;
use profkit_perf::Recording;
use profkit_profgen::stacks::{FunctionStacks, StackOptions};
use profkit_report::recording::{
    FunctionChoice, RecordingShow, flame_graph_of_recording, print_folded_recording,
    recording_damage, unnamed_notes,
};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The number of functions in the list of the hottest ones.
const MOST_FUNCTIONS: usize = 10;

/// Returns the file `data`, which has the header, of a folder that `perf record --threads` wrote. `None` for any other
/// path.
pub fn head_of_folder(path: &Path) -> Option<PathBuf> {
    let head = path.join("data");
    let is_recording = path.is_dir() && head.is_file() && {
        let input = Input::open(&head).ok()?;
        detect(input.bytes()) == FileKind::PerfData
    };
    is_recording.then_some(head)
}

/// The folder of `perf record --threads`, if it is the only path, and its file with the header.
pub fn folder_among(paths: &[PathBuf]) -> Option<(&Path, PathBuf)> {
    match paths {
        [path] => Some((path.as_path(), head_of_folder(path)?)),
        _ => None,
    }
}

/// Returns the files of recordings: the paths themselves, and of folders the files that [`head_of_folder`] and [`parts`]
/// read.
pub fn files_of(recordings: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    recordings.iter().flat_map(|path| {
        let files = [path.clone(), path.join("data")];
        files.into_iter().chain(part_paths(path))
    })
}

fn part_paths(folder: &Path) -> impl Iterator<Item = PathBuf> {
    (0..)
        .map(|number| folder.join(format!("data.{number}")))
        .take_while(|path| path.is_file())
}

/// Opens the other files of a folder that `perf record --threads` wrote: `data.0`, `data.1` and so on.
pub fn parts(folder: &Path) -> Result<Vec<Input>, Failure> {
    part_paths(folder)
        .map(|path| crate::io::open(&path))
        .collect()
}

/// The files of a recording: one file, or the files of a folder that `perf record --threads` wrote.
pub struct RecordingFiles<'i> {
    name: String,
    input: &'i Input,
    parts: Vec<Input>,
}

impl<'i> RecordingFiles<'i> {
    /// Opens the other files of a recording whose first file is `input`. `folder` is the folder of the files, if it is
    /// one of several.
    pub fn open(folder: Option<&Path>, input: &'i Input) -> exit::Result<Self> {
        Ok(RecordingFiles {
            name: folder.map_or_else(|| input.name().to_owned(), profkit_data::path_text),
            input,
            parts: folder.map(parts).transpose()?.unwrap_or_default(),
        })
    }

    /// Reads the recording, and calls `with` with it.
    pub fn read<R>(&self, with: impl FnOnce(&Recording<'_>) -> exit::Result<R>) -> exit::Result<R> {
        let bytes: Vec<&[u8]> = self.parts.iter().map(|part| part.bytes()).collect();
        let recording = Recording::open_folder(self.input.bytes(), &bytes)
            .map_err(|error| Failure::file(&self.name, &error))?;
        with(&recording)
    }

    /// The size of all files in bytes.
    pub fn size(&self) -> u64 {
        let files = [self.input].into_iter().chain(&self.parts);
        files.map(|input| input.len() as u64).sum()
    }

    /// The status of a recording that was used as far as it could be read. Its damage goes to standard error.
    pub fn finish(&self, recording: &Recording<'_>) -> exit::Result {
        let damage = recording_damage(recording.losses()).into_iter();
        let damage = damage.map(|damage| format!("{}: {damage}", self.name));
        exit::done_unless(Failure::inputs(damage))
    }
}

/// Finds the functions of a recording's samples. With `lines`, frames have source lines.
pub fn functions(
    recording: &Recording<'_>,
    args: &BinaryArgs,
    lines: bool,
) -> exit::Result<FunctionStacks> {
    let mut notes = Vec::new();
    let binaries = args.index(&mut notes, true)?;
    print::notes(&notes);
    let mut options = StackOptions::default();
    options.lines = lines;
    Ok(FunctionStacks::of(recording, &binaries, &options))
}

/// Shows a recording. `folder` is the folder that `input` is the head of, if it is one of several files.
pub fn run(args: &ShowArgs, input: &Input, folder: Option<&Path>) -> exit::Result {
    let opened = RecordingFiles::open(folder, input)?;
    opened.read(|recording| show(args, &opened, recording))
}

fn show(args: &ShowArgs, opened: &RecordingFiles<'_>, recording: &Recording<'_>) -> exit::Result {
    let stacks = functions(recording, &args.correlation, false)?;
    let name = &opened.name;
    if let Some(path) = &args.heap.flamegraph {
        let title = flame::title(opened.input);
        let svg = flame_graph_of_recording(&stacks, &title, args.spelling());
        flame::write(path, opened.input, svg, "samples")?;
        print::notes(unnamed_notes(&stacks));
        return opened.finish(recording);
    }
    if args.heap.folded.is_some() {
        let mut out = print::stdout();
        let printed = print_folded_recording(&stacks, args.spelling(), &mut out);
        let printed = printed.and_then(|()| out.flush());
        printed.map_err(|error| Failure::print(&error))?;
        print::notes(unnamed_notes(&stacks));
        return opened.finish(recording);
    }
    let selection = args.filters().then(|| args.selection()).transpose()?;
    let all = args.functions || !args.format.is_for_people();
    let usual = if all { usize::MAX } else { MOST_FUNCTIONS };
    let figures = recording.figures();
    let show = RecordingShow {
        path: name,
        size: opened.size(),
        recording,
        figures: &figures,
        stacks: &stacks,
        choice: FunctionChoice {
            selection,
            spelling: args.spelling(),
            top: args.top.unwrap_or(usual),
        },
        top: args.top,
    };
    let missing = show.missing(&args.function);
    print::answer(&show, args.format)?;
    let damage = recording_damage(&figures.losses).into_iter();
    let damage = damage.map(|damage| format!("{name}: {damage}"));
    let missing = missing.map(|wanted| format!("{name}: no samples in a function `{wanted}`"));
    exit::done_unless(Failure::inputs(damage.chain(missing)))
}
