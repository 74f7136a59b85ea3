//! A client for debuginfod servers, which provide programs and debug info by build id. It supports HTTP, HTTPS (feature
//! `https`) and `file://`. Its cache has the place and layout of the cache of elfutils' client, so both programs share
//! one cache.
//!
//! | where | what |
//! |---|---|
//! | `DEBUGINFOD_URLS` | the servers, separated by white space, in the order in which they are asked |
//! | `DEBUGINFOD_CACHE_PATH` | the folder of the cache; by default `~/.debuginfod_client_cache` if it exists, otherwise `debuginfod_client` in `XDG_CACHE_HOME` or `~/.cache` |
//! | `DEBUGINFOD_TIMEOUT` | the number of seconds in which a server must send 100 KiB or the whole file; otherwise no more requests are sent to it (default 90; 0: no limit) |
//! | `DEBUGINFOD_MAXTIME` | the largest number of seconds for one file (default and 0: limited only by [`Client::budget`], the time for all downloads together) |
//! | `DEBUGINFOD_MAXSIZE` | the largest size of one file in bytes (default and 0: no limit) |
//! | request | `SERVER/buildid/ID/debuginfo`, `SERVER/buildid/ID/executable` |
//! | cache | `ID/debuginfo`, `ID/executable`; an empty file means that no server had the file. This is remembered for the number of seconds in the file `cache_miss_s` (default 600) |
//!
//! The variables and their meanings are documented in debuginfod-find(1); the layout is that of elfutils 0.188. This
//! client removes no old files from the cache; elfutils' client does.
mod environment;
mod http;

use crate::binary::BinaryFile;
use crate::build_id::build_id;
use crate::servers::Artifact;
use profkit_data::ids::BuildId;
use profkit_data::{Error, ErrorKind, Result};
use rustc_hash::FxHashMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The time for which the cache remembers that no server has a file, unless the cache has a setting for this time.
const MISS_LASTS: Duration = Duration::from_secs(600);
/// The default time limit for a server to send 100 KiB or the whole file.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);
/// The default of the time that all downloads together may take.
const DEFAULT_BUDGET: Duration = Duration::from_secs(600);

impl Artifact {
    fn name(self) -> &'static str {
        match self {
            Artifact::DebugInfo => "debuginfo",
            Artifact::Executable => "executable",
        }
    }
}

/// The type of a function that is called during a download. Its arguments are the URL of the file, the number of bytes
/// received so far, and the total number if the server has sent it. At the end of every download, even a failed one,
/// the function is called with 0 for both numbers.
pub type Progress = Box<dyn Fn(&str, u64, Option<u64>) + Send + Sync>;

/// A client for debuginfod servers.
pub struct Client {
    servers: Vec<String>,
    cache: PathBuf,
    /// The time limit for a server to send 100 KiB or the whole file. `None` means that only `budget` limits this time.
    timeout: Option<Duration>,
    /// The time that the download of one file may take. `None` means that only `budget` limits this time.
    max_time: Option<Duration>,
    /// The largest accepted size of one file, in bytes. `None` means that there is no limit.
    max_size: Option<u64>,
    budget: Duration,
    /// The time at which the first download began.
    started: OnceLock<Instant>,
    /// The servers to which no more requests are sent, each with the reason. For example, a server sent nothing in time
    /// or could not be reached.
    given_up: Mutex<FxHashMap<String, String>>,
    progress: Option<Progress>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("servers", &self.servers)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// The reason why a download did not return a file.
enum Miss {
    /// The server does not have the file.
    Absent,
    /// This request failed, but the server may answer another request.
    Failed(String),
    /// The server failed, and no more requests are sent to it.
    Dead(String),
    /// No more requests are sent to any server, for example because the disk of the cache is full.
    Over(String),
}

impl Client {
    /// Makes a client that uses these servers and this folder for its cache.
    pub fn new(servers: Vec<String>, cache: PathBuf) -> Self {
        Client {
            servers,
            cache,
            timeout: Some(DEFAULT_TIMEOUT),
            max_time: None,
            max_size: None,
            budget: DEFAULT_BUDGET,
            started: OnceLock::new(),
            given_up: Mutex::default(),
            progress: None,
        }
    }

    /// Sets the time limit for a server to send 100 KiB or the whole file. `None` sets no limit but that of
    /// [`budget`](Self::budget).
    #[must_use]
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the time that all downloads of this client together may take. This time begins with the first download.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// Sets a function that is called during downloads.
    #[must_use]
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Returns the path of the file with a build id: from the cache, or else from the first server that has the file.
    /// The build id in the file is always checked, also for files in the cache.
    ///
    /// # Errors
    /// [`ErrorKind::CannotCorrelate`] if neither the cache nor a server has the file. The error contains the answer of
    /// each server.
    pub fn find(&self, id: &BuildId, artifact: Artifact) -> Result<PathBuf> {
        let name = artifact.name();
        let cached = self.cache.join(id.to_string()).join(name);
        match fs::metadata(&cached) {
            Ok(metadata) if metadata.len() == 0 => {
                let age = metadata.modified().ok();
                let age = age.and_then(|time| SystemTime::now().duration_since(time).ok());
                if age.is_some_and(|age| age < self.miss_lasts()) {
                    return Err(missing(
                        id,
                        name,
                        &[format!(
                            "no server had the file at the last request; {} keeps that answer for {} seconds",
                            cached.display(),
                            self.miss_lasts().as_secs()
                        )],
                    ));
                }
            }
            // A cached file that is damaged, or has another build id, is downloaded again.
            Ok(_) if states_id(&cached, id).is_ok() => return Ok(cached),
            _ => {}
        }
        let mut said = Vec::new();
        let mut nobody_has_it = !self.servers.is_empty();
        for server in &self.servers {
            let miss = match self.ask(server, id, name, &cached) {
                Ok(path) => return Ok(path),
                Err(miss) => miss,
            };
            nobody_has_it &= matches!(miss, Miss::Absent);
            let over = matches!(miss, Miss::Over(_));
            let reason = match miss {
                Miss::Absent => "the server does not have the file".to_owned(),
                Miss::Failed(reason) | Miss::Over(reason) => reason,
                Miss::Dead(reason) => {
                    self.given_up().insert(server.clone(), reason.clone());
                    reason
                }
            };
            said.push(format!("{server}: {reason}"));
            if over {
                break;
            }
        }
        if nobody_has_it {
            self.remember_miss(&cached);
        }
        Err(missing(id, name, &said))
    }

    fn given_up(&self) -> MutexGuard<'_, FxHashMap<String, String>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn miss_lasts(&self) -> Duration {
        let text = fs::read_to_string(self.cache.join("cache_miss_s")).ok();
        let seconds = text.and_then(|text| text.trim().parse().ok());
        seconds.map_or(MISS_LASTS, Duration::from_secs)
    }

    /// Notes in the cache that no server has the file. If this note cannot be written, the next call asks the servers
    /// again.
    fn remember_miss(&self, cached: &Path) {
        if let Some(folder) = cached.parent() {
            let _ = http::create_folder(folder);
        }
        // The cache may already have a file of this name: a damaged file, or an old note that no server had the file.
        // It must be removed before the new file is written, because elfutils makes the files in the cache read-only.
        let _ = fs::remove_file(cached);
        let _ = File::create(cached);
    }

    fn ask(
        &self,
        server: &str,
        id: &BuildId,
        name: &str,
        cached: &Path,
    ) -> std::result::Result<PathBuf, Miss> {
        if let Some(reason) = self.given_up().get(server) {
            return Err(Miss::Failed(format!("not asked again: {reason}")));
        }
        let base = server.trim_end_matches('/');
        let base = base.strip_suffix("/buildid").unwrap_or(base);
        let url = format!("{base}/buildid/{id}/{name}");
        if let Some(path) = url.strip_prefix("file://") {
            // A `file://` address names a file on this machine, so the file is not copied into the cache.
            let path = file_path(path).ok_or_else(|| {
                Miss::Dead("the path in the address does not begin with /, or has a % without two hexadecimal digits".to_owned())
            })?;
            if !path.is_file() {
                return Err(Miss::Absent);
            }
            return match states_id(&path, id) {
                Ok(()) => Ok(path),
                Err(reason) => Err(Miss::Failed(reason)),
            };
        }
        match url.split_once("://") {
            Some(("http", _)) => {}
            Some(("https", _)) if cfg!(feature = "https") => {}
            Some(("https", _)) => {
                return Err(Miss::Dead(
                    "this program was built without https (cargo feature `https`)".to_owned(),
                ));
            }
            _ => {
                return Err(Miss::Dead(
                    "the address is neither http, https nor file".to_owned(),
                ));
            }
        }
        let started = self.started.get_or_init(Instant::now);
        let left = self.budget.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Err(Miss::Over(format!(
                "not asked: the {} seconds that all downloads together may take are over",
                self.budget.as_secs()
            )));
        }
        let fetched = self.download(&url, id, cached, left);
        if let Some(progress) = &self.progress {
            progress(&url, 0, Some(0));
        }
        fetched
    }
}

#[cold]
fn missing(id: &BuildId, name: &str, said: &[String]) -> Error {
    let servers = match said {
        [] => String::new(),
        said => format!(" ({})", said.join("; ")),
    };
    let error = Error::new(
        ErrorKind::CannotCorrelate,
        format!("debuginfod has no {name} of build id {id}{servers}"),
    )
    .llvm_detail(format!("Missing build ID: {id}"));
    match said {
        [] => error.with_hint(
            "the cache does not have the file: set DEBUGINFOD_URLS to the addresses of servers",
        ),
        _ => {
            error.with_hint("give the binary with --binaries, or another server in DEBUGINFOD_URLS")
        }
    }
}

/// Returns the path in a `file://` address; `None` if the address is not valid. The path must be absolute, and may
/// write a byte as `%XX`.
fn file_path(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digit = |byte: u8| (byte as char).to_digit(16);
        let [high, low] = digits else { return None };
        bytes.push(u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?);
        rest = after;
    }
    let path = PathBuf::from(String::from_utf8(bytes).ok()?);
    path.is_absolute().then_some(path)
}

/// Checks that a file has this build id. The error describes what is wrong with the file.
fn states_id(path: &Path, id: &BuildId) -> std::result::Result<(), String> {
    let wrong = |what: String| format!("the debuginfod server sent the wrong file: {what}");
    let file = BinaryFile::open(path).map_err(|error| profkit_data::system_text(&error))?;
    let images = file.images().map_err(|error| wrong(error.to_string()))?;
    let mut ids = Vec::new();
    for image in &images {
        ids.extend(build_id(image).map_err(|error| wrong(error.to_string()))?);
    }
    match ids.first() {
        _ if ids.contains(id) => Ok(()),
        Some(found) => Err(wrong(format!("found build id {found}"))),
        None => Err(wrong("the file has no build id".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files_are_paths() {
        let path = |text| file_path(text).map(|path| path.display().to_string());
        assert_eq!(path("/a/b%20c/%C3%A4"), Some("/a/b c/ä".to_owned()));
        assert_eq!(path("server/a"), None);
        assert_eq!(path("/a%2"), None);
        assert_eq!(path("/a%zz"), None);
        assert_eq!(path("/a%ff"), None);
    }
}
