//! The places where binaries are searched: paths, folders and servers.
use crate::debug_files::DebugFolders;
use crate::index::{BinaryIndex, IndexCache, IndexError};
use crate::servers::{Artifact, BinaryServers};
use profkit_data::ids::BuildId;
use std::path::PathBuf;

/// The places where binaries are searched: paths, folders and servers.
///
/// ```
/// use profkit_object::binaries::Binaries;
///
/// // This program, by its path; a folder stands for all binaries below it.
/// let binaries = Binaries::open(&[std::env::current_exe()?])?;
/// assert_eq!(binaries.index.binaries.len(), 1);
/// assert!(Binaries::open(&["no/such/folder".into()]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Binaries {
    /// The binaries at the given paths, and in the given folders.
    pub index: BinaryIndex,
    /// The folders with the debug files of stripped binaries.
    pub debug_folders: DebugFolders,
    /// The servers that are asked for a binary if no folder contains it.
    pub servers: Option<Box<dyn BinaryServers>>,
}

impl Binaries {
    /// Opens the programs, libraries and debug files at these paths, or in folders at these paths. The debug files of
    /// stripped binaries are expected in the usual places of the system; no server is asked.
    ///
    /// # Errors
    /// If a path does not exist, or if a file is not a binary.
    pub fn open(paths: &[PathBuf]) -> Result<Self, IndexError> {
        Ok(Binaries {
            index: BinaryIndex::build(paths, &mut IndexCache::none())?,
            debug_folders: DebugFolders::default(),
            servers: None,
        })
    }

    /// Finds the program or library with a build id: in the folders, otherwise on the servers. `None` if it is not
    /// found.
    pub fn program(&self, id: &BuildId) -> Option<PathBuf> {
        let found = self.index.find(id).into_iter().next();
        let found = found.map(|binary| binary.path);
        found.or_else(|| self.served(id, Artifact::Executable))
    }

    /// Asks the servers for the debug info of a build id. `None` if there are no servers, or if none of them has it.
    pub fn debug_info(&self, id: &BuildId) -> Option<PathBuf> {
        self.served(id, Artifact::DebugInfo)
    }

    fn served(&self, id: &BuildId, artifact: Artifact) -> Option<PathBuf> {
        self.servers.as_ref()?.find(id, artifact).ok()
    }
}
