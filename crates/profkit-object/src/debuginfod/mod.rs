//! A client for debuginfod servers, which give programs and debug info by build id: HTTP, HTTPS (feature `https`) and
//! `file://`. The cache is that of elfutils' own client, in its place and layout, so that both share it.
//!
//! | where | what |
//! |---|---|
//! | `DEBUGINFOD_URLS` | servers, separated by white space, asked in order |
//! | `DEBUGINFOD_CACHE_PATH` | the cache; else `debuginfod_client` in `XDG_CACHE_HOME` or `~/.cache`, or `~/.debuginfod_client_cache` if that is there |
//! | `DEBUGINFOD_TIMEOUT` | a server that gives less than 100 KiB within so many seconds, and not all there is, is given up (default 90; 0: never) |
//! | `DEBUGINFOD_MAXTIME` | seconds for one file (default and 0: no limit but the budget) |
//! | `DEBUGINFOD_MAXSIZE` | bytes of one file (default and 0: no limit) |
//! | request | `SERVER/buildid/ID/debuginfo`, `SERVER/buildid/ID/executable` |
//! | cache | `ID/debuginfo`, `ID/executable`; an empty file says that no server had it, for as many seconds as the file `cache_miss_s` says (default 600) |
//!
//! Names and meanings are those of debuginfod-find(1), the layout is that of elfutils 0.188. Nothing is ever removed from
//! the cache; elfutils' client does that.
mod environment;
mod http;

use crate::binary::BinaryFile;
use crate::build_id::build_id;
use profkit_data::ids::BuildId;
use profkit_data::{Error, ErrorKind, Result};
use rustc_hash::FxHashMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long a miss is remembered where the cache does not say.
const MISS_LASTS: Duration = Duration::from_secs(600);
/// How long a server may be silent.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);
/// How long all downloads may take.
const DEFAULT_BUDGET: Duration = Duration::from_secs(600);

/// What to ask a server for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Artifact {
    /// The file with debug info and other sections that are not loaded.
    DebugInfo,
    /// The program or library.
    Executable,
}

impl Artifact {
    fn name(self) -> &'static str {
        match self {
            Artifact::DebugInfo => "debuginfo",
            Artifact::Executable => "executable",
        }
    }
}

/// Called during a download with the address, bytes so far, and how many there will be if the server says so. When it
/// ends, whether well or not, both numbers are 0.
pub type Progress = Box<dyn Fn(&str, u64, Option<u64>) + Send + Sync>;

/// A client.
pub struct Client {
    servers: Vec<String>,
    cache: PathBuf,
    /// `None`: a server may be silent for as long as the budget lasts.
    timeout: Option<Duration>,
    /// For one file.
    max_time: Option<Duration>,
    /// For one file.
    max_size: Option<u64>,
    budget: Duration,
    /// When the first download began.
    started: OnceLock<Instant>,
    /// Servers that were silent or could not be reached, with what they did: they are not asked again.
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

/// Why a server gave nothing.
enum Miss {
    /// It has no such file.
    Absent,
    /// It did not do this time what it should.
    Failed(String),
    /// It will not do so the next time either.
    Dead(String),
    /// Nothing more is asked of anybody.
    Over(String),
}

impl Client {
    /// A client of these servers with a cache in this folder.
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

    /// Sets how long a server may be silent.
    #[must_use]
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long all downloads of this client may take, from the first on.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// Sets what is called during downloads.
    #[must_use]
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// The file of a build id: from the cache, else from the first server that has it. The build id that the file
    /// states is compared, also that of a file in the cache.
    ///
    /// # Errors
    /// [`ErrorKind::CannotCorrelate`] if neither the cache nor a server has it, with what each server did.
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
                            "no server had it when it was asked for last; {} remembers that for {} seconds",
                            cached.display(),
                            self.miss_lasts().as_secs()
                        )],
                    ));
                }
            }
            // A file that is damaged or another one is fetched again.
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
                Miss::Absent => "it has no such file".to_owned(),
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

    /// If it cannot be remembered, servers are asked again the next time.
    fn remember_miss(&self, cached: &Path) {
        if let Some(folder) = cached.parent() {
            let _ = http::create_folder(folder);
        }
        // Whatever is there is damaged or an old miss; elfutils leaves files that only their owner may read.
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
            // It is on this machine already: no copy.
            let path = file_path(path).ok_or_else(|| {
                Miss::Dead("its path does not begin with / or has a bad % in it".to_owned())
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
                    "it is no http, https or file address".to_owned(),
                ));
            }
        }
        let started = self.started.get_or_init(Instant::now);
        let left = self.budget.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Err(Miss::Over(format!(
                "not asked: the {} seconds for all downloads are over",
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
        [] => error.with_hint("the cache does not have it: name servers in DEBUGINFOD_URLS"),
        _ => {
            error.with_hint("give the binary with --binaries, or another server in DEBUGINFOD_URLS")
        }
    }
}

/// The path of a `file://` address: absolute, with bytes as `%XX`.
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

/// Whether a file states this build id; if not, what is wrong with it.
fn states_id(path: &Path, id: &BuildId) -> std::result::Result<(), String> {
    let wrong = |what: String| format!("what it gives is another file: {what}");
    let file = BinaryFile::open(path).map_err(|error| profkit_data::system_text(&error))?;
    let images = file.images().map_err(|error| wrong(error.to_string()))?;
    let mut ids = Vec::new();
    for image in &images {
        ids.extend(build_id(image).map_err(|error| wrong(error.to_string()))?);
    }
    match ids.first() {
        _ if ids.contains(id) => Ok(()),
        Some(found) => Err(wrong(format!("found build id {found}"))),
        None => Err(wrong("it states no build id".to_owned())),
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
