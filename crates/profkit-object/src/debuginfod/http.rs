//! Downloads a file from a debuginfod server into the cache.
use super::{Client, Miss, states_id};
use profkit_data::ids::BuildId;
use profkit_data::system_text;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The number of bytes that a server must send before the time-out. elfutils uses the same number.
const LEAST_BYTES: u64 = 100 << 10;
/// The number of bytes that are read at once. A larger number saves no time, because the network is slower.
const BLOCK: usize = 1 << 16;

impl Client {
    pub(super) fn download(
        &self,
        url: &str,
        id: &BuildId,
        cached: &Path,
        left: Duration,
    ) -> Result<PathBuf, Miss> {
        let most = self.max_time.map_or(left, |most| most.min(left));
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_per_read(self.timeout)
            .timeout_connect(self.timeout)
            .timeout_resolve(self.timeout)
            .timeout_recv_response(self.timeout)
            .timeout_global(Some(most))
            .user_agent(concat!("profkit/", env!("CARGO_PKG_VERSION")));
        #[cfg(feature = "https")]
        let config = config.tls_config(
            ureq::tls::TlsConfig::builder()
                .root_certs(ureq::tls::RootCerts::PlatformVerifier)
                .build(),
        );
        let agent: ureq::Agent = config.build().into();
        let mut response = agent
            .get(url)
            .call()
            .map_err(|error| self.transport(&error, most))?;
        match response.status().as_u16() {
            200 => {}
            404 => return Err(Miss::Absent),
            status => {
                return Err(Miss::Failed(format!(
                    "the server answered with HTTP status {status}"
                )));
            }
        }
        let total = response.body().content_length();
        if let Some(total) = total {
            self.check_size(total)?;
        }
        let folder = cached.parent().unwrap_or(Path::new(""));
        let no_room = |error: &io::Error| {
            Miss::Over(format!(
                "the file cannot be saved in {}: {}; set DEBUGINFOD_CACHE_PATH to a folder with enough space",
                folder.display(),
                system_text(error)
            ))
        };
        create_folder(folder).map_err(|error| no_room(&error))?;
        let mut temporary = Temporary::new(cached);
        let mut file = temporary.create().map_err(|error| no_room(&error))?;
        let mut body = response.body_mut().as_reader();
        let mut block = vec![0; BLOCK];
        let mut got = 0u64;
        let mut window = (Instant::now(), 0);
        loop {
            let len = body
                .read(&mut block)
                .map_err(|error| self.cut(error, got, total, most))?;
            if len == 0 {
                break;
            }
            got += len as u64;
            self.check_size(got)?;
            file.write_all(block.get(..len).unwrap_or_default())
                .map_err(|error| no_room(&error))?;
            if let Some(progress) = &self.progress {
                progress(url, got, total);
            }
            if let Some(timeout) = self.timeout
                && window.0.elapsed() >= timeout
            {
                if got - window.1 < LEAST_BYTES {
                    return Err(Miss::Dead(format!(
                        "the download was too slow: {} bytes in {} seconds",
                        got - window.1,
                        timeout.as_secs()
                    )));
                }
                window = (Instant::now(), got);
            }
        }
        if let Some(total) = total.filter(|&total| total != got) {
            return Err(Miss::Failed(format!(
                "the download stopped after {got} of {total} bytes"
            )));
        }
        drop(file);
        states_id(&temporary.path, id).map_err(Miss::Failed)?;
        temporary.rename(cached).map_err(|error| no_room(&error))?;
        Ok(cached.to_owned())
    }

    fn check_size(&self, bytes: u64) -> Result<(), Miss> {
        match self.max_size {
            Some(most) if bytes > most => Err(Miss::Failed(format!(
                "the file is larger than DEBUGINFOD_MAXSIZE: {bytes} bytes, allowed {most}"
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the outcome of a request to which the server sent no answer. `most` is the time limit of the download.
    #[cold]
    fn transport(&self, error: &ureq::Error, most: Duration) -> Miss {
        match error {
            ureq::Error::Timeout(timeout) => self.timed_out(*timeout, most),
            ureq::Error::Io(error) => Miss::Dead(system_text(error)),
            error => Miss::Dead(error.to_string()),
        }
    }

    #[cold]
    fn timed_out(&self, timeout: ureq::Timeout, most: Duration) -> Miss {
        match (timeout, self.timeout) {
            (ureq::Timeout::Global, _) | (_, None) => Miss::Failed(format!(
                "the download was not complete after {} seconds",
                most.as_secs().max(1)
            )),
            (_, Some(timeout)) => Miss::Dead(format!(
                "no answer in {} seconds (DEBUGINFOD_TIMEOUT)",
                timeout.as_secs()
            )),
        }
    }

    /// Returns the outcome of a request whose answer ended too early: after `got` of `total` bytes (`None` if the total
    /// is not known). `most` is the time limit of the download.
    #[cold]
    fn cut(&self, error: io::Error, got: u64, total: Option<u64>, most: Duration) -> Miss {
        let of = total.map_or(String::new(), |total| format!(" of {total}"));
        match ureq::Error::from(error) {
            ureq::Error::Timeout(timeout) => self.timed_out(timeout, most),
            ureq::Error::Io(error) => Miss::Failed(format!(
                "the download stopped after {got}{of} bytes: {}",
                system_text(&error)
            )),
            error => Miss::Failed(format!(
                "the download stopped after {got}{of} bytes: {error}"
            )),
        }
    }
}

/// Makes a folder in the cache. As in elfutils, only its owner can read it.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A temporary file of a download. Dropping this value removes the file, unless the file was renamed.
struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    /// Chooses a name for a temporary file in the same folder as `cached`. No other download that may be running uses
    /// the same name.
    fn new(cached: &Path) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut name = cached.as_os_str().to_owned();
        name.push(format!(".profkit-{}-{number}", std::process::id()));
        Temporary {
            path: PathBuf::from(name),
            renamed: false,
        }
    }

    fn create(&self) -> io::Result<fs::File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o400);
        options.open(&self.path)
    }

    fn rename(&mut self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Removing the file may fail. The error cannot be reported here and is harmless, because the name is never
            // used again.
            let _ = fs::remove_file(&self.path);
        }
    }
}
