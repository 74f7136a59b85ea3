//! Downloads binaries from servers, if no folder contains them.
use profkit_data::Result;
use profkit_data::ids::BuildId;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The kind of file that a server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Artifact {
    /// The file with the debug info and the other sections that are not loaded when the program runs.
    DebugInfo,
    /// The file is the program or library itself.
    Executable,
}

/// Servers that return a binary by its build id. With the cargo feature `debuginfod`, `debuginfod::Client`
/// implements this trait.
pub trait BinaryServers: fmt::Debug + Send + Sync {
    /// Downloads the file with this build id, and returns its path on this machine.
    ///
    /// # Errors
    /// If no server has the file. The error lists the answer of each server.
    fn find(&self, id: &BuildId, artifact: Artifact) -> Result<PathBuf>;
}

#[cfg(feature = "debuginfod")]
impl BinaryServers for crate::debuginfod::Client {
    fn find(&self, id: &BuildId, artifact: Artifact) -> Result<PathBuf> {
        crate::debuginfod::Client::find(self, id, artifact)
    }
}

/// A function that is called during a download with three arguments: the URL, the number of bytes received so far, and
/// the number of all bytes if the server states it. At the end of a download it is called with 0 and `Some(0)`.
pub type DownloadProgress = Box<dyn Fn(&str, u64, Option<u64>) + Send + Sync>;

/// The reason why no client for servers could be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServersError {
    /// This library was built without the cargo feature `debuginfod`.
    NotBuilt,
    /// An environment variable has a wrong value. The text holds its name, its value, and the reason why the value
    /// is wrong.
    Variable(String),
}

impl fmt::Display for ServersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServersError::NotBuilt => f.write_str(
                "this build has no client for debuginfod servers (cargo feature `debuginfod`)",
            ),
            ServersError::Variable(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ServersError {}

/// Returns a client for the servers in `DEBUGINFOD_URLS`. `budget` limits the time of all downloads together; `None`
/// sets the client's usual limit. `progress` is called during downloads.
///
/// # Errors
/// If this library was built without a client, or if an environment variable is wrong.
#[cfg(feature = "debuginfod")]
pub fn servers_from_environment(
    budget: Option<Duration>,
    progress: Option<DownloadProgress>,
) -> std::result::Result<Box<dyn BinaryServers>, ServersError> {
    use crate::debuginfod::Client;
    let client = Client::from_environment(|name| std::env::var_os(name));
    let mut client = client.map_err(ServersError::Variable)?;
    if let Some(budget) = budget {
        client = client.budget(budget);
    }
    if let Some(progress) = progress {
        client = client.progress(progress);
    }
    Ok(Box::new(client))
}

/// Returns a client for the servers in `DEBUGINFOD_URLS`. `budget` limits the time of all downloads together; `None`
/// sets the client's usual limit. `progress` is called during downloads.
///
/// # Errors
/// If this library was built without a client, or if an environment variable is wrong.
#[cfg(not(feature = "debuginfod"))]
pub fn servers_from_environment(
    _budget: Option<Duration>,
    _progress: Option<DownloadProgress>,
) -> std::result::Result<Box<dyn BinaryServers>, ServersError> {
    Err(ServersError::NotBuilt)
}
