//! Examines many files: those that are named, and the profiles in folders and archives.
use super::examine::{Diagnosis, Verdict, examine, unreadable};
use super::groups::Counts;
use super::what::Advice;
use profkit_data::ForeignFile;
use profkit_data::detect::{FileKind, detect};
use profkit_data::stored::expand_front;
use profkit_merge::files::{InputFile, InputList, InputNote, ListError, MissingInput};
use profkit_merge::{Inputs, Threads};
use rustc_hash::FxHashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The number of files that each thread examines before their diagnoses are passed on. A larger number costs memory,
/// because all diagnoses of a batch are kept until the last file of the batch is examined.
const BATCH_PER_THREAD: usize = 16;

/// The number of bytes at the start of a compressed file that are expanded to find out whether it is a profile.
const FRONT: u64 = 64 << 10;

/// The files that are to be examined.
#[derive(Debug)]
pub struct Survey {
    list: InputList,
    /// The paths that the user named. Files at other paths are examined only if they look like profiles.
    named: FxHashSet<PathBuf>,
    missing: Vec<MissingInput>,
}

/// A function that suggests what the user can do about a file that cannot be opened. `None` if there is no suggestion.
pub type Hint<'a> = &'a (dyn Fn(&Path, &io::Error) -> Option<String> + Sync);

impl Survey {
    /// Finds the files. Each path may be a file, a folder, an archive, a pattern such as `runs/*.profraw`, or `-` for
    /// standard input.
    pub fn new(paths: &[PathBuf]) -> Self {
        let mut named = FxHashSet::default();
        let mut missing = Vec::new();
        let mut found: Vec<OsString> = Vec::new();
        for path in paths.iter().filter(|path| named.insert((*path).clone())) {
            let path = [path.clone().into_os_string()];
            match InputList::collect(&path, &[], None) {
                Ok(_) => found.extend(path),
                Err(error) => missing.extend(problems(error)),
            }
        }
        // Each of these paths existed when it was checked, but may have disappeared since then.
        let list = InputList::collect(&found, &[], None).unwrap_or_else(|error| {
            missing.extend(problems(error));
            InputList::default()
        });
        Survey {
            list,
            named,
            missing,
        }
    }

    /// The number of files that were found. Their contents have not been examined yet.
    pub fn len(&self) -> usize {
        self.list.files.len()
    }

    /// Whether no file was found.
    pub fn is_empty(&self) -> bool {
        self.list.files.is_empty()
    }

    /// Returns the notes about paths that are left out. Such a path is in a named folder, and is neither a file nor a
    /// link to a file.
    pub fn notes(&self) -> impl Iterator<Item = &InputNote> {
        let notes = self.list.notes.iter();
        notes.filter(|note| {
            matches!(
                note,
                InputNote::PassedOver { .. } | InputNote::MorePassedOver(_)
            )
        })
    }

    /// Examines all files with several threads. `each` gets the diagnoses in the order of the files; paths that do not
    /// exist come last. The thread that has examined a file calls `done` with the size of the file.
    pub fn examine(
        &self,
        threads: &Threads,
        hint: Hint<'_>,
        done: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(&str, Diagnosis) -> io::Result<()>,
    ) -> io::Result<Counts> {
        let mut counts = Counts::default();
        let mut report = |name: &str, diagnosis: Diagnosis| {
            counts.add(diagnosis.verdict);
            each(name, diagnosis)
        };
        let mut passed_over = 0;
        let batch = BATCH_PER_THREAD * threads.count();
        for start in (0..self.len()).step_by(batch) {
            let indexes = (start..self.len().min(start + batch)).collect();
            let diagnoses = threads.map(indexes, |index| {
                let diagnosis = self.one(index, hint);
                let size = diagnosis.as_ref().and_then(|diagnosis| diagnosis.size);
                done(size.unwrap_or(0));
                diagnosis
            });
            for (file, diagnosis) in self.list.files.iter().skip(start).zip(diagnoses) {
                match diagnosis {
                    Some(diagnosis) => report(&file.name, diagnosis)?,
                    None => passed_over += 1,
                }
            }
        }
        for note in &self.list.notes {
            let (name, problem, hint) = match note {
                InputNote::DamagedArchive {
                    name,
                    problem,
                    hint,
                    ..
                } => (name, problem.as_str(), *hint),
                InputNote::EmptyArchive { name } => (
                    name,
                    "the archive holds no files",
                    "put profiles into it, or give another file",
                ),
                _ => continue,
            };
            let problem = io::Error::other(problem);
            report(name, unreadable(&problem, Some(hint.to_owned())))?;
        }
        for missing in &self.missing {
            let advice = hint(Path::new(&missing.name), &missing.error);
            report(&missing.name, unreadable(&missing.error, advice))?;
        }
        counts.passed_over = passed_over;
        Ok(counts)
    }

    /// Examines one file; `None` if the user did not name the file and it does not look like a profile.
    fn one(&self, index: usize, hint: Hint<'_>) -> Option<Diagnosis> {
        let file = self.list.files.get(index)?;
        let is_named = !file.is_member() && self.named.contains(&file.path);
        if !is_named && !file.is_member() && !is_candidate(&file.path) {
            return None;
        }
        let found = match self.list.open(index, &mut Vec::new()) {
            Ok(data) => {
                let bytes: &[u8] = data.as_ref();
                if file.is_member() && !has_extension(member_path(file)) && !begins_like(bytes) {
                    return None;
                }
                let mut diagnosis = examine(bytes);
                if let Some(problem) = data.problem() {
                    diagnosis.cut(problem);
                }
                if !self.list.can_reopen(index) {
                    // A pipe can be read only once, and it has been read.
                    diagnosis.next.clear();
                }
                if file.is_member() {
                    // The suggested commands accept the archive, but not a single file in it.
                    let is_sound = diagnosis.verdict == Verdict::Sound;
                    diagnosis.next.clear();
                    let next = is_sound.then_some(Advice::MergeArchive);
                    diagnosis
                        .next
                        .extend(next.filter(|_| diagnosis.what.is_merged()));
                }
                diagnosis
            }
            Err(error) => unreadable(&error, hint(&file.path, &error)),
        };
        Some(found)
    }
}

/// The paths at which no files could be found, with the reasons.
fn problems(error: ListError) -> Vec<MissingInput> {
    let (name, error) = match error {
        ListError::Missing(missing) => return missing,
        ListError::Folder { path, error } => (profkit_data::path_text(&path), error),
        other => (String::new(), io::Error::other(other)),
    };
    vec![MissingInput {
        at: None,
        name,
        error,
    }]
}

/// The path of a member in its archive.
fn member_path(file: &InputFile) -> &Path {
    let name = file.name.rsplit_once('!').map_or("", |(_, member)| member);
    Path::new(name)
}

/// Whether a file in a folder may be a profile. Every file with the extension of a profile is accepted; another file is
/// accepted if it begins with the magic of a profile.
pub(crate) fn is_candidate(path: &Path) -> bool {
    if has_extension(path) {
        return true;
    }
    let mut head = Vec::new();
    let file = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)
        .and_then(|_| File::open(path).ok());
    let Some(mut file) = file else {
        // A folder stays in the list, and so does a file that cannot be opened: the caller then reports it.
        return true;
    };
    if file.by_ref().take(64).read_to_end(&mut head).is_err() {
        return false;
    }
    let compressed = matches!(
        detect(&head),
        FileKind::Foreign(ForeignFile::Gzip | ForeignFile::Zstd | ForeignFile::Xz)
    );
    if compressed && file.take(FRONT).read_to_end(&mut head).is_ok() {
        let front = expand_front(&head).ok().flatten();
        return front.is_some_and(|(bytes, _)| begins_like(&bytes));
    }
    begins_like(&head)
}

/// Whether a file begins with the magic of a profile. Text profiles and MIP maps have no magic, so only their extension
/// shows what they are.
fn begins_like(head: &[u8]) -> bool {
    let kind = detect(head.get(..64).unwrap_or(head));
    kind.family().is_some() && !kind.is_text() && kind != FileKind::MipMap
}

/// Whether a file has the extension of a profile. An extension of a compressed file may follow, as in `a.profraw.gz`.
fn has_extension(path: &Path) -> bool {
    const PROFILES: [&str; 8] = [
        "afdo",
        "profraw",
        "profdata",
        "proftext",
        "memprofraw",
        "mipraw",
        "mipmap",
        "mip",
    ];
    let is_one = |path: &Path, known: &[&str]| {
        let extension = path.extension();
        extension.is_some_and(|extension| known.iter().any(|known| extension == *known))
    };
    let stem = path.file_stem().map_or(Path::new(""), Path::new);
    is_one(path, &PROFILES) || is_one(path, &["gz", "zst", "xz"]) && is_one(stem, &PROFILES)
}
