//! The binaries of a run: those that the user named, and those in folders and on servers that have samples.
use crate::profiles::NamedProfile;
use crate::sampling::{MakeOptions, Outcome, Sampling, find};
use profkit_data::ids::BuildId;
use profkit_data::{Error, ErrorKind};
use profkit_object::binaries::Binaries;
use profkit_object::build_id::build_id;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::collect::Counts;
use std::path::{Path, PathBuf};

/// The binaries of which profiles are made.
#[derive(Debug)]
pub struct Programs<'a> {
    /// The paths of the binaries. Those that the user named come first.
    pub paths: Vec<PathBuf>,
    named: usize,
    binaries: &'a Binaries,
}

/// A binary of which no profile can be made.
#[derive(Clone, Debug)]
pub struct UnusableBinary {
    /// The path of the binary.
    pub path: PathBuf,
    /// The reason.
    pub error: Error,
}

impl<'a> Programs<'a> {
    /// All binaries that the user named, and those of folders and servers that have samples.
    pub fn find(named: &[PathBuf], binaries: &'a Binaries, counts: &Counts) -> Self {
        let mut paths = named.to_vec();
        for counted in &counts.binaries {
            let Some(id) = &counted.key.build_id else {
                continue;
            };
            let path = binaries.program(id).filter(|path| !paths.contains(path));
            paths.extend(path);
        }
        // A binary without a build id is recognised in the recording by its name.
        for binary in &binaries.index.binaries {
            let is_named = !paths.contains(&binary.path)
                && !find(counts, &binary.path, binary.ids.first(), false)
                    .counts
                    .is_empty();
            paths.extend(is_named.then(|| binary.path.clone()));
        }
        Programs {
            paths,
            named: named.len(),
            binaries,
        }
    }

    /// Makes the profiles of all binaries. A binary from a folder or server, which the user did not name, is left out if no
    /// profile can be made of it. If there is then no profile at all, also returns the first binary that was left out.
    ///
    /// # Errors
    /// The first binary of which no profile can be made, if it is named or the only one. Also the first binary whose
    /// profile cannot be merged with those of other binaries.
    pub fn make(
        &self,
        counts: &Counts,
        options: &MakeOptions,
    ) -> Result<(Outcome, Vec<NamedProfile>, Option<UnusableBinary>), UnusableBinary> {
        let mut sampling = Sampling::new(counts, options);
        let mut left_out = Vec::new();
        for (position, path) in self.paths.iter().enumerate() {
            let Err((error, id)) = self.add(path, &mut sampling) else {
                continue;
            };
            let path = path.as_path();
            let is_named = position < self.named || self.paths.len() == 1;
            if is_named || error.kind() == ErrorKind::CannotRepresent {
                return Err(UnusableBinary::new(path, error));
            }
            left_out.push((path, id, error));
        }
        let first = left_out.first().filter(|_| !sampling.has_profile());
        let first = first.map(|(path, _, error)| UnusableBinary::new(path, error.clone()));
        for (path, id, error) in left_out {
            sampling.leave_out((path, id), error);
        }
        let (outcome, profiles) = sampling.finish();
        Ok((outcome, profiles, first))
    }

    fn add(
        &self,
        path: &Path,
        sampling: &mut Sampling<'_>,
    ) -> Result<(), (Error, Option<BuildId>)> {
        let unknown = |error| (error, None);
        let files = ProgramFiles::open(path, &self.binaries.debug_folders).map_err(unknown)?;
        let id = build_id(&files.program().map_err(unknown)?).map_err(unknown)?;
        let failure = |error| (error, id.clone());
        let only = self.paths.len() == 1;
        let mut added = sampling.add(&files, (path, id.clone()), only);
        // Servers are asked for debug info that no folder has.
        if let Err(error) = &added
            && error.kind() == ErrorKind::MissingCorrelation
            && files.debug_file().is_none()
            && let Some(debug) = id.as_ref().and_then(|id| self.binaries.debug_info(id))
        {
            let files = files.with_debug_file(&debug).map_err(failure)?;
            added = sampling.add(&files, (path, id.clone()), only);
        }
        added.map_err(failure)
    }
}

impl UnusableBinary {
    fn new(path: &Path, error: Error) -> Self {
        UnusableBinary {
            path: path.to_owned(),
            error,
        }
    }
}
