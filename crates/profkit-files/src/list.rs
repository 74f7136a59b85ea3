//! Collects the inputs of a merge (files, folders, archives, lists of files, weights) into a flat list of files.
mod error;
mod file;
mod given;
mod objects;

pub use error::{ListError, MissingInput};
pub use given::{GivenInput, InputSource};

use crate::archive::ArchiveFile;
use crate::candidate::{may_be_profile, member_may_be_profile};
use crate::clash::{id_of, may_become_report, same_file};
use crate::identity::{self, portable_name};
use crate::input::{archive_of, expanded, expanded_slice};
use crate::note::InputNote;
use crate::remote::{self, Object, Prefetch};
use crate::walk::{FileId, Walk, matches_of};
use crate::{InputData, Inputs, STDIN_NAME, Weight, hold_file, is_stdio, open_file, read_into};
use file::read_list;
use given::Memory;
use profkit_data::detect::{FileKind, detect};
use profkit_data::list::{parse_list, split_weight};
use profkit_data::stored::{ArchiveFormat, MemberError};
use profkit_data::{from_printable, path_from_bytes};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// The maximum number of notes of each kind about repeated or left-out files. Further ones are only counted.
const MOST_REPEATED: usize = 10;

/// The maximum number of inputs, as of a part of a merge. Each takes some hundred bytes.
const MOST_INPUTS: usize = if cfg!(test) { 1000 } else { 1 << 22 };

/// The maximum number of names in the note about files that are no profiles.
const MOST_SKIPPED: usize = 3;

/// One file among the inputs of a merge.
#[derive(Clone, Debug, PartialEq)]
pub struct InputFile {
    /// The path of the file; `-` is standard input.
    pub path: PathBuf,
    /// The name of the file in messages.
    pub name: String,
    /// The factor that multiplies the counts of the file.
    pub weight: Weight,
    /// What identifies the file wherever it is merged ([`Inputs::id`]). `None` stands for this file at this path of this
    /// machine.
    pub id: Option<String>,
    /// How often the list has the file before: those that are named twice are counted twice.
    again: u64,
    /// For a member of an archive: the index of the archive and that of the member. `path` is then that of the archive.
    member: Option<(usize, usize)>,
    /// The index of the bytes of an input in memory. `path` is then `-`.
    memory: Option<usize>,
    /// For an object in an object store: its content as the list saw it.
    object: Option<Object>,
}

impl InputFile {
    fn new(path: PathBuf, weight: Weight) -> Self {
        let name = if is_stdio(&path) {
            STDIN_NAME.to_owned()
        } else {
            profkit_data::path_text(&path)
        };
        InputFile {
            path,
            name,
            weight,
            id: None,
            again: 0,
            member: None,
            memory: None,
            object: None,
        }
    }

    /// Whether the file is a member of an archive.
    pub fn is_member(&self) -> bool {
        self.member.is_some()
    }
}

/// All input files of a merge, in the order in which they were named. The files of a folder are sorted by path.
///
/// ```
/// use profkit_files::{InputList, Inputs};
/// # let folder = tempfile::tempdir()?;
/// # let runs = folder.path();
///
/// std::fs::write(runs.join("a.profraw"), b"first")?;
/// std::fs::write(runs.join("b.profraw"), b"second")?;
/// // As on a command line: a file with a weight, then a folder. A file that is found twice is used once.
/// let weighted = format!("2,{}", runs.join("b.profraw").display());
/// let named = [weighted.into(), runs.into()];
/// let inputs = InputList::collect(&named, &[], None)?;
/// assert_eq!(inputs.len(), 2);
/// assert!(inputs.name(0).ends_with("b.profraw"));
/// assert_eq!(inputs.open(1, &mut Vec::new())?.as_ref(), b"first");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct InputList {
    /// The input files.
    pub files: Vec<InputFile>,
    /// Unusual facts about the inputs that do not prevent the merge.
    pub notes: Vec<InputNote>,
    seen: FxHashMap<FileId, usize>,
    counted: Vec<Counted>,
    same: Vec<(PathBuf, PathBuf)>,
    folders: Vec<PathBuf>,
    output: Option<FileId>,
    missing: Vec<MissingInput>,
    stdin_taken: bool,
    stdin: OnceLock<io::Result<Vec<u8>>>,
    prefetch: OnceLock<Prefetch>,
    archives: Vec<ArchiveFile>,
    memory: Memory,
    /// The names of the files of folders and archives that are no profiles: the first ones, and the number of all.
    others: (Vec<String>, u64),
}

type Result<T, E = ListError> = std::result::Result<T, E>;

#[derive(Debug)]
struct Counted {
    path: PathBuf,
    times: u64,
    /// Whether the user named the file itself, and not only a folder that contains the file.
    named: bool,
    files: Range<usize>,
}

impl InputList {
    /// Makes a list of the files at these paths, each with weight 1. `-` is standard input. If a path is given twice,
    /// the counts of the file are added twice. No file is opened here: if a path does not exist or is a folder, the
    /// merge reports the path and leaves it out. To read folders, use [`collect`](Self::collect).
    pub fn from_paths(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let mut known: FxHashMap<PathBuf, u64> = FxHashMap::default();
        let file = |path: PathBuf| {
            let times = known.entry(path.clone()).or_default();
            *times += 1;
            let again = *times - 1;
            InputFile {
                again,
                ..InputFile::new(path, Weight::ONE)
            }
        };
        InputList {
            files: paths.into_iter().map(Into::into).map(file).collect(),
            ..InputList::default()
        }
    }

    /// Collects the inputs named on the command line and in list files. An input is named by a path, or by
    /// `WEIGHT,PATH`. The path of a folder means all profiles in it and in its subfolders, including hidden files: what
    /// has the extension of a profile, and what is one by its content. The path of an archive means its members that are
    /// profiles. Other files are skipped, and one note says how many. `output` is the path of
    /// the merged profile: if an input folder contains a file at that path from an earlier run, that file is left out.
    ///
    /// # Errors
    /// An error if a list cannot be read or has an invalid line, if a weight is invalid, or if a named file does not
    /// exist.
    pub fn collect(named: &[OsString], lists: &[PathBuf], output: Option<&Path>) -> Result<Self> {
        let mut list = InputList::without(output);
        for text in named {
            let (path, weight) = split_weight(text, exists).map_err(ListError::Weight)?;
            list.add(InputFile::new(path, weight), None)?;
        }
        for path in lists {
            list.add_list(path)?;
        }
        list.collected()
    }

    /// An empty list to which a file at the path of the output will not be added from its folder.
    fn without(output: Option<&Path>) -> Self {
        let to_store = output.and_then(remote::uri).map(FileId::of_object);
        let output = output.and_then(|path| {
            let metadata = fs::metadata(path).ok().filter(Metadata::is_file)?;
            FileId::of(path, &metadata)
        });
        InputList {
            output: output.or(to_store),
            ..InputList::default()
        }
    }

    fn collected(mut self) -> Result<Self> {
        self.note_repeated();
        let (first, count) = &self.others;
        if *count > 0 {
            let (first, count) = (first.clone(), *count);
            self.notes.push(InputNote::NoProfiles { first, count });
        }
        if self.missing.is_empty() {
            return Ok(self);
        }
        Err(ListError::Missing(self.missing))
    }

    /// The number of files in the folders and archives that were skipped because they are no profiles.
    pub fn skipped(&self) -> u64 {
        self.others.1
    }

    fn skip(&mut self, name: String) {
        self.others.1 += 1;
        if self.others.0.len() < MOST_SKIPPED {
            self.others.0.push(name);
        }
    }

    /// Leaves out the file at the path of the report of this merge, if it was found in a folder and is an earlier
    /// report.
    pub fn leave_out_report(&mut self, report: &Path) {
        let Some(id) = id_of(report).filter(|_| may_become_report(report)) else {
            return;
        };
        let is_report = |file: &InputFile| {
            id_of(&file.path).is_some_and(|other| other == id) && same_file(&file.path, report)
        };
        let before = self.files.len();
        self.files.retain(|file| !is_report(file));
        if self.files.len() < before {
            let path = report.to_owned();
            self.notes.push(InputNote::ReportIsInput { path });
        }
    }

    /// Gives inputs the ids that a list states: `ID`, a tab, and the path or the name of an input in each line. Inputs that
    /// the list does not name keep their ids; lines about other files mean nothing. On Windows, `/` and `\` are the same.
    ///
    /// # Errors
    /// If the list cannot be read, or has a line of another form.
    pub fn read_ids(&mut self, list: &Path) -> Result<()> {
        let name = profkit_data::path_text(list);
        let mut buffer = Vec::new();
        let map = read_list(list, &name, &mut buffer)?;
        let text = String::from_utf8_lossy(map.as_deref().unwrap_or(&buffer));
        let mut ids = FxHashMap::default();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((id, path)) = line.split_once('\t').filter(|(id, _)| !id.is_empty()) else {
                return Err(ListError::IdLine {
                    at: format!("{name}:{}", number + 1),
                });
            };
            ids.insert(portable_name(path), id);
        }
        for file in &mut self.files {
            let id = ids.get(&portable_name(&file.name));
            file.id = id.map(|id| (*id).to_owned()).or(file.id.take());
        }
        Ok(())
    }

    fn add_list(&mut self, path: &Path) -> Result<()> {
        let name = if is_stdio(path) {
            self.take_stdin()?;
            STDIN_NAME.to_owned()
        } else {
            profkit_data::path_text(path)
        };
        let mut buffer = Vec::new();
        let map = read_list(path, &name, &mut buffer)?;
        let bytes = map.as_deref().unwrap_or(&buffer);
        // No path contains a zero byte, but every binary profile does: it is probably a profile.
        if bytes.contains(&0) {
            return Err(ListError::NotAList { name });
        }
        for entry in parse_list(bytes, exists) {
            let at = format!("{name}:{}", entry.line);
            match entry.input {
                Ok((path, weight)) => {
                    self.add(InputFile::new(as_printed(path), weight), Some(&at))?;
                    if self.files.len() + self.missing.len() > MOST_INPUTS {
                        return Err(ListError::TooMany { at });
                    }
                }
                Err(problem) => return Err(ListError::Line { at, problem }),
            }
        }
        Ok(())
    }

    fn take_stdin(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.stdin_taken, true) {
            return Err(ListError::StdinTwice);
        }
        Ok(())
    }

    /// Adds a file or folder. `at` is the line of the list file that named it; `None` for the command line.
    fn add(&mut self, input: InputFile, at: Option<&str>) -> Result<()> {
        if is_stdio(&input.path) {
            self.take_stdin()?;
            self.files.push(input);
            return Ok(());
        }
        if let Some(uri) = remote::uri(&input.path) {
            if let Err(error) = self.add_objects(&input, uri) {
                self.missing.push(MissingInput {
                    at: at.map(str::to_owned),
                    name: input.name,
                    error,
                });
            }
            return Ok(());
        }
        match fs::metadata(&input.path) {
            Ok(metadata) if metadata.is_dir() => self.add_folder(&input),
            Ok(metadata) => {
                let id = FileId::of(&input.path, &metadata);
                if id.is_some() && self.output == id {
                    self.notes.push(InputNote::OutputIsInput {
                        name: input.name.clone(),
                    });
                }
                self.add_file(input, id, true, false);
                Ok(())
            }
            Err(error) => {
                let mut matching = Vec::new();
                let added = if let Some((archive, member)) = archive_of(&input.path) {
                    self.add_member(&input, archive, member)
                } else {
                    let paths = matches_of(&input.path, error);
                    paths.map(|paths| matching.extend(paths))
                };
                if let Err(error) = added {
                    self.missing.push(MissingInput {
                        at: at.map(str::to_owned),
                        name: input.name,
                        error,
                    });
                }
                let mut matching = matching.into_iter();
                matching.try_for_each(|path| self.add(InputFile::new(path, input.weight), at))
            }
        }
    }

    /// Adds a file, unless the list has it under this or another path. `named` says that the user named the file and
    /// not its folder, `again` that the folder was named before: files that are named twice are added twice. The weight
    /// of a named file beats that of its folder.
    fn add_file(&mut self, input: InputFile, id: Option<FileId>, named: bool, again: bool) {
        let next = self.counted.len();
        let index = id.map_or(next, |id| *self.seen.entry(id).or_insert(next));
        let path = input.path.clone();
        if let Some(counted) = self.counted.get_mut(index) {
            let twice = named && counted.named && counted.path == path;
            if !(again || twice) {
                if named && !counted.named {
                    counted.named = true;
                    let files = self.files.get_mut(counted.files.clone());
                    let files = files.into_iter().flatten();
                    files.for_each(|file| file.weight = input.weight);
                }
                self.same.push((path, counted.path.clone()));
                return;
            }
            let again = counted.times;
            counted.times += 1;
            self.push_file(InputFile { again, ..input });
            return;
        }
        let start = self.files.len();
        self.push_file(input);
        self.counted.push(Counted {
            path,
            times: 1,
            named,
            files: start..self.files.len(),
        });
    }

    /// Adds a file, or the members of an archive. The merge reports what is wrong with a file that cannot be read.
    fn push_file(&mut self, input: InputFile) {
        let archive = if is_named_as_archive(&input.path) {
            match &input.object {
                Some(object) => remote::get(object)
                    .ok()
                    .and_then(|data| ArchiveFile::of(data).ok()),
                None => ArchiveFile::open(&input.path).ok().flatten(),
            }
        } else {
            None
        };
        let Some(archive) = archive else {
            self.files.push(input);
            return;
        };
        self.note_archive(&input.name, &archive);
        let number = self.archives.len();
        for (index, member) in archive.members().iter().enumerate() {
            let name = archive.member_name(&input.name, index);
            let read = || archive.read(index).ok();
            // An archive that is too deep in others is not skipped: the merge says that it is one.
            let is_archive = is_named_as_archive(Path::new(member));
            if !is_archive && !member_may_be_profile(member, read) {
                self.skip(name);
                continue;
            }
            self.files.push(InputFile {
                path: input.path.clone(),
                name,
                weight: input.weight,
                id: None,
                again: input.again,
                member: Some((number, index)),
                memory: None,
                object: None,
            });
        }
        self.archives.push(archive);
    }

    fn note_archive(&mut self, name: &str, archive: &ArchiveFile) {
        let named = |inner: &str| format!("{name}!{inner}");
        for problem in archive.problems() {
            self.notes.push(InputNote::DamagedArchive {
                name: problem.inner.as_deref().map_or(name.to_owned(), named),
                members: problem.members,
                problem: problem.error.to_string(),
                hint: problem.error.hint(),
            });
        }
        if archive.members().is_empty() && archive.problems().is_empty() {
            self.notes.push(InputNote::EmptyArchive {
                name: name.to_owned(),
            });
        }
        let repeated = archive.repeated();
        for (member, times) in repeated.iter().take(MOST_REPEATED) {
            self.notes.push(InputNote::RepeatedMember {
                name: named(member),
                times: *times,
            });
        }
        let more = repeated.len().saturating_sub(MOST_REPEATED) as u64;
        if more > 0 {
            self.notes.push(InputNote::MoreRepeatedMembers(more));
        }
    }

    /// Adds a member of an archive; if it is itself an archive, its members.
    fn add_member(&mut self, input: &InputFile, archive: &Path, member: &str) -> io::Result<()> {
        let mut known = self.files.iter().filter(|file| file.path == archive);
        let number = match known.find_map(|file| file.member) {
            Some((number, _)) => number,
            None => {
                let opened = ArchiveFile::open(archive)?;
                let not_one = || io::Error::other(MemberError::NotAnArchive);
                self.archives.push(opened.ok_or_else(not_one)?);
                self.archives.len() - 1
            }
        };
        let found = self.archives.get(number).ok_or(io::ErrorKind::NotFound)?;
        let inner = format!("{}!", member.strip_prefix("./").unwrap_or(member));
        let members = found.members().iter().enumerate();
        let inside = members.filter(|(_, name)| name.starts_with(&inner));
        let mut indexes: Vec<usize> = inside.map(|(index, _)| index).collect();
        if indexes.is_empty() {
            indexes.push(found.choose(Some(member))?);
        }
        for index in indexes {
            self.files.push(InputFile {
                path: archive.to_owned(),
                name: found.member_name(&profkit_data::path_text(archive), index),
                weight: input.weight,
                id: None,
                again: 0,
                member: Some((number, index)),
                memory: None,
                object: None,
            });
        }
        Ok(())
    }

    /// Makes notes about files that are named more than once, and about files that are left out because of links.
    fn note_repeated(&mut self) {
        let repeated = || {
            let counted = self.counted.iter();
            counted.filter(|counted| counted.times > 1 && !is_part(&counted.path))
        };
        let more = repeated().skip(MOST_REPEATED).count() as u64;
        let named = repeated().take(MOST_REPEATED);
        self.notes.extend(named.map(|counted| InputNote::Repeated {
            path: counted.path.clone(),
            times: counted.times,
        }));
        if more > 0 {
            self.notes.push(InputNote::MoreRepeated(more));
        }
        let same = std::mem::take(&mut self.same);
        let more = same.len().saturating_sub(MOST_REPEATED) as u64;
        let shown = same.into_iter().take(MOST_REPEATED);
        let note = |(path, other)| InputNote::Same { path, other };
        self.notes.extend(shown.map(note));
        if more > 0 {
            self.notes.push(InputNote::MoreSame(more));
        }
    }

    fn add_folder(&mut self, folder: &InputFile) -> Result<()> {
        let before = self.files.len() + self.same.len();
        let again = self.folders.contains(&folder.path);
        self.folders.push(folder.path.clone());
        let mut walk = Walk::default();
        walk.folder(&folder.path, 0)
            .map_err(|error| ListError::Folder {
                path: folder.path.clone(),
                error,
            })?;
        walk.follow_links();
        self.same.append(&mut walk.same);
        let more = walk.odd.len().saturating_sub(MOST_REPEATED) as u64;
        let odd = walk.odd.into_iter().take(MOST_REPEATED);
        let note = |(path, what)| InputNote::PassedOver { path, what };
        self.notes.extend(odd.map(note));
        if more > 0 {
            self.notes.push(InputNote::MorePassedOver(more));
        }
        for path in walk.found {
            let metadata = fs::metadata(&path).ok();
            let id = metadata.and_then(|metadata| FileId::of(&path, &metadata));
            if id.is_some() && self.output == id {
                self.notes.push(InputNote::OutputInFolder { path });
                continue;
            }
            if !is_named_as_archive(&path) && !may_be_profile(&path) {
                self.skip(profkit_data::path_text(&path));
                continue;
            }
            self.add_file(InputFile::new(path, folder.weight), id, false, again);
        }
        if self.files.len() + self.same.len() == before {
            self.notes.push(InputNote::EmptyFolder {
                name: folder.name.clone(),
            });
        }
        Ok(())
    }
}

/// Whether a file is a part of a merge, which counts once however often it is named.
fn is_part(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut head));
    read.is_ok() && matches!(detect(&head), FileKind::Part(_))
}

impl InputList {
    /// The first bytes of an input: `most`, or all. They are not decompressed.
    ///
    /// # Errors
    /// If the input cannot be opened or read, or is standard input.
    pub fn front(&self, index: usize, most: u64) -> io::Result<Vec<u8>> {
        let file = self.files.get(index).filter(|file| !is_stdio(&file.path));
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        if let Some(object) = &file.object {
            return remote::front(object, most);
        }
        let mut front = Vec::new();
        File::open(&file.path)?.take(most).read_to_end(&mut front)?;
        Ok(front)
    }

    /// When an input was written: the file, the archive or the object. `None` for standard input and bytes in memory.
    pub fn modified(&self, index: usize) -> Option<SystemTime> {
        let file = self.files.get(index).filter(|file| !is_stdio(&file.path))?;
        match &file.object {
            Some(object) => object.modified,
            None => fs::metadata(&file.path).ok()?.modified().ok(),
        }
    }

    fn prefetch(&self) -> &Prefetch {
        let objects = || self.files.iter().filter_map(|file| file.object.clone());
        self.prefetch
            .get_or_init(|| Prefetch::new(objects().collect()))
    }
}

fn is_named_as_archive(path: &Path) -> bool {
    path.file_name().is_some_and(ArchiveFormat::is_named_so)
}

/// A path of a list as it is meant. Commands that list files (`profkit doctor --group`) print control characters of names
/// as escapes; such a line means the file with these characters, if there is one and no file has the text as its name.
fn as_printed(path: PathBuf) -> PathBuf {
    match path.to_str() {
        Some(text) if text.contains('\\') && !exists(path.as_os_str()) => {
            let meant = path_from_bytes(&from_printable(text));
            if exists(meant.as_os_str()) {
                meant
            } else {
                path
            }
        }
        _ => path,
    }
}

fn exists(path: &OsStr) -> bool {
    remote::uri(Path::new(path)).is_some() || fs::metadata(path).is_ok()
}

/// A selection of the inputs of another [`Inputs`] object.
pub struct Subset<'a> {
    inputs: &'a dyn Inputs,
    indexes: Vec<usize>,
}

impl fmt::Debug for Subset<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subset").field(&self.indexes).finish()
    }
}

impl<'a> Subset<'a> {
    /// Selects the inputs with these indexes from another [`Inputs`] object.
    pub fn new(inputs: &'a dyn Inputs, indexes: Vec<usize>) -> Self {
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

    fn name(&self, index: usize) -> Cow<'_, str> {
        self.inputs.name(self.index(index))
    }

    fn weight(&self, index: usize) -> Weight {
        self.inputs.weight(self.index(index))
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.inputs.id(self.index(index))
    }

    fn open<'s>(&'s self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        self.inputs.open(self.index(index), buffer)
    }

    fn hold(&self, index: usize) -> io::Result<InputData<'_>> {
        self.inputs.hold(self.index(index))
    }

    fn can_reopen(&self, index: usize) -> bool {
        self.inputs.can_reopen(self.index(index))
    }

    fn first_bytes(&self, index: usize, most: usize) -> io::Result<Vec<u8>> {
        self.inputs.first_bytes(self.index(index), most)
    }

    fn look_at(&self, index: usize, look: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.inputs.look_at(self.index(index), look)
    }
}

impl Inputs for InputList {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn name(&self, index: usize) -> Cow<'_, str> {
        self.files.get(index).map_or("", |file| &file.name).into()
    }

    fn weight(&self, index: usize) -> Weight {
        self.files
            .get(index)
            .map_or(Weight::ONE, |file| file.weight)
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        let file = self.files.get(index)?;
        if let Some(id) = &file.id {
            return Some(id.into());
        }
        if is_stdio(&file.path) {
            return None;
        }
        let mut id = match remote::uri(&file.path) {
            Some(uri) => uri.to_owned(),
            None => identity::of_file(&file.path)?,
        };
        if let Some((_, member)) = file.member {
            id.push_str(&format!("!{member}"));
        }
        if file.again > 0 {
            id.push_str(&format!("#{}", file.again));
        }
        Some(id.into())
    }

    fn open<'s>(&'s self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        let Some(file) = self.files.get(index) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if let Some(memory) = file.memory {
            let bytes = self.memory.0.get(memory).ok_or(io::ErrorKind::NotFound)?;
            return expanded_slice((**bytes).as_ref());
        }
        if is_stdio(&file.path) {
            // The bytes of standard input are kept, so that it can be opened again like a file.
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
        if let Some((archive, member)) = file.member {
            let archive = self.archives.get(archive);
            let archive = archive.ok_or(io::ErrorKind::NotFound)?;
            return Ok(archive.read(member)?);
        }
        match &file.object {
            Some(object) => expanded(self.prefetch().take(object)?),
            None => open_file(&file.path, buffer),
        }
    }

    fn hold(&self, index: usize) -> io::Result<InputData<'_>> {
        match self.files.get(index) {
            Some(file)
                if !is_stdio(&file.path) && file.member.is_none() && file.object.is_none() =>
            {
                hold_file(&file.path)
            }
            _ => self.open(index, &mut Vec::new()),
        }
    }

    fn first_bytes(&self, index: usize, most: usize) -> io::Result<Vec<u8>> {
        let file = self.files.get(index).ok_or(io::ErrorKind::NotFound)?;
        if file.member.is_none() && !is_stdio(&file.path) && self.can_reopen(index) {
            return self.front(index, most as u64);
        }
        let whole = self.open(index, &mut Vec::new())?;
        Ok(whole.as_ref().iter().take(most).copied().collect())
    }

    fn can_reopen(&self, index: usize) -> bool {
        let file = self.files.get(index);
        file.is_some_and(|file| {
            is_stdio(&file.path)
                || remote::uri(&file.path).is_some()
                || fs::metadata(&file.path).is_ok_and(|found| found.is_file())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::file::MOST_LIST_BYTES;
    use super::*;

    #[test]
    fn an_earlier_report_among_many_files_is_no_input() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.json");
        fs::write(&report, "{\n  \"schema\": \"profkit-merge\"\n}").unwrap();
        fs::write(folder.path().join("run"), "run").unwrap();
        let all = folder.path().join("r*");
        let mut list = InputList::collect(&[all.into()], &[], None).unwrap();
        list.leave_out_report(&report);
        assert_eq!((list.files.len(), list.notes.len()), (1, 1));
        assert!(list.files[0].path.ends_with("run"));
        // A profile is never left out: `check_outputs` refuses a report that would replace it.
        list.leave_out_report(&folder.path().join("run"));
        assert_eq!(list.files.len(), 1);
    }

    #[test]
    fn lists_without_an_end_are_not_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let collected = |list: &str| {
            let error = InputList::collect(&[], &[path(list)], None).unwrap_err();
            error
                .to_string()
                .replace(&*folder.path().to_string_lossy(), "T")
        };
        let long = File::create(path("long")).unwrap();
        long.set_len(MOST_LIST_BYTES + 1).unwrap();
        let expected = "T/long: the list is too long: expected at most 128000 bytes";
        assert_eq!(collected("long"), expected);
        let mut ids = InputList::default();
        let error = ids.read_ids(&path("long")).unwrap_err();
        assert!(matches!(error, ListError::TooLong { .. }), "{error}");
        // What becomes longer when it is decompressed, and what has no size.
        let text = vec![b'#'; 200_000];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gzip, &text).unwrap();
        fs::write(path("long.gz"), gzip.finish().unwrap()).unwrap();
        assert!(collected("long.gz").starts_with("T/long.gz: the list is too long"));
        let endless = InputList::collect(&[], &["/dev/zero".into()], None).unwrap_err();
        assert!(matches!(endless, ListError::TooLong { .. }), "{endless}");
        fs::write(path("run"), "run").unwrap();
        let line = format!("{}\n", path("run").display());
        fs::write(path("many"), line.repeat(MOST_INPUTS)).unwrap();
        let all = InputList::collect(&[], &[path("many")], None).unwrap();
        assert_eq!(all.files.len(), MOST_INPUTS);
        fs::write(path("more"), line.repeat(MOST_INPUTS + 5)).unwrap();
        let expected = "T/more:1001: there are too many inputs: expected at most 1000";
        assert_eq!(collected("more"), expected);
    }

    #[test]
    fn folders_are_walked_sorted_without_their_output_and_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("b/c")).unwrap();
        for name in [
            "z.profraw",
            "b/c/x.bin",
            "b/y.mip.gz",
            "b/z.c",
            "out",
            ".out.x.tmp",
        ] {
            let bytes: &[u8] = match name {
                "b/c/x.bin" => b"main\n1\n1\n5\n",
                _ => b"int main() {}",
            };
            fs::write(root.join(name), bytes).unwrap();
        }
        let list = InputList::collect(&[root.into()], &[], Some(&root.join("out"))).unwrap();
        let names: Vec<_> = list
            .files
            .iter()
            .map(|file| file.path.strip_prefix(root).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["b/c/x.bin", "b/y.mip.gz", "z.profraw"]);
        let [_, InputNote::NoProfiles { first, count: 1 }] = &list.notes[..] else {
            panic!("{:?}", list.notes);
        };
        assert!(first[0].ends_with("b/z.c"), "{first:?}");
        assert!(
            matches!(&list.notes[0], InputNote::OutputInFolder { path } if path.ends_with("out"))
        );
    }
}
