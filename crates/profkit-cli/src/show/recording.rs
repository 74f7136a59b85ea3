//! `profkit show` of a recording of Linux perf.
use super::ShowArgs;
use crate::exit::{self, Failure};
use crate::print;
use profkit_data::detect::{FileKind, detect};
use profkit_merge::files::Input;
use profkit_perf::Recording;
use profkit_report::recording::{RecordingShow, recording_damage};
use std::path::{Path, PathBuf};

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

/// Shows a recording. `folder` is the folder that `input` is the head of, if it is one of several files.
pub fn run(args: &ShowArgs, input: &Input, folder: Option<&Path>) -> exit::Result {
    let parts = folder.map(parts).transpose()?.unwrap_or_default();
    let name = folder.map_or_else(|| input.name().to_owned(), profkit_data::path_text);
    let bytes: Vec<&[u8]> = parts.iter().map(|part| part.bytes()).collect();
    let recording = Recording::open_folder(input.bytes(), &bytes)
        .map_err(|error| Failure::file(&name, &error))?;
    let figures = recording.figures();
    let show = RecordingShow {
        path: &name,
        size: [input]
            .into_iter()
            .chain(&parts)
            .map(|input| input.len() as u64)
            .sum(),
        recording: &recording,
        figures: &figures,
        top: args.top,
    };
    print::answer(&show, args.format)?;
    let damage = recording_damage(&figures.losses).into_iter();
    let damage = damage.map(|damage| format!("{name}: {damage}"));
    exit::done_unless(Failure::inputs(damage))
}
