//! Examines many files: those that are named, and the profiles in folders and archives.
use super::examine::{Diagnosis, Verdict, examine, unreadable};
use super::groups::Counts;
use super::what::{Advice, What};
use crate::manifest::Manifest;
use profkit_data::ErrorKind;
use profkit_data::instr::Target;
use profkit_merge::files::{Input, system_text};
use profkit_merge::files::{InputList, InputNote, ListError, MissingInput};
use profkit_merge::{Inputs, Threads};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// The number of files that each thread examines before their diagnoses are passed on. A larger number costs memory,
/// because all diagnoses of a batch are kept until the last file of the batch is examined.
const BATCH_PER_THREAD: usize = 16;

/// The files that are to be examined.
#[derive(Debug)]
pub struct Survey {
    list: InputList,
    missing: Vec<MissingInput>,
}

/// A function that suggests what the user can do about a file that cannot be opened. `None` if there is no suggestion.
pub type Hint<'a> = &'a (dyn Fn(&Path, &io::Error) -> Option<String> + Sync);

impl Survey {
    /// Finds the files. Each path may be a file, a folder, an archive, a pattern such as `runs/*.profraw`, or `-` for
    /// standard input.
    pub fn new(paths: &[PathBuf]) -> Self {
        let mut seen = BTreeSet::new();
        let paths: Vec<OsString> = paths
            .iter()
            .filter(|path| seen.insert(*path))
            .map(|path| path.clone().into_os_string())
            .collect();
        if let Ok(list) = InputList::collect(&paths, &[], None) {
            let missing = Vec::new();
            return Survey { list, missing };
        }
        let mut missing = Vec::new();
        let mut found = Vec::new();
        for path in paths {
            let path = [path];
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
        Survey { list, missing }
    }

    /// The number of files that were found. Their contents have not been examined yet.
    pub fn len(&self) -> usize {
        self.list.files.len()
    }

    /// Whether no file was found.
    pub fn is_empty(&self) -> bool {
        self.list.files.is_empty()
    }

    /// Returns the notes about paths that are left out: what is neither a file nor a link to a file, and members of an
    /// archive that a later member replaces.
    pub fn notes(&self) -> impl Iterator<Item = &InputNote> {
        let notes = self.list.notes.iter();
        notes.filter(|note| {
            matches!(
                note,
                InputNote::PassedOver { .. }
                    | InputNote::MorePassedOver(_)
                    | InputNote::RepeatedMember { .. }
                    | InputNote::MoreRepeatedMembers(_)
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
                if let Some(diagnosis) = diagnosis {
                    report(&file.name, diagnosis)?;
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
        counts.passed_over = self.list.skipped();
        Ok(counts)
    }

    fn one(&self, index: usize, hint: Hint<'_>) -> Option<Diagnosis> {
        let file = self.list.files.get(index)?;
        let found = match self.list.open(index, &mut Vec::new()) {
            Ok(data) => {
                let bytes: &[u8] = data.as_ref();
                let mut diagnosis = examine(bytes);
                if matches!(diagnosis.what, What::Instr(_) | What::BrokenRaw(_)) {
                    diagnosis.target = Target::of_file(&file.name);
                }
                if let Some(problem) = data.problem() {
                    diagnosis.cut(problem);
                }
                if !self.list.can_reopen(index) {
                    // A pipe can be read only once, and it has been read.
                    diagnosis.next.clear();
                }
                if !file.is_member() && diagnosis.what.is_merged() {
                    add_manifest(&mut diagnosis, &file.path, bytes);
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

/// Compares a profile with the manifest beside it, if there is one.
fn add_manifest(diagnosis: &mut Diagnosis, profile: &Path, bytes: &[u8]) {
    let path = Manifest::path_beside(profile);
    if !path.is_file() {
        return;
    }
    let name = profkit_data::path_text(&path);
    match Input::open(&path) {
        Ok(manifest) => diagnosis.compare(&name, manifest.bytes(), bytes),
        Err(error) => diagnosis.add(ErrorKind::Unsupported.error(format!(
            "{name}: the manifest cannot be read: {}",
            system_text(&error.error)
        ))),
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
