//! What to merge: files, folders, lists and weights, as a flat list of files.
use super::progress::Progress;
use super::report::grouped;
use crate::exit::{Failure, Result, io_text};
use crate::io::{STDIN_NAME, is_stdio, read_into};
use crate::memprof::is_memprof_input;
use profkit_data::memprof::yaml;
use profkit_merge::{InputData, Inputs, Weight};
use rustc_hash::FxHashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const LINE_HINT: &str =
    "an input is PATH or WEIGHT,PATH, where the weight is a number such as 3 or 0.25";
const LIST_HINT: &str =
    "a line is PATH or WEIGHT,PATH; empty lines and lines that begin with # are skipped";
/// How many files that are given more than once are named.
const MOST_REPEATED: usize = 10;
/// How deep folders may nest before we take it for a loop.
const MOST_FOLDERS: usize = 256;

/// One file to merge.
#[derive(Clone, Debug, PartialEq)]
pub struct InputFile {
    /// Its path; `-` is standard input.
    pub path: PathBuf,
    /// What the file is called in messages.
    pub name: String,
    /// How often its counts count.
    pub weight: Weight,
}

impl InputFile {
    fn new(path: PathBuf, weight: Weight) -> Self {
        let name = if is_stdio(&path) {
            STDIN_NAME.to_owned()
        } else {
            path.display().to_string()
        };
        InputFile { path, name, weight }
    }
}

/// All inputs, in the order in which they were named, files of a folder sorted by path.
#[derive(Debug, Default)]
pub struct InputList {
    /// The files.
    pub files: Vec<InputFile>,
    /// Counts what is loaded.
    pub progress: Progress,
    /// What is odd but does not keep us from merging.
    pub notes: Vec<String>,
    /// Index into `counted`.
    seen: FxHashMap<FileId, usize>,
    counted: Vec<Counted>,
    output: Option<FileId>,
    missing: Vec<String>,
    stdin_taken: bool,
    stdin: OnceLock<io::Result<Vec<u8>>>,
}

/// A file, and how often it was named.
#[derive(Debug)]
struct Counted {
    path: PathBuf,
    /// Another path that leads to it.
    other: Option<PathBuf>,
    times: u64,
}

/// The same for two paths that lead to the same file.
#[derive(Debug, PartialEq, Eq, Hash)]
#[cfg(unix)]
struct FileId(u64, u64);
#[derive(Debug, PartialEq, Eq, Hash)]
#[cfg(not(unix))]
struct FileId(PathBuf);

impl FileId {
    #[cfg(unix)]
    fn of(_: &Path, metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(FileId(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    fn of(path: &Path, _: &Metadata) -> Option<Self> {
        fs::canonicalize(path).ok().map(FileId)
    }
}

impl InputList {
    /// Collects the inputs named on the command line and in list files. `output` is where the merged profile will
    /// go: a folder that is an input may hold the one of an earlier run.
    ///
    /// # Errors
    /// A list that cannot be read or understood, a weight that is none, and every named file that does not exist.
    pub fn collect(named: &[OsString], lists: &[PathBuf], output: Option<&Path>) -> Result<Self> {
        let output = output
            .and_then(|path| fs::metadata(path).ok())
            .filter(Metadata::is_file);
        let mut list = InputList::default();
        if let Some(metadata) = output {
            list.output = FileId::of(Path::new(""), &metadata);
        }
        for text in named {
            let input = split_weight(text, exists)
                .map_err(|problem| Failure::usage(problem).with_hint(LINE_HINT))?;
            list.add(input, None)?;
        }
        for path in lists {
            list.add_list(path)?;
        }
        list.note_repeated();
        if list.missing.is_empty() {
            return Ok(list);
        }
        let mut missing = std::mem::take(&mut list.missing).into_iter();
        let first = Failure::input(missing.next().unwrap_or_default());
        let failure = missing.fold(first, Failure::and);
        Err(failure.with_hint("nothing was merged, because inputs that were named are not there"))
    }

    /// The indexes of heap profiles, and those of all other inputs. An input that cannot be read is left to the merge,
    /// which reports it.
    pub fn split_heap_profiles(&self) -> (Vec<usize>, Vec<usize>) {
        (0..self.files.len()).partition(|&index| self.is_heap_profile(index).unwrap_or(false))
    }

    fn is_heap_profile(&self, index: usize) -> io::Result<bool> {
        let stdin = self
            .files
            .get(index)
            .is_some_and(|file| is_stdio(&file.path));
        if !stdin && let Some(file) = self.files.get(index) {
            let mut head = [0; 8];
            let read = fs::File::open(&file.path)?.read(&mut head)?;
            let head = head.get(..read).unwrap_or_default();
            if !yaml::is_yaml(head) {
                return Ok(is_memprof_input(head));
            }
        }
        let mut scratch = Vec::new();
        Ok(is_memprof_input(self.load(index, &mut scratch)?.as_ref()))
    }

    /// How many inputs these are, and their bytes.
    pub fn sizes(&self, indexes: &[usize]) -> (u64, u64) {
        let sizes = indexes.iter().map(|&index| {
            let file = self.files.get(index).filter(|file| !is_stdio(&file.path));
            match file {
                Some(file) => fs::metadata(&file.path).map_or(0, |metadata| metadata.len()),
                None => self.stdin_len(),
            }
        });
        (indexes.len() as u64, sizes.sum())
    }

    fn stdin_len(&self) -> u64 {
        let bytes = self.stdin.get().and_then(|bytes| bytes.as_ref().ok());
        bytes.map_or(0, |bytes| bytes.len() as u64)
    }

    fn add_list(&mut self, path: &Path) -> Result<()> {
        let name = if is_stdio(path) {
            self.take_stdin()?;
            STDIN_NAME.to_owned()
        } else {
            path.display().to_string()
        };
        let mut buffer = Vec::new();
        let map = read_into(path, &mut buffer)
            .map_err(|error| Failure::io("cannot read the list", &name, &error))?;
        let bytes = map.as_deref().unwrap_or(&buffer);
        for entry in parse_list(bytes, exists) {
            let at = format!("{name}:{}", entry.line);
            match entry.input {
                Ok(input) => self.add(input, Some(&at))?,
                Err(problem) => {
                    return Err(
                        Failure::input(format_args!("{at}: {problem}")).with_hint(LIST_HINT)
                    );
                }
            }
        }
        Ok(())
    }

    fn take_stdin(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.stdin_taken, true) {
            return Err(Failure::usage("standard input can be read only once")
                .with_hint("- may stand for one profile or one list, not for both"));
        }
        Ok(())
    }

    /// Adds a file or folder that was named: on the command line, or `at` a line of a list.
    fn add(&mut self, input: InputFile, at: Option<&str>) -> Result<()> {
        if is_stdio(&input.path) {
            self.take_stdin()?;
            self.files.push(input);
            return Ok(());
        }
        match fs::metadata(&input.path) {
            Ok(metadata) if metadata.is_dir() => self.add_folder(&input),
            Ok(metadata) => {
                if let Some(id) = FileId::of(&input.path, &metadata) {
                    if self.output.as_ref() == Some(&id) {
                        self.notes.push(format!(
                            "{} is an input and the output: it is read first, then replaced",
                            input.name
                        ));
                    }
                    self.count(id, &input.path);
                }
                self.files.push(input);
                Ok(())
            }
            Err(error) => {
                let place = at.map(|at| format!("{at}: ")).unwrap_or_default();
                self.missing.push(format!(
                    "{place}cannot read {}: {}",
                    input.name,
                    io_text(&error)
                ));
                Ok(())
            }
        }
    }

    fn count(&mut self, id: FileId, path: &Path) {
        let next = self.counted.len();
        let index = *self.seen.entry(id).or_insert(next);
        match self.counted.get_mut(index) {
            Some(counted) => {
                counted.times += 1;
                if counted.path != path {
                    counted.other.get_or_insert_with(|| path.to_owned());
                }
            }
            None => self.counted.push(Counted {
                path: path.to_owned(),
                other: None,
                times: 1,
            }),
        }
    }

    fn note_repeated(&mut self) {
        let repeated = || self.counted.iter().filter(|counted| counted.times > 1);
        let more = repeated().skip(MOST_REPEATED).count() as u64;
        let mut notes: Vec<_> = repeated()
            .take(MOST_REPEATED)
            .map(|Counted { path, other, times }| {
                let also = match other {
                    Some(other) => format!(" (also as {})", other.display()),
                    None => String::new(),
                };
                let path = path.display();
                format!("{path} is named {times} times{also} and counted as often")
            })
            .collect();
        if more > 0 {
            notes.push(format!("… and {} more of this kind", grouped(more)));
        }
        self.notes.append(&mut notes);
    }

    fn add_folder(&mut self, folder: &InputFile) -> Result<()> {
        let before = self.files.len();
        let mut found = Vec::new();
        walk(&folder.path, 0, &mut found).map_err(|(path, error)| {
            Failure::io("cannot read the folder", path.display(), &error)
        })?;
        found.sort();
        for path in found {
            let metadata = fs::metadata(&path).ok();
            if let Some(id) = metadata.and_then(|metadata| FileId::of(&path, &metadata)) {
                if self.output.as_ref() == Some(&id) {
                    self.notes.push(format!(
                        "{} is left out: it is the output, found in a folder that is an input",
                        path.display()
                    ));
                    continue;
                }
                self.count(id, &path);
            }
            self.files.push(InputFile::new(path, folder.weight));
        }
        if self.files.len() == before {
            self.notes.push(format!(
                "the folder {} holds no files to merge",
                folder.name
            ));
        }
        Ok(())
    }
}

type WalkError = (PathBuf, io::Error);

/// Adds the regular files below a folder. Links are followed; what is no regular file is passed over.
fn walk(
    folder: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
) -> std::result::Result<(), WalkError> {
    let failed = |error| (folder.to_owned(), error);
    if depth == MOST_FOLDERS {
        return Err(failed(io::Error::other(
            "folders nest too deeply, or a link leads back to where it is",
        )));
    }
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let file_type = entry.file_type().map_err(failed)?;
        let (is_file, is_folder) = if file_type.is_symlink() {
            match fs::metadata(&path) {
                Ok(metadata) => (metadata.is_file(), metadata.is_dir()),
                // A link that leads nowhere.
                Err(_) => (false, false),
            }
        } else {
            (file_type.is_file(), file_type.is_dir())
        };
        if is_folder {
            walk(&path, depth + 1, found)?;
        } else if is_file && !is_temporary(&entry.file_name()) {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether a file is what another profkit is just writing ([`crate::io::Output`]), or left when it was killed.
fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") && name.ends_with(b".tmp")
}

/// A line of a list that says something.
#[derive(Debug)]
pub struct ListEntry {
    /// Its number, from 1.
    pub line: usize,
    /// What it names, or why it names nothing.
    pub input: std::result::Result<InputFile, String>,
}

/// Reads a list: `PATH` or `WEIGHT,PATH` a line, white space around it dropped, empty lines and lines that begin with
/// `#` skipped. Paths are relative to the working folder, not to the list (as LLVM has it).
///
/// `exists` says whether there is a file of a name: such a name is never split.
pub fn parse_list(
    bytes: &[u8],
    exists: impl Fn(&OsStr) -> bool,
) -> impl Iterator<Item = ListEntry> {
    let lines = bytes.split(|&byte| byte == b'\n').enumerate();
    lines.filter_map(move |(index, line)| {
        let line = trim(line);
        if line.is_empty() || line.starts_with(b"#") {
            return None;
        }
        Some(ListEntry {
            line: index + 1,
            input: split_weight(&os_string(line), &exists),
        })
    })
}

fn trim(line: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r');
    let start = line.iter().position(|byte| !blank(byte));
    let end = line.iter().rposition(|byte| !blank(byte));
    match (start, end) {
        (Some(start), Some(end)) => &line[start..=end],
        _ => &[],
    }
}

#[cfg(unix)]
fn os_string(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(bytes).to_owned()
}

#[cfg(not(unix))]
fn os_string(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

fn exists(path: &OsStr) -> bool {
    fs::metadata(path).is_ok()
}

/// Splits `WEIGHT,PATH`. What stands before the comma is a weight only if it looks like a number, and a file that
/// exists under the whole name wins.
///
/// # Errors
/// If what looks like a number is no weight.
fn split_weight(
    text: &OsStr,
    exists: impl Fn(&OsStr) -> bool,
) -> std::result::Result<InputFile, String> {
    let whole = || Ok(InputFile::new(PathBuf::from(text), Weight::ONE));
    let bytes = text.as_encoded_bytes();
    let Some(comma) = bytes.iter().position(|&byte| byte == b',') else {
        return whole();
    };
    let Some(weight) = bytes.get(..comma).and_then(number) else {
        return whole();
    };
    if exists(text) {
        return whole();
    }
    let path = PathBuf::from(os_string(&bytes[comma + 1..]));
    match weight.parse() {
        Ok(weight) => Ok(InputFile::new(path, weight)),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// The text, if it looks like a number: a path may have a comma too.
fn number(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let rest = text.bytes().all(|byte| b"0123456789+-.eE".contains(&byte));
    let letter = text.starts_with(['e', 'E']);
    (digits && rest && !letter).then_some(text)
}

/// Some of the inputs.
#[derive(Debug)]
pub struct Subset<'a> {
    inputs: &'a InputList,
    indexes: Vec<usize>,
}

impl<'a> Subset<'a> {
    /// The inputs with these indexes.
    pub fn new(inputs: &'a InputList, indexes: Vec<usize>) -> Self {
        Subset { inputs, indexes }
    }

    fn index(&self, index: usize) -> usize {
        self.indexes.get(index).copied().unwrap_or(usize::MAX)
    }
}

impl Inputs for Subset<'_> {
    fn len(&self) -> usize {
        self.indexes.len()
    }

    fn name(&self, index: usize) -> &str {
        self.inputs.name(self.index(index))
    }

    fn weight(&self, index: usize) -> Weight {
        self.inputs.weight(self.index(index))
    }

    fn load<'s>(&'s self, index: usize, scratch: &'s mut Vec<u8>) -> io::Result<InputData<'s>> {
        self.inputs.load(self.index(index), scratch)
    }
}

impl Inputs for InputList {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn name(&self, index: usize) -> &str {
        self.files.get(index).map_or("", |file| &file.name)
    }

    fn weight(&self, index: usize) -> Weight {
        self.files
            .get(index)
            .map_or(Weight::ONE, |file| file.weight)
    }

    fn load<'s>(&'s self, index: usize, scratch: &'s mut Vec<u8>) -> io::Result<InputData<'s>> {
        let Some(file) = self.files.get(index) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        self.progress.step();
        if is_stdio(&file.path) {
            // Read once, because a second load must see the same bytes.
            let stdin = self.stdin.get_or_init(|| {
                let mut bytes = Vec::new();
                read_into(&file.path, &mut bytes)?;
                Ok(bytes)
            });
            return match stdin {
                Ok(bytes) => Ok(InputData::Borrowed(bytes)),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
        }
        Ok(match read_into(&file.path, scratch)? {
            Some(map) => InputData::Owned(Box::new(map)),
            None => InputData::Borrowed(scratch),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> String {
        match split_weight(OsStr::new(text), |path| path == "7,there") {
            Ok(input) => format!("{} x {}", input.weight, input.name),
            Err(error) => error,
        }
    }

    #[test]
    fn weights_are_split_off_only_where_there_is_one() {
        assert_eq!(split("a.profraw"), "1 x a.profraw");
        assert_eq!(split("3,a.profraw"), "3 x a.profraw");
        assert_eq!(split("0.25,a,b.profraw"), "1/4 x a,b.profraw");
        assert_eq!(split("run 3,a.profraw"), "1 x run 3,a.profraw");
        assert_eq!(split("inf,a"), "1 x inf,a");
        assert_eq!(split("e0,a"), "1 x e0,a");
        assert_eq!(split("7,there"), "1 x 7,there");
        let zero = "a: not a weight: found `0`, expected a number above 0 such as 3 or 0.25";
        assert_eq!(split("0,a"), zero);
        assert_eq!(split("-2,a"), zero.replace("`0`", "`-2`"));
        assert_eq!(split("1e9,a"), zero.replace("`0`", "`1e9`"));
    }

    #[test]
    fn lists_skip_comments_and_blanks_and_count_lines() {
        let text = b"# runs of Monday\n\n  a.profraw \r\n2,b.profraw\n0,c\n\t# no\nd";
        let seen: Vec<_> = parse_list(text, |_| false)
            .map(|entry| match entry.input {
                Ok(input) => format!("{} {} {}", entry.line, input.weight, input.name),
                Err(error) => format!("{} {error}", entry.line),
            })
            .collect();
        assert_eq!(
            seen,
            [
                "3 1 a.profraw",
                "4 2 b.profraw",
                "5 c: not a weight: found `0`, expected a number above 0 such as 3 or 0.25",
                "7 1 d"
            ]
        );
    }

    #[test]
    fn folders_are_walked_sorted_without_their_output_and_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("b/c")).unwrap();
        for name in ["z", "b/c/x.bin", "b/y", "out", ".out.x.tmp"] {
            fs::write(root.join(name), name).unwrap();
        }
        let list = InputList::collect(&[root.into()], &[], Some(&root.join("out"))).unwrap();
        let names: Vec<_> = list
            .files
            .iter()
            .map(|file| file.path.strip_prefix(root).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["b/c/x.bin", "b/y", "z"]);
        assert_eq!(list.notes.len(), 1);
        assert!(list.notes[0].ends_with("found in a folder that is an input"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_list_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let lines = bytes.split(|&byte| byte == b'\n').count();
            let mut last = 0;
            for entry in parse_list(&bytes, |_| false) {
                prop_assert!(entry.line > last && entry.line <= lines);
                last = entry.line;
            }
        }

        #[test]
        fn what_is_listed_is_read_back(weight in 1u64..1000, name in "[a-z][a-z, .0-9]{0,20}[a-z]") {
            let list = format!("\n{weight},{name}\n# {name}\n{name}");
            let read: Vec<_> = parse_list(list.as_bytes(), |_| false).collect();
            prop_assert_eq!(read.len(), 2);
            prop_assert_eq!(&read[0].input, &Ok(InputFile::new(name.clone().into(), Weight::integer(weight))));
            prop_assert_eq!(&read[1].input, &Ok(InputFile::new(name.into(), Weight::ONE)));
        }
    }
}
