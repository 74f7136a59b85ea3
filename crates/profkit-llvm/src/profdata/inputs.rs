//! The inputs of `merge`: files, folders, weights and lists (`addWeightedInput` and `parseInputFilenamesFile` in
//! `llvm-profdata.cpp`).
use super::path_from_bytes;
use crate::STDIN;
use crate::command_line::Parsed;
use crate::messages::{Fault, Session};
use profkit_data::detect::{FileKind, detect};
use profkit_data::memprof::yaml;
use profkit_merge::files::{hold_stored, open_stored};
use profkit_merge::{InputData, Inputs, Weight};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const NOT_FOUND: &str = "No such file or directory";
/// The largest depth of nested folders. Deeper folders are assumed to be a loop of links.
const MOST_FOLDERS: usize = 256;

/// An input file with its weight.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// The name of the input, as it is printed in messages.
    pub name: Vec<u8>,
    /// The factor by which the counts of the input are multiplied.
    pub weight: u64,
    text: String,
}

/// The files to merge, in LLVM's order.
#[derive(Debug, Default)]
pub struct InputList {
    /// The files.
    pub files: Vec<InputFile>,
    /// The content of standard input; `None` if it was not read yet.
    stdin: Option<io::Result<Vec<u8>>>,
}

impl InputList {
    /// Collects all inputs that a command line names.
    ///
    /// # Errors
    /// If a file does not exist, a weight is not a valid number, or a list cannot be read.
    pub fn new(parsed: &Parsed, session: &Session<'_>) -> Result<Self, Fault> {
        let mut list = InputList::default();
        for name in &parsed.positionals {
            list.add(name, 1)?;
        }
        for entry in parsed.texts("weighted-input") {
            list.add_weighted(entry)?;
        }
        let listed = parsed.text("input-files");
        if !listed.is_empty() {
            let bytes = session.read(listed)?;
            for line in bytes.as_ref().split(|&byte| byte == b'\n') {
                if !line.is_empty() {
                    list.add_line(line)?;
                }
            }
        }
        Ok(list)
    }

    fn add_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        const BLANK: &[u8] = b" \t\x0b\x0c\r";
        let is_blank = |byte: &u8| BLANK.contains(byte);
        let start = line.iter().position(|byte| !is_blank(byte));
        let end = line.iter().rposition(|byte| !is_blank(byte));
        let entry = match (start, end) {
            (Some(start), Some(end)) => line.get(start..=end).unwrap_or_default(),
            _ => &[],
        };
        if entry.starts_with(b"#") {
            Ok(())
        } else if entry.contains(&b',') {
            self.add_weighted(entry)
        } else {
            self.add(entry, 1)
        }
    }

    fn add_weighted(&mut self, entry: &[u8]) -> Result<(), Fault> {
        let (weight, name) = match entry.iter().position(|&byte| byte == b',') {
            Some(comma) => (
                entry.get(..comma).unwrap_or_default(),
                entry.get(comma + 1..).unwrap_or_default(),
            ),
            None => (entry, [].as_slice()),
        };
        let weight = std::str::from_utf8(weight)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .filter(|&weight| weight >= 1)
            .ok_or_else(|| Fault::new("input weight must be a positive integer"))?;
        match name {
            [b'~', rest @ ..] if matches!(rest, [] | [b'/', ..]) => {
                let home = std::env::var_os("HOME").unwrap_or_default();
                self.add(&[home.as_encoded_bytes(), rest].concat(), weight)
            }
            _ => self.add(name, weight),
        }
    }

    fn add(&mut self, name: &[u8], weight: u64) -> Result<(), Fault> {
        if name == STDIN {
            self.push(name, weight);
            return Ok(());
        }
        let path = path_from_bytes(name);
        match fs::metadata(&path) {
            Err(_) => return Err(Fault::of(name, NOT_FOUND)),
            Ok(metadata) if metadata.is_file() => self.push(name, weight),
            Ok(metadata) if metadata.is_dir() => self
                .add_folder(&path, weight, 0)
                .map_err(|error| Fault::io(name, &error))?,
            // LLVM skips special files, such as pipes and devices.
            Ok(_) => {}
        }
        Ok(())
    }

    /// Adds all files below a folder, in the order in which the system lists them.
    fn add_folder(&mut self, folder: &Path, weight: u64, depth: usize) -> io::Result<()> {
        if depth > MOST_FOLDERS {
            return Err(io::Error::other("Too many levels of symbolic links"));
        }
        for entry in fs::read_dir(folder)? {
            let path: PathBuf = entry?.path();
            match fs::metadata(&path) {
                Ok(metadata) if metadata.is_file() => {
                    self.push(path.as_os_str().as_encoded_bytes(), weight);
                }
                Ok(metadata) if metadata.is_dir() => self.add_folder(&path, weight, depth + 1)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, name: &[u8], weight: u64) {
        self.files.push(InputFile {
            name: name.to_vec(),
            weight,
            text: String::from_utf8_lossy(name).into_owned(),
        });
    }

    /// Reads standard input if it is among the inputs. A read error is reported later, when this input is opened.
    pub fn read_stdin(&mut self, session: &Session<'_>) {
        if self.files.iter().any(|file| file.name == STDIN) {
            self.stdin = Some(session.read_stdin());
        }
    }

    /// Returns the indexes of the inputs that LLVM treats as heap profiles, and the indexes of all other inputs. LLVM
    /// treats raw dumps, and text that begins like YAML, as heap profiles. An input that cannot be read is among the
    /// others; the merge reports it.
    pub fn split_heap_profiles(&self) -> (Vec<usize>, Vec<usize>) {
        (0..self.files.len()).partition(|&index| self.is_heap_profile(index).unwrap_or(false))
    }

    fn is_heap_profile(&self, index: usize) -> io::Result<bool> {
        let Some(file) = self.files.get(index) else {
            return Ok(false);
        };
        let is = |head: &[u8]| detect(head) == FileKind::MemProfRaw || yaml::is_yaml(head);
        if file.name == STDIN {
            let mut scratch = Vec::new();
            return Ok(is(self.open(index, &mut scratch)?.as_ref()));
        }
        let mut head = [0; 8];
        let read = fs::File::open(path_from_bytes(&file.name))?.read(&mut head)?;
        Ok(is(head.get(..read).unwrap_or_default()))
    }

    /// Returns the first `count` inputs.
    pub fn first(&self, count: usize) -> FirstInputs<'_> {
        FirstInputs(self, count)
    }

    /// Removes the inputs with these indexes.
    pub fn remove(&mut self, indexes: &[usize]) {
        let mut index = 0;
        self.files.retain(|_| {
            index += 1;
            !indexes.contains(&(index - 1))
        });
    }
}

impl Inputs for InputList {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn name(&self, index: usize) -> std::borrow::Cow<'_, str> {
        self.files.get(index).map_or("", |file| &file.text).into()
    }

    fn weight(&self, index: usize) -> Weight {
        let file = self.files.get(index);
        file.map_or(Weight::ONE, |file| Weight::integer(file.weight))
    }

    fn open<'s>(&'s self, index: usize, scratch: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        let Some(file) = self.files.get(index) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if file.name == STDIN {
            return match &self.stdin {
                Some(Ok(bytes)) => Ok(InputData::Borrowed(bytes)),
                Some(Err(error)) => Err(error.kind().into()),
                None => Err(io::ErrorKind::NotFound.into()),
            };
        }
        open_stored(&path_from_bytes(&file.name), scratch)
    }

    fn hold(&self, index: usize) -> io::Result<InputData<'_>> {
        match self.files.get(index) {
            Some(file) if file.name != STDIN => hold_stored(&path_from_bytes(&file.name)),
            _ => self.open(index, &mut Vec::new()),
        }
    }
}

/// The first inputs of a list. The first field is the list, the second field is the number of inputs to use.
pub struct FirstInputs<'l>(&'l InputList, usize);

impl Inputs for FirstInputs<'_> {
    fn len(&self) -> usize {
        self.1
    }

    fn name(&self, index: usize) -> std::borrow::Cow<'_, str> {
        self.0.name(index)
    }

    fn weight(&self, index: usize) -> Weight {
        self.0.weight(index)
    }

    fn open<'s>(&'s self, index: usize, scratch: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        self.0.open(index, scratch)
    }
}
