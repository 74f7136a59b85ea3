//! Where binaries come from that are in no folder.
use profkit_data::Result;
use profkit_data::ids::BuildId;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What to ask servers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Artifact {
    /// The file with debug info.
    DebugInfo,
    /// The program or library itself.
    Executable,
}

/// Servers that give a binary by its build id. With the cargo feature `debuginfod`, the client of
/// `profkit_object::debuginfod` is one.
pub trait BinaryServers: fmt::Debug + Send + Sync {
    /// The file of a build id, on this machine.
    ///
    /// # Errors
    /// If no server gives it, with what each of them did.
    fn find(&self, id: &BuildId, artifact: Artifact) -> Result<PathBuf>;
}

#[cfg(feature = "debuginfod")]
impl BinaryServers for profkit_object::debuginfod::Client {
    fn find(&self, id: &BuildId, artifact: Artifact) -> Result<PathBuf> {
        use profkit_object::debuginfod::Artifact as Asked;
        let asked = match artifact {
            Artifact::DebugInfo => Asked::DebugInfo,
            Artifact::Executable => Asked::Executable,
        };
        profkit_object::debuginfod::Client::find(self, id, asked)
    }
}

/// Called during a download: with its address, how many bytes have come, and how many there will be if the server says
/// so. Called with 0 and `Some(0)` when the download has ended.
pub type DownloadProgress = Box<dyn Fn(&str, u64, Option<u64>) + Send + Sync>;

/// Why there is no client of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServersError {
    /// This library was built without the cargo feature `debuginfod`.
    NotBuilt,
    /// An environment variable is wrong: its name, its value, and what is wrong with it.
    Variable(String),
}

impl fmt::Display for ServersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServersError::NotBuilt => f.write_str(
                "built without a client of debuginfod servers (cargo feature `debuginfod`)",
            ),
            ServersError::Variable(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ServersError {}

/// A client of the servers in `DEBUGINFOD_URLS`. `budget` is how long all downloads together may take.
///
/// # Errors
/// If this library has no client, or an environment variable is wrong.
#[cfg(feature = "debuginfod")]
pub fn servers_from_environment(
    budget: Option<Duration>,
    progress: Option<DownloadProgress>,
) -> std::result::Result<Box<dyn BinaryServers>, ServersError> {
    use profkit_object::debuginfod::Client;
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

/// A client of the servers in `DEBUGINFOD_URLS`. `budget` is how long all downloads together may take.
///
/// # Errors
/// If this library has no client, or an environment variable is wrong.
#[cfg(not(feature = "debuginfod"))]
pub fn servers_from_environment(
    _budget: Option<Duration>,
    _progress: Option<DownloadProgress>,
) -> std::result::Result<Box<dyn BinaryServers>, ServersError> {
    Err(ServersError::NotBuilt)
}
