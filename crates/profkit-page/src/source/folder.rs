//! The folder that has the source files of a program: finds the files that debug info names, and reads nothing else.
use profkit_analysis::names::printable;
use profkit_data::system_text;
use rustc_hash::FxHashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The largest size of a source file in bytes. Larger files are made by programs, and no one reads them.
const LARGEST: u64 = 16 << 20;

/// The largest number of names at the end of a path that are compared. A path in malicious debug info can have any
/// number of names.
const MOST_PARTS: usize = 64;

/// A folder with source files.
///
/// A file's path in the debug info is matched from its end: the longest end that is the path of a file in the folder
/// counts. For `/build/app/src/main.c`, this is `src/main.c` if the folder has such a file, or else `main.c`. Files
/// outside the folder are never read, even if a symbolic link in the folder leads to them.
#[derive(Debug)]
pub struct SourceFolder {
    /// The path of the folder, with symbolic links resolved.
    root: PathBuf,
    /// For each path in debug info that was looked for, its index in `files`; `None` if no such file can be used.
    found: FxHashMap<Vec<u8>, Option<usize>>,
    /// For each file that was opened, its index in `files`; `None` if the file could not be read.
    read: FxHashMap<PathBuf, Option<usize>>,
    files: Vec<SourceFile>,
    problems: Vec<String>,
}

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its lines without line breaks. Control characters and bytes that are not UTF-8 are escaped; tabs are four spaces.
    pub lines: Vec<String>,
}

impl SourceFolder {
    /// Opens a folder.
    ///
    /// # Errors
    /// If the path cannot be resolved, or is no folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(path)?;
        if !root.is_dir() {
            return Err(io::Error::from(ErrorKind::NotADirectory));
        }
        Ok(SourceFolder {
            root,
            found: FxHashMap::default(),
            read: FxHashMap::default(),
            files: Vec::new(),
            problems: Vec::new(),
        })
    }

    /// Finds the file that debug info calls `path`, and returns its number. The file is read when it is asked for the
    /// first time. `None` if the folder does not have the file, or if the file cannot be read;
    /// [`problems`](Self::problems) has the reason why it cannot be read.
    pub fn find(&mut self, path: &[u8]) -> Option<usize> {
        if let Some(&found) = self.found.get(path) {
            return found;
        }
        let found = self.look_for(path);
        self.found.insert(path.to_vec(), found);
        found
    }

    /// A file by its number.
    pub fn file(&self, number: usize) -> Option<&SourceFile> {
        self.files.get(number)
    }

    /// The files that were found in the folder but cannot be used, with the reasons.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    fn look_for(&mut self, path: &[u8]) -> Option<usize> {
        // Only on Unix could a name that is not UTF-8 be looked for.
        let path = std::str::from_utf8(path).ok()?;
        let parts = last_parts(path);
        for start in 0..parts.len() {
            let end: PathBuf = parts.get(start..).unwrap_or_default().iter().collect();
            let file = match fs::canonicalize(self.root.join(&end)) {
                Ok(file) => file,
                Err(error) if is_missing(&error) => continue,
                Err(error) => {
                    self.problem(&end, &system_text(&error));
                    return None;
                }
            };
            if !file.starts_with(&self.root) {
                self.problem(&end, "a symbolic link leads out of the folder");
                return None;
            }
            if file.is_dir() {
                continue;
            }
            if let Some(&read) = self.read.get(&file) {
                return read;
            }
            let read = match lines_of(&file) {
                Ok(lines) => {
                    self.files.push(SourceFile { lines });
                    Some(self.files.len() - 1)
                }
                Err(reason) => {
                    self.problem(&end, &reason);
                    None
                }
            };
            self.read.insert(file, read);
            return read;
        }
        None
    }

    fn problem(&mut self, path: &Path, reason: &str) {
        let path = path.to_string_lossy();
        let path = printable(path.as_bytes());
        self.problems.push(format!("{path}: {reason}"));
    }
}

/// The names at the end of a path that can be names in the folder: those after the last `..`, at most [`MOST_PARTS`].
/// In a Windows path, backslashes separate the names.
fn last_parts(path: &str) -> Vec<&str> {
    let is_windows = !path.contains('/') || path.as_bytes().get(1) == Some(&b':');
    let separators: &[char] = if is_windows { &['/', '\\'] } else { &['/'] };
    let mut parts: Vec<_> = path
        .rsplit(separators)
        .filter(|part| !matches!(*part, "" | "."))
        .take_while(|part| *part != ".." && !part.contains(['\0', ':']))
        .take(MOST_PARTS)
        .collect();
    parts.reverse();
    parts
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
    )
}

/// The lines of a file, or why it cannot be used.
fn lines_of(path: &Path) -> Result<Vec<String>, String> {
    let text = |error: io::Error| system_text(&error);
    // Opening a pipe would wait for a writer.
    let facts = fs::metadata(path).map_err(text)?;
    if !facts.is_file() {
        return Err("no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(text)?;
    // The file may grow while it is read.
    let size = file
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(text)?;
    if size as u64 > LARGEST {
        return Err(format!("larger than {LARGEST} bytes"));
    }
    let lines = bytes
        .strip_suffix(b"\n")
        .unwrap_or(&bytes)
        .split(|&byte| byte == b'\n');
    let lines = lines.map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let parts = line.split(|&byte| byte == b'\t').map(printable);
        parts.collect::<Vec<_>>().join("    ")
    });
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(path, text).expect("written");
        }
        folder
    }

    fn first_line(source: &mut SourceFolder, path: &str) -> Option<String> {
        let file = source.find(path.as_bytes())?;
        source.file(file)?.lines.first().cloned()
    }

    #[test]
    fn the_longest_end_of_a_path_is_found() {
        let folder = folder(&[("src/a.c", "deep\n"), ("a.c", "flat\n"), ("lib/a.c", "lib")]);
        let mut source = SourceFolder::open(folder.path()).expect("opened");
        for (path, line) in [
            ("/build/app/src/a.c", Some("deep")),
            ("/build/./lib//a.c", Some("lib")),
            ("other/a.c", Some("flat")),
            ("C:\\build\\src\\a.c", Some("deep")),
            ("/build/b.c", None),
            ("", None),
        ] {
            assert_eq!(first_line(&mut source, path).as_deref(), line, "{path}");
        }
        assert_eq!(source.files.len(), 3);
        assert!(source.problems().is_empty());
    }

    #[test]
    fn nothing_outside_the_folder_is_read() {
        let outside = folder(&[("secret.c", "secret\n"), ("in/x.c", "x\n")]);
        let mut source = SourceFolder::open(&outside.path().join("in")).expect("opened");
        for path in ["../secret.c", "/build/../../secret.c", "in/../../secret.c"] {
            assert_eq!(first_line(&mut source, path), None, "{path}");
        }
        // The names after the last `..` are matched like any other path.
        assert_eq!(first_line(&mut source, "a/../x.c").as_deref(), Some("x"));
        assert!(source.problems().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_folder_are_reported() {
        let outside = folder(&[("secret.c", "secret\n"), ("in/x.c", "x\n")]);
        let inside = outside.path().join("in");
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, inside.join(name)).expect("a link");
        };
        link("../secret.c", "out.c");
        link("x.c", "same.c");
        link("..", "up");
        link("/dev/null", "null.c");
        let mut source = SourceFolder::open(&inside).expect("opened");
        assert_eq!(first_line(&mut source, "same.c").as_deref(), Some("x"));
        for path in ["out.c", "up/secret.c", "null.c"] {
            assert_eq!(first_line(&mut source, path), None, "{path}");
        }
        insta::assert_snapshot!(source.problems().join("\n"), @r"
        out.c: a symbolic link leads out of the folder
        up/secret.c: a symbolic link leads out of the folder
        null.c: a symbolic link leads out of the folder
        ");
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_is_no_source_file() {
        let folder = folder(&[]);
        let path = folder.path().join("a.c");
        let _socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let mut source = SourceFolder::open(folder.path()).expect("opened");
        assert_eq!(source.find(b"a.c"), None);
        assert_eq!(source.problems(), ["a.c: no regular file"]);
    }

    #[test]
    fn a_file_that_is_too_large_is_reported() {
        let folder = folder(&[]);
        let file = File::create(folder.path().join("a.c")).expect("a file");
        file.set_len(LARGEST + 1).expect("its size");
        let mut source = SourceFolder::open(folder.path()).expect("opened");
        assert_eq!(source.find(b"a.c"), None);
        assert_eq!(source.problems(), ["a.c: larger than 16777216 bytes"]);
    }

    #[test]
    fn lines_are_made_safe() {
        let folder = folder(&[("a.c", "if (x)\r\n\tf();\u{1b}[2J\n\nend")]);
        let mut source = SourceFolder::open(folder.path()).expect("opened");
        let file = source.find(b"a.c").expect("the file");
        let lines = &source.file(file).expect("the file").lines;
        assert_eq!(*lines, ["if (x)", "    f();\\u{1b}[2J", "", "end"]);
    }

    #[test]
    fn only_a_folder_can_be_opened() {
        let folder = folder(&[("a.c", "")]);
        assert!(SourceFolder::open(&folder.path().join("a.c")).is_err());
        assert!(SourceFolder::open(&folder.path().join("none")).is_err());
    }
}
