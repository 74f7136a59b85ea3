//! Finds out the family of each input of a merge, before the inputs are merged.
use crate::files::{InputList, is_stdio};
use crate::{InputStore, Inputs};
use profkit_data::Weight;
use profkit_data::detect::{Family, FileKind, detect};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};

/// Removes the profiles of all families but `wanted` from a list of inputs, and returns the number of removed inputs.
/// Inputs that are not profiles, or that cannot be opened twice, stay: the merge reports them.
pub fn keep_family(inputs: &mut InputList, wanted: Family) -> u64 {
    let opened = InputStore::new(inputs);
    let is_other = |index| {
        let family = kind(inputs, &opened, index).map(FileKind::family);
        matches!(family, Ok(Some(family)) if family != wanted)
    };
    let others: Vec<bool> = (0..inputs.len())
        .map(|index| inputs.can_reopen(index) && is_other(index))
        .collect();
    drop(opened);
    let count = others.iter().filter(|&&other| other).count() as u64;
    let mut others = others.into_iter();
    inputs.files.retain(|_| others.next() != Some(true));
    count
}

/// The indexes of the inputs that are not heap profiles: only such inputs can be raw instrumentation profiles, which
/// may need a binary. An input that cannot be read is included; the merge reports it.
pub fn not_heap_profiles(inputs: &InputList, opened: &InputStore<'_>) -> Vec<usize> {
    (0..inputs.files.len())
        .filter(|&index| {
            let kind = kind(inputs, opened, index);
            !kind.is_ok_and(|kind| kind.family() == Some(Family::MemProf))
        })
        .collect()
}

/// Returns the first input that is a heap profile and has a weight; `None` if there is none. Heap profiles are added up
/// as they are, so such a weight would have no effect.
pub fn weighted_heap_profile(inputs: &InputList, opened: &InputStore<'_>) -> Option<String> {
    let mut files = inputs.files.iter().enumerate();
    let found = files.find(|(index, file)| {
        file.weight != Weight::ONE
            && kind(inputs, opened, *index).is_ok_and(|kind| kind.family() == Some(Family::MemProf))
    });
    found.map(|(_, file)| file.name.clone())
}

/// Returns the first of these named files that is a program or object file; `None` if none of them is. Such a file
/// among the inputs of a merge was most likely meant for an option.
pub fn program_among(
    inputs: &InputList,
    opened: &InputStore<'_>,
    named: &[OsString],
) -> Option<String> {
    let mut files = inputs.files.iter().enumerate();
    let found = files.find(|(index, file)| {
        named.iter().any(|name| *name == file.path.as_os_str())
            && kind(inputs, opened, *index).is_ok_and(|kind| kind == FileKind::ObjectFile)
    });
    found.map(|(_, file)| file.name.clone())
}

/// The kind of an input. Its first bytes are read first. The whole file is read only if these bytes do not show the
/// kind, because reading thousands of whole files takes long.
fn kind(inputs: &InputList, opened: &InputStore<'_>, index: usize) -> io::Result<FileKind> {
    let file = inputs.files.get(index).filter(|file| !is_stdio(&file.path));
    if let Some(file) = file.filter(|_| opened.can_reopen(index)) {
        let mut head = [0; 8];
        let read = File::open(&file.path)?.read(&mut head)?;
        let head = head.get(..read).unwrap_or_default();
        // The first bytes do not show which kind of profile a text, a compressed file or an archive holds.
        let kind = detect(head);
        if kind.family().is_some() && !kind.is_text() {
            return Ok(kind);
        }
    }
    opened.kind(index)
}
