//! Makes objects from assembly files with several threads, and reads and writes the members of libraries.
use crate::cc::{Doing, Error, Result, instrument_file};
use profkit_mip::instrument::Options;
use profkit_object::library::{self, LibraryError, Member as OldMember};
use profkit_rt::archive::{Member, archive};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Instruments and assembles files, in parallel. Returns the objects in the order of the files. `assemble` makes its
/// second argument of its first.
pub fn make(
    files: &[&Path],
    folder: &Path,
    options: &Options,
    target: impl Fn() -> Result<String> + Sync,
    assemble: impl Fn(&Path, &Path) -> Result<()> + Sync,
) -> Result<Vec<PathBuf>> {
    let objects: Vec<PathBuf> = (0..files.len())
        .map(|number| folder.join(format!("{number}.o")))
        .collect();
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(files.len()) {
            scope.spawn(|| {
                while let Some((from, object)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    files.get(number).zip(objects.get(number))
                } {
                    let text = object.with_extension("s");
                    let name = from.file_name().unwrap_or_default();
                    let made = instrument_file(from, &text, name, false, options, &target)
                        .and_then(|()| assemble(&text, object));
                    if let Err(error) = made
                        && let Ok(mut failure) = failure.lock()
                    {
                        next.store(files.len(), Ordering::Relaxed);
                        *failure = Some(error);
                    }
                }
            });
        }
    });
    match failure.into_inner().ok().flatten() {
        Some(error) => Err(error),
        None => Ok(objects),
    }
}

pub fn members<'a>(path: &Path, bytes: &'a [u8]) -> Result<Vec<OldMember<'a>>> {
    library::members(path, bytes).map_err(|error| match error {
        LibraryError::Damaged(problem) => Error::Library {
            name: profkit_data::path_text(path),
            problem,
        },
        LibraryError::Member(file, error) => Error::file(Doing::Read, &file)(error),
    })
}

pub fn library_of(members: &[OldMember<'_>]) -> Vec<u8> {
    let members: Vec<Member<'_>> = members
        .iter()
        .map(|member| Member {
            name: member.name,
            object: &member.data,
            symbols: &member.symbols,
        })
        .collect();
    archive(&members)
}
