//! Fuzzes the file that stores an index of binaries.
use crate::merge::mixed;
use profkit_object::debug_files::DebugFolders;
use profkit_object::index::{BinaryIndex, IndexCache};
use profkit_testkit::{Rng, fixture_path, mutate};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, UNIX_EPOCH};

/// Reads any bytes as the index of binaries. The part that is understood must stay the same when it is written and read
/// again. Then a folder is indexed with it: a program, a copy of it where its build id says, and a file of these bytes; and
/// again with the index that was stored, whole and damaged.
///
/// # Panics
/// If what is understood does not stay the same, or if the index of the folder is another one with what was stored than with
/// nothing.
pub(crate) fn index_cache(data: &[u8]) {
    let cache = IndexCache::parse(&String::from_utf8_lossy(data));
    let text = cache.to_text();
    assert_eq!(IndexCache::parse(&text).to_text(), text);

    let folder = folder_in_memory();
    let searched = [folder.path().join("searched")];
    let [root] = &searched;
    let program = root.join("program");
    fs::create_dir(root).expect("a folder");
    write_long_ago(&program, a_program());
    let alone = indexed(std::slice::from_ref(&program), &mut IndexCache::none());
    let id = alone.binaries[0].ids[0].clone();
    let copy = DebugFolders::build_id_path(root, &id, ".debug").expect("a long build id");
    fs::create_dir_all(copy.parent().expect("a tree")).expect("a folder");
    fs::write(&copy, a_program()).expect("written");
    write_long_ago(&root.join("file"), data);
    let stored = folder.path().join("stored");
    fs::write(&stored, data).expect("written");

    // No bytes name a folder that was just made.
    let plain = indexed(&searched, &mut IndexCache::none());
    let mut cache = IndexCache::open(&stored);
    let first = indexed(&searched, &mut cache);
    same(&first, &plain);
    assert_eq!((first.looked_at, first.from_cache), (2, 0));
    assert!(first.has_trees());
    let copies = first.find(&id);
    assert!(copies.iter().any(|one| one.path == copy), "{copies:?}");
    cache.save().expect("saved");
    let saved = fs::read_to_string(&stored).expect("text");
    assert_eq!(IndexCache::parse(&saved).to_text(), saved);

    let again = indexed(&searched, &mut IndexCache::open(&stored));
    same(&again, &plain);
    // A file that cannot be read is read each time.
    assert_eq!(
        again.from_cache + again.unreadable.len() as u64,
        again.looked_at
    );
    let named = indexed(
        std::slice::from_ref(&program),
        &mut IndexCache::open(&stored),
    );
    assert_eq!((named.binaries.len(), named.from_cache), (1, 1));

    // A damaged store may say anything of a file that has the time and the size that it states.
    let mut damaged = saved.into_bytes();
    mutate(&mut damaged, data, &mut Rng::new(mixed(data) as u64));
    fs::write(&stored, damaged).expect("written");
    let mut cache = IndexCache::open(&stored);
    let found = indexed(&searched, &mut cache);
    if found.from_cache == 0 {
        same(&found, &plain);
    }
    cache.save().expect("saved");

    // What was stored of a file says nothing of another one in its place.
    fs::write(&program, data).expect("written");
    let plain = indexed(&searched, &mut IndexCache::none());
    let found = indexed(&searched, &mut IndexCache::open(&stored));
    let of_program = |index: &BinaryIndex| {
        index
            .binaries
            .iter()
            .find(|one| one.path == program)
            .cloned()
    };
    assert_eq!(of_program(&found), of_program(&plain));
}

/// The index of files and folders. Whatever is not a program by itself cannot be named.
fn indexed(paths: &[PathBuf], cache: &mut IndexCache) -> BinaryIndex {
    let index = BinaryIndex::build(paths, cache).expect("folders that exist, or a program");
    for binary in &index.binaries {
        for id in &binary.ids {
            assert!(index.find(id).contains(binary), "{binary:?}");
        }
    }
    index
}

fn same(one: &BinaryIndex, other: &BinaryIndex) {
    assert_eq!(one.binaries, other.binaries);
    assert_eq!(one.unreadable, other.unreadable);
}

/// On a disk, writing and removing the files would take ten times as long as all the rest.
fn folder_in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    folder.expect("a folder")
}

/// What changed a moment ago is not stored.
fn write_long_ago(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("written");
    let file = File::options().write(true).open(path).expect("a file");
    let long_ago = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    file.set_modified(long_ago).expect("a time");
}

fn a_program() -> &'static [u8] {
    static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let path = fixture_path("correlation/elf-binary.image");
        fs::read(path).expect("the fixture")
    })
}
