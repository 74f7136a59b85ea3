//! Collects the diagnoses of files in groups. The files of a group are alike.
use super::examine::{Diagnosis, Verdict};
use super::what::{Advice, MipContents, What};
use profkit_data::ids::BuildId;
use profkit_data::{Error, ErrorKind};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The largest number of files whose names and faults a group keeps. Raising this limit costs memory for each group.
const MOST_KEPT: usize = 10;

/// The largest number of groups for which a pattern such as `runs/*.profraw` is searched. The report names a group by
/// its pattern. The number is limited because each search takes time.
const MOST_PATTERNS: usize = 32;
/// The largest number of folder entries that are examined to find the pattern of one group.
const MOST_LOOKED_AT: u64 = 100_000;

/// Characters that have a meaning in patterns, or that separate an archive from its member.
const SPECIAL: [char; 4] = ['*', '?', '[', '!'];

/// The number of files for each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of files without faults.
    pub sound: u64,
    /// The number of damaged files.
    pub damaged: u64,
    /// The number of profiles of versions that profkit does not know.
    pub unsupported: u64,
    /// The number of profiles that hold only counters, whose functions are in their programs.
    pub needs_program: u64,
    /// The number of files that are not profiles.
    pub foreign: u64,
    /// The number of files that do not exist or cannot be opened.
    pub unreadable: u64,
    /// The number of skipped files. A file in a folder or archive is skipped if it does not look like a profile.
    pub passed_over: u64,
}

impl Counts {
    /// Counts a file.
    pub fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Sound => &mut self.sound,
            Verdict::Damaged => &mut self.damaged,
            Verdict::Unsupported => &mut self.unsupported,
            Verdict::NeedsProgram => &mut self.needs_program,
            Verdict::Foreign => &mut self.foreign,
            Verdict::Unreadable => &mut self.unreadable,
        } += 1;
    }

    /// The number of files that were examined.
    pub fn files(&self) -> u64 {
        self.sound
            + self.needs_program
            + self.damaged
            + self.unsupported
            + self.foreign
            + self.unreadable
    }

    /// The number of files that are damaged, unreadable or not profiles.
    pub fn bad(&self) -> u64 {
        self.damaged + self.foreign + self.unreadable
    }
}

/// One file of a group.
#[derive(Clone, Debug)]
pub struct Member {
    /// The name of the file.
    pub name: String,
    /// The number of functions that can be read from the file.
    pub functions: u64,
    /// The number of functions that the file states; `None` if the file states no number.
    pub functions_stated: Option<u64>,
    /// The first fault of the file; `None` if the file has no fault.
    pub fault: Option<Error>,
    /// The number of all faults of the file.
    pub faults: u64,
}

/// A group of files that are alike: their kind, version, build, target, verdict and first fault are the same.
#[derive(Clone, Debug)]
pub struct Group {
    /// The diagnosis of the first file.
    pub first: Diagnosis,
    /// The number of files.
    pub files: u64,
    /// The first files.
    pub members: Vec<Member>,
    /// The name of the last file of the group.
    pub last: String,
    /// The names of all files. Set by [`Groups::finish`].
    pub names: Vec<Box<str>>,
    /// The number of the group in the order in which groups are shown, from 1. Set by [`Groups::finish`].
    pub number: usize,
    /// The size of all files in bytes.
    pub bytes: u64,
    /// The smallest and the largest number of functions in a file of the group.
    pub functions: (u64, u64),
    /// If the files of this group are damaged: the name of a sound profile of the same build, if there is one.
    pub complete: Option<String>,
    /// A pattern that matches all files of this group, and no other files except a few that are damaged, unreadable or
    /// not profiles. `None` if there is no such pattern.
    pub pattern: Option<String>,
}

/// Groups of files, in the order of their first files.
#[derive(Debug, Default)]
pub struct Groups {
    groups: Vec<Group>,
    by_build: FxHashMap<Vec<BuildId>, Vec<usize>>,
    files: Vec<(Box<str>, usize)>,
}

impl Groups {
    /// Adds a file to its group.
    pub fn add(&mut self, name: &str, diagnosis: Diagnosis) {
        let same = self
            .by_build
            .entry(diagnosis.binary_ids.clone())
            .or_default();
        let found = same.iter().copied().find(|&index| {
            let group = self.groups.get(index);
            group.is_some_and(|group| is_alike(&group.first, &diagnosis))
        });
        let member = |diagnosis: &Diagnosis| Member {
            name: name.to_owned(),
            functions: diagnosis.functions,
            functions_stated: diagnosis.functions_stated,
            fault: diagnosis.damage.first.first().cloned(),
            faults: diagnosis.damage.count,
        };
        let number = found.unwrap_or(self.groups.len());
        self.files.push((name.into(), number));
        let Some(group) = self.groups.get_mut(number) else {
            same.push(self.groups.len());
            self.groups.push(Group {
                files: 1,
                members: vec![member(&diagnosis)],
                last: name.to_owned(),
                names: Vec::new(),
                number: 0,
                bytes: diagnosis.size.unwrap_or(0),
                functions: (diagnosis.functions, diagnosis.functions),
                complete: None,
                pattern: None,
                first: diagnosis,
            });
            return;
        };
        group.files += 1;
        group.bytes = group.bytes.saturating_add(diagnosis.size.unwrap_or(0));
        let (least, most) = group.functions;
        group.functions = (
            least.min(diagnosis.functions),
            most.max(diagnosis.functions),
        );
        if group.members.len() < MOST_KEPT {
            group.members.push(member(&diagnosis));
        }
        name.clone_into(&mut group.last);
    }

    /// Returns the groups, sorted by verdict: sound, unsupported, damaged, foreign, unreadable. Sets
    /// [`complete`](Group::complete), [`pattern`](Group::pattern), [`names`](Group::names) and
    /// [`number`](Group::number) of each group.
    pub fn finish(mut self) -> Vec<Group> {
        let mut complete: FxHashMap<BuildId, String> = FxHashMap::default();
        for group in &self.groups {
            let sound = group.first.verdict == Verdict::Sound && group.first.functions > 0;
            if let Some(member) = group.members.first().filter(|_| sound) {
                for id in &group.first.binary_ids {
                    complete
                        .entry(id.clone())
                        .or_insert_with(|| member.name.clone());
                }
            }
        }
        for group in &mut self.groups {
            if group.first.verdict == Verdict::Damaged {
                let mut ids = group.first.binary_ids.iter();
                group.complete = ids.find_map(|id| complete.get(id).cloned());
                // A complete profile of the same build can supply missing names of functions, but no other lost data.
                if group.complete.is_some() && group.first.remarks.nameless > 0 {
                    group.first.next = vec![Advice::KeepWithComplete];
                }
            }
            if group.files > 1 {
                group.first.what = without_contents(&group.first.what);
                let is_sound = group.first.verdict == Verdict::Sound;
                if is_sound && matches!(group.first.what, What::Sample { .. }) {
                    group.first.next = vec![Advice::MergeSamples];
                }
            }
        }
        for number in 0..self.groups.len().min(MOST_PATTERNS) {
            let pattern = self.pattern(number);
            if let Some(group) = self.groups.get_mut(number) {
                group.pattern = pattern;
            }
        }
        for (name, number) in self.files {
            if let Some(group) = self.groups.get_mut(number) {
                group.names.push(name);
            }
        }
        self.groups.sort_by_key(|group| match group.first.verdict {
            Verdict::Sound => 0,
            Verdict::NeedsProgram => 1,
            Verdict::Unsupported => 2,
            Verdict::Damaged => 3,
            Verdict::Foreign => 4,
            Verdict::Unreadable => 5,
        });
        for (number, group) in (1..).zip(&mut self.groups) {
            group.number = number;
        }
        self.groups
    }
}

impl Groups {
    /// Returns a pattern that matches all files of the group with the index `number`. The pattern may also match bad
    /// files of other groups (see [`is_bad`](Group::is_bad)), but never more bad files than the group has files: a merge
    /// of all matching files fails if more than half of them are bad. `None` if there is no such pattern.
    fn pattern(&self, number: usize) -> Option<String> {
        let group = self.groups.get(number)?;
        if group.files == 1 || group.is_bad() {
            return None;
        }
        let own = || self.files.iter().filter(|(_, group)| *group == number);
        let own = || own().map(|(name, _)| Path::new(&**name));
        let first = own().next()?;
        let extension = first.extension()?;
        let folder = own().try_fold(first.parent()?, |folder, path| {
            let mut folders = folder.ancestors();
            folders.find(|folder| path.starts_with(folder))
        })?;
        let is_flat = own().all(|path| path.parent() == Some(folder));
        let matches = |path: &Path| {
            path.extension() == Some(extension)
                && path.starts_with(folder)
                && (!is_flat || path.parent() == Some(folder))
        };
        let mut others = 0;
        for (name, of) in self.files.iter().filter(|(_, of)| *of != number) {
            if matches(Path::new(&**name)) {
                let is_bad = self.groups.get(*of).is_some_and(Group::is_bad);
                others += 1;
                if !is_bad || others > group.files {
                    return None;
                }
            }
        }
        let folder = folder.to_str()?;
        if folder.contains(SPECIAL) {
            return None;
        }
        let extension = extension.to_str()?;
        // The pattern matches all files with this extension in the folder. If the user named single files, the folder
        // may hold further files with the extension that were not examined, so there is no pattern.
        if !own().all(matches)
            || files_below(Path::new(folder), extension, !is_flat)? != group.files + others
        {
            return None;
        }
        let folder = match (folder, folder.ends_with('/')) {
            ("", _) => String::new(),
            (folder, true) => folder.to_owned(),
            (folder, false) => format!("{folder}/"),
        };
        let deep = if is_flat { "" } else { "**/" };
        Some(format!("{folder}{deep}*.{extension}"))
    }
}

/// The number of files with this extension in a folder; if `deep` is true, also in the folders below it. `None` if
/// there are too many files or folders, if a folder cannot be read, if anything in the folders is a link, or if a file
/// with the extension is hidden. With links or hidden files, a pattern might match other files than are counted here.
fn files_below(folder: &Path, extension: &str, deep: bool) -> Option<u64> {
    let mut folders = vec![if folder.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        folder.to_owned()
    }];
    let (mut found, mut seen) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).ok()? {
            let entry = entry.ok()?;
            let (path, kind) = (entry.path(), entry.file_type().ok()?);
            seen += 1;
            if seen > MOST_LOOKED_AT || kind.is_symlink() {
                return None;
            }
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if kind.is_dir() && deep && !is_hidden {
                folders.push(path);
            } else if kind.is_file() && path.extension() == Some(OsStr::new(extension)) {
                if is_hidden {
                    return None;
                }
                found += 1;
            }
        }
    }
    Some(found)
}

impl Group {
    /// Whether the files are damaged, unreadable or not profiles.
    pub fn is_bad(&self) -> bool {
        self.first.verdict.is_bad()
    }
}

/// Whether two files belong to the same group. The caller has checked that their build ids are equal.
fn is_alike(one: &Diagnosis, other: &Diagnosis) -> bool {
    let fault = |diagnosis: &Diagnosis| -> Option<ErrorKind> {
        diagnosis.damage.first.first().map(Error::kind)
    };
    one.verdict == other.verdict
        && one.target == other.target
        && fault(one) == fault(other)
        && one.next == other.next
        && without_contents(&one.what) == without_contents(&other.what)
}

/// The type of a file, without the numbers that differ from run to run.
fn without_contents(what: &What) -> What {
    match what {
        What::Mip { kind, version, .. } => What::Mip {
            kind: *kind,
            version: *version,
            contents: MipContents::Nothing,
        },
        what => what.clone(),
    }
}

impl What {
    /// Whether this is a profile that `profkit merge` accepts without further options.
    pub(super) fn is_merged(&self) -> bool {
        matches!(self, What::Instr(_) | What::Sample { .. } | What::HeapYaml)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{examine, unreadable};
    use super::*;

    #[test]
    fn like_files_are_one_group_and_bad_ones_come_last() {
        let whole = profkit_testkit::fixture("raw/clang-22-ir-plain.profraw");
        let other = profkit_testkit::fixture("raw/clang-22-ir-shapes.profraw");
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let mut groups = Groups::default();
        groups.add("missing", unreadable(&missing, None));
        groups.add("cut", examine(&whole[..1200]));
        for number in 0..30 {
            groups.add(&format!("{number}"), examine(&whole));
        }
        groups.add("other", examine(&other));
        groups.add("shorter", examine(&whole[..1300]));
        let groups = groups.finish();
        let seen: Vec<_> = groups
            .iter()
            .map(|group| {
                (
                    group.members[0].name.as_str(),
                    group.files,
                    group.members.len(),
                    group.last.as_str(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("0", 30, 10, "29"),
                ("other", 1, 1, "other"),
                ("cut", 2, 2, "shorter"),
                ("missing", 1, 1, "missing")
            ]
        );
        assert_eq!(groups[2].complete.as_deref(), Some("0"));
        assert_eq!(groups[0].bytes, 30 * whole.len() as u64);
    }
}
