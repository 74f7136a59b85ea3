//! The index of binaries and its cache file.
use profkit_object::index::{BinaryIndex, IndexCache};
use profkit_testkit::fixture_path;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Copies a fixture to a path and sets its last change to `age` seconds ago.
fn put(fixture: &str, path: &Path, age: u64) {
    fs::copy(fixture_path(format!("correlation/{fixture}.image")), path).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let time = SystemTime::now() - Duration::from_secs(age);
    file.set_modified(time).unwrap();
}

/// Indexes the folder with the cache at `cache`, and saves the cache. Returns the ids in the order of paths, the number
/// of files that were read, and the number that were known from the cache.
fn index(folder: &Path, cache: &Path) -> (Vec<String>, u64, u64) {
    let mut cache = IndexCache::open(cache);
    let index = BinaryIndex::build(&[folder.to_owned()], &mut cache).unwrap();
    cache.save().unwrap();
    let ids = index.binaries.iter().flat_map(|binary| &binary.ids);
    (
        ids.map(ToString::to_string).collect(),
        index.looked_at,
        index.from_cache,
    )
}

fn place() -> (TempDir, PathBuf, PathBuf) {
    let place = TempDir::new().unwrap();
    let (folder, cache) = (
        place.path().join("binaries"),
        place.path().join("cache/profkit/binaries"),
    );
    fs::create_dir(&folder).unwrap();
    put("elf-binary", &folder.join("a"), 100);
    put("pe", &folder.join("b"), 100);
    fs::write(folder.join("c"), "no binary").unwrap();
    (place, folder, cache)
}

#[test]
fn files_are_read_again_when_size_or_time_change() {
    let (_place, folder, cache) = place();
    let (first, looked_at, known) = index(&folder, &cache);
    assert_eq!((first.len(), looked_at, known), (2, 3, 0));
    // `c` was changed less than two seconds ago, so it is not stored in the cache and is read again.
    assert_eq!(index(&folder, &cache), (first.clone(), 3, 2));
    // Change size and time of `a`; then only its time; then only its size.
    put("s390x-binary", &folder.join("a"), 50);
    let (second, _, known) = index(&folder, &cache);
    assert_eq!((second != first, &second[1], known), (true, &first[1], 1));
    put("s390x-binary", &folder.join("a"), 40);
    assert_eq!(index(&folder, &cache), (second.clone(), 3, 1));
    let a = folder.join("a");
    let time = fs::metadata(&a).unwrap().modified().unwrap();
    let file = File::options().append(true).open(&a).unwrap();
    file.set_len(fs::metadata(&a).unwrap().len() + 1).unwrap();
    file.set_modified(time).unwrap();
    drop(file);
    assert_eq!(index(&folder, &cache), (second.clone(), 3, 1));
    fs::remove_file(&a).unwrap();
    assert_eq!(index(&folder, &cache), (second[1..].to_vec(), 2, 1));
}

/// As an update of a package does it where all files get the same time.
#[test]
#[cfg(unix)]
fn an_exchanged_file_with_the_same_size_and_time_is_read_again() {
    let (_place, folder, cache) = place();
    let (first, ..) = index(&folder, &cache);
    let a = folder.join("a");
    let metadata = fs::metadata(&a).unwrap();
    let mut bytes = fs::read(&a).unwrap();
    bytes.fill(b'x');
    let other = folder.join("other");
    fs::write(&other, bytes).unwrap();
    let file = File::options().append(true).open(&other).unwrap();
    file.set_modified(metadata.modified().unwrap()).unwrap();
    fs::rename(&other, &a).unwrap();
    assert_eq!(index(&folder, &cache).0, first[1..]);
}

#[test]
fn a_damaged_cache_is_as_good_as_none() {
    let (_place, folder, cache) = place();
    let (ids, ..) = index(&folder, &cache);
    let text = fs::read_to_string(&cache).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines.len()), ("profkit binaries 2", 3));
    for (damaged, known) in [
        (String::new(), 0),
        ("\0\0\0".to_owned(), 0),
        (text.replace("binaries 2", "binaries 1"), 0),
        // Each of the following texts has one wrong line: a second entry that is cut off, a line that is no entry, a
        // build id that is not valid, an empty build id, and a number that is too large.
        (text[..text.len() - lines[2].len() + 3].to_owned(), 1),
        (text.replacen(lines[1], "x y z", 1), 1),
        (text.replacen(&ids[0], "0123456789abcdefg", 1), 1),
        (text.replacen(&ids[0], "", 1), 1),
        (format!("{text}99999999999999999999 1 1 - - /x\n"), 2),
    ] {
        fs::write(&cache, &damaged).unwrap();
        assert_eq!(
            index(&folder, &cache),
            (ids.clone(), 3, known),
            "{damaged:?}"
        );
    }
    // A cache that is not UTF-8.
    fs::write(&cache, [text.as_bytes(), b"\xff\xfe"].concat()).unwrap();
    assert_eq!(index(&folder, &cache), (ids, 3, 0));
}

#[test]
fn a_cache_without_room_changes_nothing_else() {
    let (place, folder, _) = place();
    // A file where a folder should be: even root cannot write there.
    fs::write(place.path().join("occupied"), "").unwrap();
    let mut cache = IndexCache::open(&place.path().join("occupied/profkit/binaries"));
    let index = BinaryIndex::build(&[folder], &mut cache).unwrap();
    assert_eq!(index.binaries.len(), 2);
    assert!(cache.save().is_err());
}

/// The reader also accepts lines that end in CR LF, so it takes a CR at the end of a path for a part of the line end.
/// Such a path cannot be stored, and must never be written.
#[test]
fn what_was_read_is_written_and_read_again() {
    let text = "profkit binaries 2\r\n1 2 7 3 - /a\r\n1 2 7 3 - /b\r";
    let written = IndexCache::parse(text).to_text();
    assert_eq!(written, "profkit binaries 2\n1 2 7 3 - /a\n");
    assert_eq!(IndexCache::parse(&written).to_text(), written);
}
