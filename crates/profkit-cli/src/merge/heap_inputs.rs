//! Finds the heap profiles among inputs.
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::memprof::yaml;
use profkit_merge::files::{InputList, is_stdio};
use profkit_merge::{InputStore, Inputs};
use std::fs::File;
use std::io::{self, Read};

/// The indexes of inputs that are not heap profiles: only these may need a binary to be merged. An input that cannot be
/// read is included; the merge reports it.
pub(super) fn no_heap_profiles(inputs: &InputList, opened: &InputStore<'_>) -> Vec<usize> {
    (0..inputs.files.len())
        .filter(|&index| {
            let kind = kind(inputs, opened, index);
            !kind.is_ok_and(|kind| kind.family() == Some(Family::MemProf))
        })
        .collect()
}

/// The kind of an input. Its first bytes are read first, and the whole file only if they do not decide it: reading
/// thousands of files whole takes long.
fn kind(inputs: &InputList, opened: &InputStore<'_>, index: usize) -> io::Result<FileKind> {
    let file = inputs.files.get(index).filter(|file| !is_stdio(&file.path));
    if let Some(file) = file.filter(|_| opened.can_reopen(index)) {
        let mut head = [0; 8];
        let read = File::open(&file.path)?.read(&mut head)?;
        let head = head.get(..read).unwrap_or_default();
        if !yaml::is_yaml(head) {
            return Ok(detect(head));
        }
    }
    opened.kind(index)
}
