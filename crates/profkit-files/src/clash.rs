//! Checks that the outputs of a command destroy neither each other nor what the command reads.
use crate::input::archive_of;
use crate::output::{folder_of, follow_links};
use crate::remote;
use crate::walk::{FileId, canonical};
use crate::{OutputError, OutputProblem, is_stdio};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Paths that lead to the standard output of this program.
const STDOUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
/// The number of bytes in which the beginning of an earlier report is looked for.
const REPORT_START: u64 = 64;

pub(crate) fn is_stdout(path: &Path) -> bool {
    STDOUT.iter().any(|name| path == Path::new(name))
}

/// Checks all outputs of a command before the first one is written. Each output has a name for messages ("the
/// report"); outputs that the command does not write are `None`. `inputs` are the files that the command reads and that
/// no output may replace.
///
/// Paths are compared by the place that they lead to, also for files that do not exist yet. `-` is standard output for
/// an output, and standard input for an input. Pipes and devices, such as `/dev/null`, may be named several times.
///
/// ```
/// use profkit_files::check_outputs;
/// use std::path::Path;
///
/// let (profile, report) = (Path::new("out.profdata"), Path::new("./out.profdata"));
/// let outputs = [("the profile", Some(profile)), ("the report", Some(report))];
/// check_outputs(&outputs, ["a.profraw"]).unwrap_err();
/// ```
///
/// # Errors
/// If two outputs have the same place, or if an output would replace one of the inputs.
pub fn check_outputs(
    outputs: &[(&'static str, Option<&Path>)],
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<(), OutputError> {
    let mut places: Vec<(&'static str, &Path, Place)> = Vec::new();
    for (what, path) in outputs {
        let Some((path, place)) = path.and_then(|path| Some((path, Place::of(path)?))) else {
            continue;
        };
        if let Some((first, other, _)) = places.iter().find(|(.., known)| *known == place) {
            let name = match place {
                Place::Stdout => "standard output".to_owned(),
                Place::File(_) => profkit_data::path_text(path),
            };
            let other = match place {
                Place::File(_) if *other != path => Some(profkit_data::path_text(other)),
                _ => None,
            };
            let outputs = [*first, *what];
            return Err(OutputError::new(
                name,
                OutputProblem::Twice { outputs, other },
            ));
        }
        places.push((what, path, place));
    }
    // Inputs exist, so an output that does not exist replaces none.
    let existing: Vec<_> = places
        .into_iter()
        .filter_map(|(what, path, _)| Some((what, path, id_of(path)?)))
        .collect();
    if existing.is_empty() {
        return Ok(());
    }
    for input in inputs {
        let input = input.as_ref();
        let input = archive_of(input).map_or(input, |(archive, _)| archive);
        let Some(id) = id_of(input) else {
            continue;
        };
        // Two names of one file (hard links) have one id, but if one of them is replaced, the other one stays.
        let replaced = existing
            .iter()
            .find(|(_, path, output)| *output == id && same_file(path, input));
        if let Some((what, path, _)) = replaced {
            let name = profkit_data::path_text(path);
            return Err(OutputError::new(
                name,
                OutputProblem::ReplacesInput { output: what },
            ));
        }
    }
    Ok(())
}

/// Whether a report can be written to this path although the command has not found all its inputs yet, so that the path
/// may be an input: there is no file, or the file is a pipe, a device, empty, or an earlier report of profkit.
pub fn may_become_report(path: &Path) -> bool {
    if remote::uri(path).is_some() || id_of(path).is_none() {
        return true;
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(REPORT_START).read_to_end(&mut start));
    read.is_ok() && (start.is_empty() || is_report(&start))
}

/// The first characters of a report in Markdown.
const REPORT_TITLE: &str = "## profkit merge";

fn is_report(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(start);
    if start.starts_with(REPORT_TITLE) {
        return true;
    }
    let fields = start.strip_prefix('{').map(str::trim_start);
    fields.is_some_and(|fields| fields.starts_with("\"schema\": \"profkit-"))
}

/// Whether two paths lead to the same file, or would if both files existed.
pub fn same_file(a: &Path, b: &Path) -> bool {
    a == b || place(a).is_some_and(|a| Some(a) == place(b))
}

#[derive(PartialEq)]
enum Place {
    Stdout,
    File(PathBuf),
}

impl Place {
    /// Returns the place of an output; `None` for pipes and devices, which several outputs may share.
    fn of(path: &Path) -> Option<Self> {
        if is_stdio(path) || is_stdout(path) {
            return Some(Place::Stdout);
        }
        let metadata = fs::metadata(path);
        if metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            return None;
        }
        Some(Place::File(path_without_links(path)))
    }
}

/// Returns the path without links of a file that need not exist; the path itself if it leads nowhere.
pub fn path_without_links(path: &Path) -> PathBuf {
    place(path).unwrap_or_else(|| path.to_owned())
}

/// `None` if a part of the path that does not exist is followed by `..`, so that the path leads nowhere.
fn place(path: &Path) -> Option<PathBuf> {
    if let Ok(path) = canonical(path) {
        return Some(path);
    }
    let path = follow_links(path).ok()?;
    let name = path.file_name()?;
    Some(place(folder_of(&path))?.join(name))
}

/// Returns the id of a regular file; `None` for standard input, a folder, a pipe, a device and a file that does not exist.
pub(crate) fn id_of(path: &Path) -> Option<FileId> {
    if is_stdio(path) {
        return None;
    }
    if let Some(uri) = remote::uri(path) {
        return Some(FileId::of_object(uri));
    }
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    FileId::of(path, &metadata)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_are_the_same_by_place_and_not_by_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("there")).unwrap();
        fs::write(path("file"), b"").unwrap();
        symlink("file", path("link")).unwrap();
        symlink("missing", path("nowhere")).unwrap();
        assert!(same_file(&path("file"), &path("there/../file")));
        assert!(same_file(&path("link"), &path("file")));
        assert!(same_file(&path("missing"), &path("there/../missing")));
        assert!(same_file(&path("missing"), &path("nowhere")));
        assert!(same_file(&path("new/a/b"), &path("there/../new//a/./b")));
        assert!(!same_file(&path("missing"), &path("file")));
        assert!(!same_file(&path("there/file"), &path("file")));
    }

    #[test]
    fn outputs_need_places_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), b"").unwrap();
        symlink("file", path("link")).unwrap();
        let check = |one: &Path, other: &Path| {
            let outputs = [
                ("the profile", Some(one)),
                ("the list", None),
                ("the report", Some(other)),
            ];
            check_outputs(&outputs, [""; 0]).map_err(|error| error.to_string())
        };
        let twice = |one: &Path, other: &Path| {
            let error = check(one, other).unwrap_err();
            error.replace(&folder.path().display().to_string(), "[TMP]")
        };
        assert_eq!(
            twice(&path("file"), &path("link")),
            "the profile and the report cannot both be written to [TMP]/link, which is the same file as [TMP]/file"
        );
        assert_eq!(
            twice(&path("new"), &path("new")),
            "the profile and the report cannot both be written to [TMP]/new"
        );
        assert_eq!(
            twice(Path::new("-"), Path::new("/dev/stdout")),
            "the profile and the report cannot both be written to standard output"
        );
        check(&path("file"), &path("new")).unwrap();
        check(Path::new("-"), &path("new")).unwrap();
        check(Path::new("/dev/null"), Path::new("/dev/null")).unwrap();
        // A file in the working folder whose name is that of standard output.
        check(Path::new("-"), Path::new("./-")).unwrap();
    }

    #[test]
    fn no_output_replaces_an_input() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("input"), b"").unwrap();
        fs::write(path("other"), b"").unwrap();
        fs::hard_link(path("input"), path("second-name")).unwrap();
        symlink("input", path("link")).unwrap();
        let check = |output: &str| {
            let (output, inputs) = (path(output), [path("-"), path("missing"), path("input")]);
            check_outputs(&[("the report", Some(&output))], inputs)
        };
        let error = check("link").unwrap_err();
        let text = error
            .to_string()
            .replace(&folder.path().display().to_string(), "[TMP]");
        assert_eq!(
            text,
            "[TMP]/link: the report would replace this file, which the command reads"
        );
        assert_eq!(
            error.hint().as_deref(),
            Some("choose another path for the report")
        );
        check("./input").unwrap_err();
        check("other").unwrap();
        check("new").unwrap();
        check("missing").unwrap();
        check("second-name").unwrap();
        check_outputs(&[("the report", Some(Path::new("-")))], ["-"]).unwrap();
        check_outputs(
            &[("the report", Some(Path::new("/dev/null")))],
            ["/dev/null"],
        )
        .unwrap();
    }

    #[test]
    fn only_a_report_may_be_replaced_before_the_inputs_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        let may = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            may_become_report(&path)
        };
        assert!(may(b""));
        assert!(may(b"{\n  \"schema\": \"profkit-merge\",\n"));
        assert!(!may(b"{\n  \"name\": \"profkit\"\n}"));
        assert!(!may(b"\xfflprofr\x81"));
        assert!(may_become_report(&folder.path().join("new")));
        assert!(may_become_report(Path::new("-")) && may_become_report(Path::new("/dev/null")));
    }
}
