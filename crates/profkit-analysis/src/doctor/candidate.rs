//! Which files of a folder are examined.
use profkit_data::detect::{FileKind, detect};
use profkit_data::stored::ArchiveFormat;
use std::io::Read;
use std::path::Path;

/// The extensions of profiles.
const EXTENSIONS: [&str; 8] = [
    "afdo",
    "profraw",
    "profdata",
    "proftext",
    "memprofraw",
    "mipraw",
    "mipmap",
    "mip",
];
/// The extensions of compressed files that are read.
const COMPRESSED: [&str; 3] = ["gz", "xz", "zst"];

/// Whether a file in a folder is examined: if it has the extension of a profile, also before that of a compressed file, if it
/// has the name of an archive, or if it begins like a profile.
pub fn is_candidate(path: &Path) -> bool {
    let has_one_of = |path: &Path, known: &[&str]| {
        path.extension()
            .is_some_and(|extension| known.iter().any(|known| extension == *known))
    };
    let is_archive = path.file_name().is_some_and(ArchiveFormat::is_named_so);
    let is_stored =
        has_one_of(path, &COMPRESSED) && has_one_of(&path.with_extension(""), &EXTENSIONS);
    if is_archive || is_stored || has_one_of(path, &EXTENSIONS) {
        return true;
    }
    let mut head = Vec::new();
    let read = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)
        .and_then(|_| std::fs::File::open(path).ok())
        .and_then(|file| file.take(64).read_to_end(&mut head).ok());
    let kind = detect(&head);
    // A file without the extension of a profile is examined only if it begins with the magic of a profile. Text and MIP
    // maps have no magic, so they need the extension.
    read.is_some() && kind.family().is_some() && !kind.is_text() && kind != FileKind::MipMap
}
