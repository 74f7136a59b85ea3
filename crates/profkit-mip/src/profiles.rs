//! Which MIP profile belongs to which build, and to which file each profile of a merge is written.
use object::{Object as _, ObjectKind};
use profkit_data::ids::program_name;
use profkit_data::mip::{Identity, MipProfile, ProfileVersion};
use profkit_data::path_text;
use profkit_merge::files::{FolderLocks, InputList, path_without_links, system_text};
use profkit_merge::mip::MipTarget;
use profkit_object::binary::BinaryFile;
use profkit_object::mip_sections::MipSections;
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file of a profile.
#[derive(Clone, Debug)]
pub struct Place {
    /// The path of the file.
    pub path: PathBuf,
    /// The version of the format in which the profile is written.
    pub version: ProfileVersion,
    /// Whether there is no such profile yet, so that it is written even if no run was added.
    pub is_new: bool,
    /// Whether the file is named after its build, because the user named only its folder.
    in_folder: bool,
}

/// The profiles that raw files are merged into: files, or a folder with a profile of each build.
///
/// The caller opens the [`files`](Profiles::files) and the binaries, adds them, merges the [`targets`](Profiles::targets)
/// with [`merge_mip`](profkit_merge::mip::merge_mip), and asks for the [`places`](Profiles::places) of the results before
/// it writes the first one.
///
/// ```
/// use profkit_data::mip::{MipProfile, ProfileVersion};
/// use profkit_mip::profiles::Profiles;
/// # let folder = tempfile::tempdir()?;
/// # let named = folder.path().to_owned();
///
/// let file = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/mip/v8-b.mip"));
/// let mut profiles = Profiles::new(&[named], |_| {})?;
/// assert!(profiles.files().is_empty());
/// profiles.add_new("program".as_ref(), MipProfile::parse(file)?)?;
/// let targets = std::mem::take(&mut profiles.targets);
/// let places = profiles.places(&targets)?;
/// assert_eq!(places[0].version, ProfileVersion::V9);
/// assert!(places[0].path.extension().is_some_and(|extension| extension == "mip"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Profiles {
    /// The profiles that the inputs are merged into.
    pub targets: Vec<MipTarget>,
    /// The locks on the folders of the profiles.
    pub locks: FolderLocks,
    places: Vec<Place>,
    files: Vec<PathBuf>,
    /// The folder for new profiles; `None` if the user named no folder.
    folder: Option<PathBuf>,
    /// The path that the user named for a new profile, until a profile gets it.
    new_file: Option<PathBuf>,
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

impl Profiles {
    /// Finds the profiles at the paths that the user named. A path is a folder if there is a folder at this path, or if
    /// the path ends with `/`; a folder that does not exist is made.
    ///
    /// The folders of the profiles are locked as long as the result exists, so that what other processes merge into them at
    /// the same time is not lost. `waits` is called with each folder that another process holds, before the function waits
    /// for it. A folder that cannot be locked is in [`locks`](Self::locks). Do not call this again for the same folder before
    /// the result is dropped: the second call would wait forever.
    ///
    /// # Errors
    /// If a folder cannot be made or read, if several paths are folders, or if several paths are those of new files.
    pub fn new(named: &[PathBuf], waits: impl FnMut(&Path)) -> Result<Self, Error> {
        for path in named.iter().filter(|path| is_folder(path)) {
            fs::create_dir_all(path).map_err(|error| Error::Folder {
                doing: "make",
                path: path.clone(),
                error,
            })?;
        }
        let mut profiles = Profiles {
            locks: FolderLocks::of(named.iter().map(PathBuf::as_path), waits),
            ..Profiles::default()
        };
        for path in named {
            if is_folder(path) {
                profiles.add_folder(path)?;
            } else if path.exists() {
                profiles.files.push(path.clone());
            } else if profiles.new_file.replace(path.clone()).is_some() {
                return Err(Error::SeveralNewFiles { path: path.clone() });
            }
        }
        Ok(profiles)
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), Error> {
        if self.folder.replace(folder.to_owned()).is_some() {
            return Err(Error::SeveralFolders);
        }
        let is_profile = |path: &PathBuf| {
            let named = path.extension().is_some_and(|extension| extension == "mip");
            named && path.is_file()
        };
        let mut files: Vec<PathBuf> = entries(folder)?.iter().map(fs::DirEntry::path).collect();
        files.retain(is_profile);
        files.sort();
        self.files.extend(files);
        Ok(())
    }

    /// The files of existing profiles, which the caller opens and passes to [`add`](Self::add).
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The paths of all files that are known now: those of the profiles, and that of a profile that does not exist yet.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let places = self.places.iter().map(|place| &place.path);
        places.chain(&self.new_file).map(PathBuf::as_path)
    }

    /// Whether a profile of a further build, which is among the inputs, can become a file of its own.
    pub fn takes_more(&self) -> bool {
        self.folder.is_some() || self.new_file.is_some()
    }

    /// Whether nothing is known of the only profile, because its file does not exist yet and no binary was added.
    pub fn are_unknown(&self) -> bool {
        self.targets.is_empty() && self.folder.is_none()
    }

    /// Adds a profile that exists.
    ///
    /// # Errors
    /// If there is a profile of the same build already.
    pub fn add(
        &mut self,
        path: &Path,
        profile: MipProfile,
        version: ProfileVersion,
    ) -> Result<(), Error> {
        let name = path_text(path);
        if let Some(other) = self.of_build(&profile.identity) {
            return Err(Error::SameBuild {
                names: [other.name.clone(), name],
                identity: profile.identity,
            });
        }
        self.targets.push(MipTarget { name, profile });
        self.places.push(Place {
            path: path.to_owned(),
            version,
            is_new: false,
            in_folder: false,
        });
        Ok(())
    }

    /// Adds an empty profile of a binary, unless there is a profile of its build already. Returns whether it was added.
    ///
    /// # Errors
    /// If there is no file for the profile.
    pub fn add_new(&mut self, binary: &Path, profile: MipProfile) -> Result<bool, Error> {
        if self.of_build(&profile.identity).is_some() {
            return Ok(false);
        }
        let place = self.new_place(&profile.identity);
        let place = place.ok_or_else(|| Error::OtherBinary {
            path: binary.to_owned(),
            identity: profile.identity.clone(),
        })?;
        self.targets.push(MipTarget {
            name: path_text(&place.path),
            profile,
        });
        self.places.push(place);
        Ok(true)
    }

    fn of_build(&self, identity: &Identity) -> Option<&MipTarget> {
        let mut targets = self.targets.iter();
        targets.find(|target| target.profile.identity == *identity)
    }

    /// Returns the file for a new profile of this build; `None` if there is neither a path for a new file nor a folder.
    fn new_place(&mut self, identity: &Identity) -> Option<Place> {
        let file = self.new_file.take();
        let in_folder = file.is_none();
        let path = match (file, &self.folder) {
            (Some(file), _) => file,
            (None, Some(folder)) => folder.join(file_name(identity)),
            (None, None) => return None,
        };
        Some(Place {
            path,
            version: ProfileVersion::V9,
            is_new: true,
            in_folder,
        })
    }

    /// Removes these profiles from the inputs: what they hold is counted already.
    pub fn leave_out_of(&self, inputs: &mut InputList) {
        let own = self.places.iter();
        let own: Vec<_> = own
            .filter_map(|place| fs::canonicalize(&place.path).ok())
            .collect();
        if !own.is_empty() {
            let is_own = |path: &Path| fs::canonicalize(path).is_ok_and(|path| own.contains(&path));
            inputs.files.retain(|file| !is_own(&file.path));
        }
    }

    /// Returns the files for the merged profiles, in the order of these profiles. Profiles that were not added before
    /// the merge come after those that were.
    ///
    /// # Errors
    /// If there is no file for a profile, or if its file is that of another build.
    pub fn places(&mut self, merged: &[MipTarget]) -> Result<Vec<Place>, Error> {
        let mut places: Vec<Place> = Vec::with_capacity(merged.len());
        let mut taken = HashSet::with_capacity(merged.len());
        for (index, target) in merged.iter().enumerate() {
            let identity = &target.profile.identity;
            let place = match (self.places.get(index), &self.folder) {
                // A profile that was created from a map gets its build id only from the raw files.
                (Some(place), Some(folder)) if place.in_folder => Place {
                    path: folder.join(file_name(identity)),
                    ..place.clone()
                },
                (Some(place), _) => place.clone(),
                (None, _) => {
                    let place = self.new_place(identity);
                    place.ok_or_else(|| Error::NoProfile(identity.clone()))?
                }
            };
            let is_taken = place.is_new && place.path.exists();
            if is_taken || !taken.insert(path_without_links(&place.path)) {
                return Err(Error::Taken {
                    path: place.path,
                    identity: identity.clone(),
                });
            }
            places.push(place);
        }
        Ok(places)
    }
}

/// Returns binaries and maps. Of a folder, these are the binaries below it that have a map.
///
/// Also returns why folders below the named ones cannot be read: their binaries are missing in the result.
///
/// # Errors
/// If a named folder cannot be read, or if there is no binary and a folder below cannot be read.
pub fn binaries(named: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<Error>), Error> {
    let (mut binaries, mut unread) = (Vec::new(), Vec::new());
    for path in named {
        if path.is_dir() {
            // Binaries without a map are skipped. Damaged binaries are kept, so that their damage is reported.
            let files = files_below(path, &mut unread)?;
            binaries.extend(files.into_iter().filter(|path| has_map(path)));
        } else {
            binaries.push(path.clone());
        }
    }
    if binaries.is_empty()
        && let Some(error) = unread.pop()
    {
        return Err(error);
    }
    binaries.sort();
    Ok((binaries, unread))
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, Error> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect);
    entries.map_err(|error| Error::Folder {
        doing: "read",
        path: folder.to_owned(),
        error,
    })
}

/// The files in a folder and in its folders. Links to folders are not followed: they may lead back. The folders in the
/// folder that cannot be read are added to `unread`.
fn files_below(folder: &Path, unread: &mut Vec<Error>) -> Result<Vec<PathBuf>, Error> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let mut next = entries(folder)?;
    loop {
        for entry in next {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if path.is_file() {
                files.push(path);
            }
        }
        next = loop {
            let Some(folder) = folders.pop() else {
                return Ok(files);
            };
            match entries(&folder) {
                Ok(entries) => break entries,
                Err(error) => unread.push(error),
            }
        };
    }
}

fn has_map(path: &Path) -> bool {
    let Ok(file) = BinaryFile::open(path) else {
        return false;
    };
    file.images().is_ok_and(|images| {
        // An object that is not linked has a map without addresses, and lies where the compiler left it.
        images.iter().any(|image| {
            image.kind() != ObjectKind::Relocatable && !matches!(MipSections::of(image), Ok(None))
        })
    })
}

fn file_name(identity: &Identity) -> String {
    let stem = match identity {
        Identity::BuildId(id) if !id.0.is_empty() => program_name(std::slice::from_ref(id)),
        Identity::BuildId(_) => program_name(&[]),
        Identity::ModuleHash(hash) => format!("{hash:08x}"),
    };
    format!("{stem}.mip")
}

/// The reason why it is not known which profile belongs to which build, or which file to which profile.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A folder cannot be made or read.
    Folder {
        /// What was to be done with the folder: "make" or "read".
        doing: &'static str,
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Several of the named profiles do not exist yet.
    SeveralNewFiles {
        /// The second one.
        path: PathBuf,
    },
    /// Several folders were named.
    SeveralFolders,
    /// Two of the named profiles are of the same build.
    SameBuild {
        /// The names of the two profiles.
        names: [String; 2],
        /// The build.
        identity: Identity,
    },
    /// A binary is of a build that has no profile, and no file was named for a new one.
    OtherBinary {
        /// The binary.
        path: PathBuf,
        /// The build of the binary.
        identity: Identity,
    },
    /// An input is of a build that has no profile, and no file was named for a new one.
    NoProfile(Identity),
    /// The file for a new profile is that of a profile of another build.
    Taken {
        /// The file.
        path: PathBuf,
        /// The build of the new profile.
        identity: Identity,
    },
}

impl Error {
    /// Whether the command line is wrong: the user must name other files, whatever the inputs are.
    pub fn is_usage(&self) -> bool {
        !matches!(
            self,
            Error::Folder { .. } | Error::NoProfile(_) | Error::Taken { .. }
        )
    }

    /// Returns a suggestion to the user, if there is a step that helps.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::Folder { .. } | Error::SeveralFolders => None,
            Error::SeveralNewFiles { .. } => Some("give a folder: -p FOLDER/"),
            Error::SameBuild { .. } => Some("name one with -p, and the other as an input"),
            Error::OtherBinary { .. } | Error::NoProfile(_) => Some(
                "to merge profiles of several builds, give a folder: -p FOLDER/ (with the slash at its end, a folder that does not exist yet is made)",
            ),
            Error::Taken { .. } => Some(
                "rename the file that is there: in a folder, a profile is named after the build id of its program",
            ),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Folder { doing, path, error } => {
                let (path, error) = (path_text(path), system_text(error));
                write!(f, "cannot {doing} the folder {path}: {error}")
            }
            Error::SeveralNewFiles { path } => write!(
                f,
                "{}: -p names a second profile that does not exist yet, so it is unknown which inputs belong to which profile",
                path_text(path)
            ),
            Error::SeveralFolders => {
                f.write_str("-p names several folders, but new profiles can go into only one")
            }
            Error::SameBuild {
                names: [one, other],
                identity,
            } => write!(
                f,
                "{one} and {other} are profiles of the same build, {identity}"
            ),
            Error::OtherBinary { path, identity } => write!(
                f,
                "{}: the binary is of another build ({identity}) than the profile",
                path_text(path)
            ),
            Error::NoProfile(identity) => write!(
                f,
                "an input is of another build ({identity}) than the profiles that -p names"
            ),
            Error::Taken { path, identity } => write!(
                f,
                "{}: this file is the profile of another build, so the new profile ({identity}) is not written to it",
                path_text(path)
            ),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::ids::BuildId;

    fn profile(id: u8) -> MipProfile {
        let file = include_bytes!("../../../tests/fixtures/mip/v8-b.mip");
        MipProfile {
            identity: Identity::BuildId(BuildId(vec![id; 2])),
            ..MipProfile::parse(file).unwrap()
        }
    }

    fn targets(ids: &[u8]) -> Vec<MipTarget> {
        let target = |&id: &u8| MipTarget {
            name: String::new(),
            profile: profile(id),
        };
        ids.iter().map(target).collect()
    }

    #[test]
    fn names_of_files_are_those_of_builds() {
        let id = |bytes: &[u8]| file_name(&Identity::BuildId(BuildId(bytes.to_vec())));
        assert_eq!(id(&[0xab, 1]), "ab01.mip");
        assert_eq!(id(&[]), "no-build-id.mip");
        assert_eq!(file_name(&Identity::ModuleHash(0x1f)), "0000001f.mip");
    }

    #[test]
    fn all_places_are_known_before_the_first_profile_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), b"").unwrap();
        let mut profiles = Profiles::new(&[path("a"), path("new")], |_| {}).unwrap();
        assert_eq!(profiles.files(), [path("a")]);
        profiles
            .add(&path("a"), profile(1), ProfileVersion::V8)
            .unwrap();
        assert!(profiles.takes_more() && !profiles.are_unknown());
        // The second build gets the new file, and nothing is left for the third one.
        let error = profiles.places(&targets(&[1, 2, 3])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "an input is of another build (build id 0303) than the profiles that -p names"
        );
        assert!(!error.is_usage());
    }

    #[test]
    fn a_new_profile_replaces_none_of_another_build() {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("0202.mip");
        fs::write(&named, b"").unwrap();
        let mut profiles = Profiles::new(&[folder.path().to_owned()], |_| {}).unwrap();
        assert_eq!(profiles.files(), std::slice::from_ref(&named));
        profiles
            .add(&named, profile(1), ProfileVersion::V9)
            .unwrap();
        let error = profiles.places(&targets(&[1, 2])).unwrap_err();
        assert!(matches!(error, Error::Taken { path, .. } if path == named));
        let places = profiles.places(&targets(&[1, 3])).unwrap();
        assert_eq!(places[1].path, folder.path().join("0303.mip"));
    }

    #[test]
    fn a_build_has_one_profile() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut profiles = Profiles::new(&[path("new")], |_| {}).unwrap();
        assert!(profiles.are_unknown());
        assert!(profiles.add_new(&path("one"), profile(1)).unwrap());
        assert!(!profiles.add_new(&path("same"), profile(1)).unwrap());
        profiles.add_new(&path("other"), profile(2)).unwrap_err();
        let add = profiles.add(&path("x"), profile(1), ProfileVersion::V9);
        assert!(add.unwrap_err().is_usage());
        // The next call would wait for the lock.
        drop(profiles);
        let two = [path("a"), path("b")];
        assert!(Profiles::new(&two, |_| {}).unwrap_err().is_usage());
        let two = [path("c/"), path("d/")];
        assert!(Profiles::new(&two, |_| {}).unwrap_err().is_usage());
    }
}
