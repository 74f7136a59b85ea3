//! Temporary files of outputs. The program keeps a list of all its temporary files, so that it can remove them if it
//! must end early.
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use tempfile::TempPath;

static OUTPUTS: Mutex<Outputs> = Mutex::new(Outputs {
    temporary: BTreeSet::new(),
    replaced: 0,
    abandoned_by: None,
});

struct Outputs {
    temporary: BTreeSet<PathBuf>,
    replaced: usize,
    abandoned_by: Option<ThreadId>,
}

/// Removes the temporary files of all outputs, and returns the number of outputs that were completed. Other threads
/// that try to write an output then wait for ever: the caller must end the process.
pub fn abandon_outputs() -> usize {
    let mut outputs = lock();
    outputs.abandoned_by = Some(thread::current().id());
    for path in std::mem::take(&mut outputs.temporary) {
        // An error is ignored: if a file cannot be removed while the process ends, nothing else can be done.
        let _ = fs::remove_file(path);
    }
    outputs.replaced
}

fn lock() -> MutexGuard<'static, Outputs> {
    loop {
        let outputs = OUTPUTS.lock().unwrap_or_else(PoisonError::into_inner);
        match outputs.abandoned_by {
            Some(thread) if thread != thread::current().id() => {
                drop(outputs);
                thread::park();
            }
            _ => return outputs,
        }
    }
}

#[derive(Debug)]
pub(super) struct Temporary {
    path: Option<TempPath>,
    /// The open file; `None` when all bytes are in it.
    file: Option<File>,
}

impl Temporary {
    pub(super) fn new(prefix: &str, folder: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The usual permissions of new files, of which the system removes the bits of the umask.
            builder.permissions(Permissions::from_mode(0o666));
        }
        let mut outputs = lock();
        let file = builder.prefix(prefix).suffix(".tmp").tempfile_in(folder)?;
        outputs.temporary.insert(file.path().to_owned());
        let (file, path) = file.into_parts();
        Ok(Temporary {
            path: Some(path),
            file: Some(file),
        })
    }

    /// Closes the file when all bytes are in it, so that many files can wait until they replace their targets.
    pub(super) fn close(mut self) -> Self {
        self.file = None;
        self
    }

    /// Waits until the bytes are on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_all)
    }

    /// Gives the file its name, if no file has it.
    pub(super) fn put_new(mut self, path: &Path) -> io::Result<()> {
        let mut outputs = lock();
        let Some(from) = self.path.take() else {
            return Ok(());
        };
        outputs.temporary.remove::<Path>(&from);
        from.persist_noclobber(path).map_err(|error| error.error)?;
        outputs.replaced += 1;
        Ok(())
    }

    pub(super) fn replace(
        mut self,
        path: &Path,
        permissions: Option<Permissions>,
    ) -> io::Result<()> {
        let mut outputs = lock();
        let Some(from) = self.path.take() else {
            return Ok(());
        };
        outputs.temporary.remove::<Path>(&from);
        if let Some(permissions) = permissions {
            fs::set_permissions(&from, permissions)?;
        }
        from.persist(path).map_err(|error| error.error)?;
        outputs.replaced += 1;
        Ok(())
    }
}

impl Temporary {
    /// Writes the file as an object. If that fails, the file stays, and the error says where.
    pub(super) fn upload(mut self, uri: &str) -> io::Result<()> {
        let Some(from) = self.path.take() else {
            return Ok(());
        };
        let sent = crate::remote::put(uri, &from);
        let mut outputs = lock();
        outputs.temporary.remove::<Path>(&from);
        match sent {
            Ok(()) => {
                outputs.replaced += 1;
                Ok(())
            }
            Err(error) => {
                let kept = from.keep().map_err(|error| error.error)?;
                let text = format!("{error}; the output is kept as {}", kept.display());
                Err(io::Error::new(error.kind(), text))
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            lock().temporary.remove::<Path>(&path);
        }
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}
