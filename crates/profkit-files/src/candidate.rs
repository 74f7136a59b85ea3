//! Tells profiles from the other files of a folder or an archive.
use crate::InputData;
use profkit_data::detect::{FileKind, detect};
use profkit_data::stored::expand_front;
use profkit_data::{ForeignFile, sound_family};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The number of bytes at the start of a file that are read to find out whether it is a profile.
pub(super) const FRONT: u64 = 64 << 10;

/// Whether a file in a folder may be a profile. Every file with the extension of a profile is accepted; another file is
/// accepted if it begins with the magic of a profile, or is a text that can be read as a profile.
pub(super) fn may_be_profile(path: &Path) -> bool {
    if has_extension(path) {
        return true;
    }
    let mut head = Vec::new();
    let file = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)
        .and_then(|_| File::open(path).ok());
    let Some(mut file) = file else {
        // A folder stays in the list, and so does a file that cannot be opened: the caller then reports it.
        return true;
    };
    if file.by_ref().take(64).read_to_end(&mut head).is_err() {
        return false;
    }
    let compressed = matches!(
        detect(&head),
        FileKind::Foreign(ForeignFile::Gzip | ForeignFile::Zstd | ForeignFile::Xz)
    );
    if compressed && file.by_ref().take(FRONT).read_to_end(&mut head).is_ok() {
        let front = expand_front(&head).ok().flatten();
        return front.is_some_and(|(bytes, _)| begins_like(&bytes));
    }
    begins_like(&head) || file.take(FRONT).read_to_end(&mut head).is_ok() && is_text_profile(&head)
}

/// Whether a file whose first bytes these are, and whose name says nothing, may be a profile.
pub(super) fn front_may_be_profile(front: &[u8]) -> bool {
    match expand_front(front) {
        Ok(Some((bytes, _))) => begins_like(&bytes) || is_text_profile(&bytes),
        _ => begins_like(front) || is_text_profile(front),
    }
}

/// Whether a member of an archive may be a profile, by the same rules.
pub(super) fn member_may_be_profile<'a>(
    name: &str,
    read: impl FnOnce() -> Option<InputData<'a>>,
) -> bool {
    let is_one = |bytes: &[u8]| {
        let most = usize::try_from(FRONT).unwrap_or(bytes.len());
        let front = bytes.get(..most).unwrap_or(bytes);
        begins_like(front) || is_text_profile(front)
    };
    // A member that cannot be read stays in the list: the caller then reports it.
    has_extension(Path::new(name)) || read().is_none_or(|data| is_one(data.as_ref()))
}

/// Whether a text is a profile, whatever its name: its beginning can be read as one.
fn is_text_profile(front: &[u8]) -> bool {
    detect(front).is_text() && sound_family(front).is_some()
}

/// Whether a file begins with the magic of a profile. Text profiles have no magic, and only their
/// extension shows MIP maps.
fn begins_like(head: &[u8]) -> bool {
    let kind = detect(head.get(..64).unwrap_or(head));
    kind.family().is_some() && !kind.is_text() && kind != FileKind::MipMap
}

/// Whether a file has the extension of a profile or a part of a merge. An extension of a compressed file may follow, as in
/// `a.profraw.gz`.
pub(super) fn has_extension(path: &Path) -> bool {
    is_named_as_profile(path) || is_named(path, &["pkpart"])
}

/// Whether the extension of a file says which kind of profile it is, and that it is no part of a merge. An extension of a
/// compressed file may follow.
pub fn is_named_as_profile(path: &Path) -> bool {
    const PROFILES: [&str; 8] = [
        "afdo",
        "profraw",
        "profdata",
        "proftext",
        "memprofraw",
        "mipraw",
        "mipmap",
        "mip",
    ];
    is_named(path, &PROFILES)
}

fn is_named(path: &Path, extensions: &[&str]) -> bool {
    let is_one = |path: &Path, known: &[&str]| {
        let extension = path.extension();
        extension.is_some_and(|extension| known.iter().any(|known| extension == *known))
    };
    let stem = path.file_stem().map_or(Path::new(""), Path::new);
    is_one(path, extensions) || is_one(path, &["gz", "zst", "xz"]) && is_one(stem, extensions)
}
