//! Tells inputs apart by their families, before they are merged.
use super::args::Only;
use crate::print::plural;
use profkit_data::detect::{Family, FileKind, detect};
use profkit_merge::files::{InputList, is_stdio};
use profkit_merge::{InputStore, Inputs};
use std::fs::File;
use std::io::{self, Read};

/// Keeps the inputs of one family, and those that are not profiles or cannot be opened twice: the merge reports them.
/// Returns a note about the others.
pub(super) fn keep_only(only: Only, inputs: &mut InputList) -> Option<String> {
    let wanted = match only {
        Only::Instr => Family::Instr,
        Only::Sample => Family::Sample,
        Only::Heap => Family::MemProf,
    };
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
    (count > 0).then(|| {
        let family = wanted.profile();
        let count = plural(count, "profile");
        format!("{count} left out, because --only selects {family}s")
    })
}

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
        // Text, and what is compressed or in an archive, is known by more than its first bytes.
        let kind = detect(head);
        if kind.family().is_some() && !kind.is_text() {
            return Ok(kind);
        }
    }
    opened.kind(index)
}
