//! Reads a file that lists inputs.
use super::{ListError, MOST_INPUTS, Result};
use crate::{is_stdio, read_into, remote};
use memmap2::Mmap;
use profkit_data::stored::expand;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// The maximum size of a list, which is read as a whole: that of paths of 128 bytes for [`MOST_INPUTS`].
pub(super) const MOST_LIST_BYTES: u64 = (MOST_INPUTS as u64) << 7;

/// Reads a list, or maps it. A program may write one without an end.
pub(super) fn read_list(path: &Path, name: &str, buffer: &mut Vec<u8>) -> Result<Option<Mmap>> {
    let failed = |error| ListError::List {
        name: name.to_owned(),
        error,
    };
    let check = |len: u64| match len {
        ..=MOST_LIST_BYTES => Ok(()),
        _ => Err(ListError::TooLong {
            name: name.to_owned(),
        }),
    };
    let found = fs::metadata(path).ok().filter(|_| !is_stdio(path));
    let map = if found.as_ref().is_some_and(Metadata::is_file) || remote::uri(path).is_some() {
        check(found.map_or(0, |found| found.len()))?;
        read_into(path, buffer).map_err(failed)?
    } else {
        let source: Box<dyn Read> = match is_stdio(path) {
            true => Box::new(io::stdin().lock()),
            false => Box::new(File::open(path).map_err(failed)?),
        };
        let mut source = source.take(MOST_LIST_BYTES.saturating_add(1));
        source.read_to_end(buffer).map_err(failed)?;
        if let Some(expanded) = expand(buffer).map_err(|error| failed(error.into()))? {
            *buffer = expanded;
        }
        None
    };
    check(map.as_deref().unwrap_or(buffer).len() as u64)?;
    Ok(map)
}
