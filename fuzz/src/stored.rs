//! Fuzzes files that contain profiles: compressed files and archives.
use profkit_data::stored::{
    Archive, Compression, expand_member, is_archive, is_compressed_tar, members_of_compressed_tar,
};
use std::borrow::Cow;

/// The largest number of bytes to which a file is expanded. It is smaller than the limit of the readers, because a few
/// bytes can expand to very many.
const MOST: u64 = 4 << 20;

/// Expands a compressed file, and reads the members of an archive.
///
/// # Panics
/// If a limit is exceeded; if expanding the front of a file and expanding the whole file give different results; if a
/// member differs when it is read again, or if there are more members than listed.
pub(crate) fn stored(data: &[u8]) {
    if let Some(compression) = Compression::of(data) {
        compressed(data, compression);
        if is_compressed_tar(data, compression) {
            compressed_tar(data, compression);
        }
    } else if is_archive(data) {
        archive(data);
    }
}

fn compressed(data: &[u8], compression: Compression) {
    let front = compression.expand_front(data, MOST);
    match (compression.expand(data, MOST), front) {
        (Ok(whole), Ok((front, None))) => {
            assert_eq!(whole, front);
            assert!(whole.len() as u64 <= MOST);
        }
        (Ok(_), other) => panic!("the whole file is sound, and its front is not: {other:?}"),
        (Err(_), Ok((front, Some(_)))) => assert!(front.len() as u64 <= MOST),
        (Err(_), Err(_)) => {}
        (Err(error), Ok((_, None))) => panic!("the front is all of a damaged file: {error}"),
    }
}

/// Lists an archive twice: once without reading its members, and once with reading the first members.
fn compressed_tar(data: &[u8], compression: Compression) {
    let mut names = Vec::new();
    let listed = members_of_compressed_tar(data, compression, |name, _| {
        names.push(name);
        Ok(names.len() < 64)
    });
    let mut again = Vec::new();
    let mut bytes = 0;
    let read = members_of_compressed_tar(data, compression, |name, member| {
        again.push(name);
        let mut copied = Vec::new();
        let (size, problem) = member.copy(&mut copied)?;
        assert_eq!(size, copied.len() as u64);
        bytes += size;
        nested((Cow::Owned(copied), problem));
        Ok(again.len() < 64 && bytes < MOST)
    });
    let common = names.len().min(again.len());
    assert_eq!(names.get(..common), again.get(..common));
    if listed.is_ok() && read.is_ok() && bytes < MOST {
        assert_eq!(names, again);
    }
}

fn archive(data: &[u8]) {
    let archive = Archive::open(data);
    let count = archive.members().len();
    for index in 0..count.min(64) {
        match (archive.read(index), archive.read(index)) {
            (Ok(one), Ok(two)) => assert_eq!(one.0, two.0),
            (Err(_), Err(_)) => {}
            (one, two) => panic!("member {index} differs: {one:?}, {two:?}"),
        }
    }
    assert!(archive.read(count).is_err());
}

/// Expands a member if it is compressed itself.
fn nested(member: (Cow<'_, [u8]>, Option<profkit_data::stored::StoredError>)) {
    match Compression::of(&member.0) {
        Some(compression) => compressed(&member.0, compression),
        None => assert!(expand_member(member).is_ok()),
    }
}
