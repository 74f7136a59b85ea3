use crate::InputList;
use crate::Inputs;
use profkit_data::stored::{Compression, StoredError, expand};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const PROFILE: &[u8] = b"main\n1\n1\n5\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(0);
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn tar(runs: u64) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(0);
    builder.append_data(&mut header, "runs/", &[][..]).unwrap();
    for run in 0..runs {
        let profile = format!("main\n1\n1\n{run}\n");
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(profile.len() as u64);
        let name = format!("./runs/{run}.proftext");
        builder
            .append_data(&mut header, name, profile.as_bytes())
            .unwrap();
    }
    builder.into_inner().unwrap()
}

fn zip(runs: u64) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    writer.add_directory("runs/", options).unwrap();
    for run in 0..runs {
        writer
            .start_file(format!("runs/{run}.proftext"), options)
            .unwrap();
        write!(writer, "main\n1\n1\n{run}\n").unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn listed(path: &Path) -> InputList {
    InputList::collect(&[path.as_os_str().to_owned()], &[], None).unwrap()
}

fn bytes_of(list: &InputList, index: usize) -> Vec<u8> {
    list.open(index, &mut Vec::new()).unwrap().as_ref().to_vec()
}

#[test]
fn each_compression_is_told_by_its_magic_and_expanded() {
    for (compression, bytes) in [
        (Compression::Gzip, gzip(PROFILE)),
        (Compression::Zstd, zstd(PROFILE)),
        (Compression::Xz, xz(PROFILE)),
    ] {
        assert_eq!(Compression::of(&bytes), Some(compression));
        assert_eq!(
            expand(&bytes).unwrap().as_deref(),
            Some(PROFILE),
            "{compression}"
        );
        // Two compressed files, one after the other, decompress to both contents, as the tools do it.
        let twice = [bytes.clone(), bytes].concat();
        assert_eq!(
            expand(&twice).unwrap().unwrap(),
            [PROFILE, PROFILE].concat(),
            "{compression}"
        );
    }
    assert_eq!(Compression::of(PROFILE), None);
    assert!(expand(PROFILE).unwrap().is_none());
    assert_eq!(
        expand(&gzip(&zstd(PROFILE))).unwrap().as_deref(),
        Some(PROFILE)
    );
}

#[test]
fn a_skippable_zstd_frame_holds_nothing() {
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let bytes = [zstd(PROFILE), skippable.clone()].concat();
    assert_eq!(expand(&bytes).unwrap().as_deref(), Some(PROFILE));
    let cut = &bytes[..bytes.len() - 1];
    assert!(matches!(expand(cut), Err(StoredError::Damaged { .. })));
}

#[test]
fn damage_is_reported_with_the_bytes_before_it() {
    let noise: Vec<u8> = (0..20_000u32)
        .flat_map(|x| x.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect();
    for bytes in [gzip(&noise), zstd(&noise), xz(&noise)] {
        let compression = Compression::of(&bytes).unwrap();
        for cut in [bytes.len() / 2, bytes.len() - 1] {
            match expand(&bytes[..cut]) {
                Err(StoredError::Damaged { expanded, .. }) => {
                    assert!(expanded <= noise.len() as u64)
                }
                other => panic!("{compression} cut to {cut} bytes: {other:?}"),
            }
            // Before the cut, all bytes are right. The zstd decoder holds back more bytes than this file has.
            match profkit_data::stored::expand_front(&bytes[..cut]) {
                Err(StoredError::Damaged {
                    expanded: 0,
                    is_cut: true,
                    ..
                }) => assert_eq!(compression, Compression::Zstd),
                Ok(Some((front, Some(StoredError::Damaged { is_cut: true, .. })))) => {
                    assert!(noise.starts_with(&front) && front.len() > noise.len() / 4);
                }
                other => panic!("{compression} cut to {cut} bytes: {other:?}"),
            }
        }
        let mut flipped = bytes.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x10;
        assert!(expand(&flipped).is_err(), "{compression}");
    }
}

#[test]
fn expansion_has_a_limit() {
    let zeroes = gzip(&vec![0; 1 << 20]);
    let error = Compression::Gzip.expand(&zeroes, 1000).unwrap_err();
    assert!(
        matches!(error, StoredError::TooLarge { limit: 1000 }),
        "{error}"
    );
    assert_eq!(
        Compression::Gzip.expand(&zeroes, 1 << 20).unwrap().len(),
        1 << 20
    );
}

#[test]
fn the_members_of_every_archive_are_inputs() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("runs.tar", tar(3)),
        ("runs.tar.gz", gzip(&tar(3))),
        ("runs.tgz", gzip(&tar(3))),
        ("RUNS.TAR.ZST", zstd(&tar(3))),
        ("runs.tar.xz", xz(&tar(3))),
        ("runs.zip", zip(3)),
    ] {
        let path = write(folder.path(), name, &bytes);
        let list = listed(&path);
        assert_eq!(list.len(), 3, "{name}");
        assert!(list.notes.is_empty(), "{name}: {:?}", list.notes);
        // From the last to the first, so that the compressed tar must be decompressed from its start again.
        for _ in 0..2 {
            for run in (0..3).rev() {
                assert_eq!(
                    list.name(run),
                    format!("{}!runs/{run}.proftext", path.display())
                );
                assert_eq!(
                    bytes_of(&list, run),
                    format!("main\n1\n1\n{run}\n").as_bytes(),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn members_of_a_large_compressed_archive_are_read_by_several_threads() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = tar::Builder::new(Vec::new());
    // The members together are twice as large as the limit for kept members.
    for run in 0..64u8 {
        let mut header = tar::Header::new_gnu();
        header.set_size(2 << 20);
        builder
            .append_data(
                &mut header,
                format!("{run}.profraw"),
                &vec![run; 2 << 20][..],
            )
            .unwrap();
    }
    let path = write(
        folder.path(),
        "large.tar.gz",
        &gzip(&builder.into_inner().unwrap()),
    );
    let list = listed(&path);
    assert_eq!(list.len(), 64);
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if index >= list.len() {
                        break;
                    }
                    let bytes = bytes_of(&list, index);
                    assert_eq!(bytes.len(), 2 << 20);
                    assert!(bytes.iter().all(|&byte| usize::from(byte) == index));
                }
            });
        }
    });
}

#[test]
fn compressed_members_and_files_are_expanded() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "profile", &gzip(PROFILE));
    assert_eq!(bytes_of(&listed(&path), 0), PROFILE);
    let mut builder = tar::Builder::new(Vec::new());
    let member = xz(PROFILE);
    let mut header = tar::Header::new_gnu();
    header.set_size(member.len() as u64);
    builder
        .append_data(&mut header, "a.xz", &member[..])
        .unwrap();
    let path = write(folder.path(), "a.tar", &builder.into_inner().unwrap());
    assert_eq!(bytes_of(&listed(&path), 0), PROFILE);
}

#[test]
fn a_cut_archive_gives_the_members_before_the_cut() {
    use crate::InputNote;
    let folder = tempfile::tempdir().unwrap();
    let whole = tar(3);
    // Four blocks: the header of the folder, the header and the contents of one run, the header of the next.
    let cut = &whole[..512 * 4];
    for (name, bytes) in [("cut.tar", cut.to_vec()), ("cut.tar.gz", gzip(cut))] {
        let list = listed(&write(folder.path(), name, &bytes));
        assert_eq!(bytes_of(&list, 0), b"main\n1\n1\n0\n", "{name}");
        assert!(
            matches!(&list.notes[..], [InputNote::DamagedArchive { .. }]),
            "{name}: {:?}",
            list.notes
        );
    }
    let zip = zip(3);
    let list = listed(&write(folder.path(), "cut.zip", &zip[..zip.len() - 10]));
    assert_eq!(list.len(), 0);
    assert!(matches!(
        &list.notes[..],
        [InputNote::DamagedArchive { members: 0, .. }]
    ));
}

#[test]
fn what_only_has_the_name_of_an_archive_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for bytes in [PROFILE.to_vec(), gzip(PROFILE)] {
        let list = listed(&write(folder.path(), "profile.tar.gz", &bytes));
        assert_eq!(list.len(), 1);
        assert_eq!(bytes_of(&list, 0), PROFILE);
    }
}

#[test]
fn no_bytes_make_the_readers_panic() {
    use profkit_testkit::{Rng, mutate};
    let folder = tempfile::tempdir().unwrap();
    let mut random = Rng::new(7);
    for (name, good) in [
        ("a.tar", tar(2)),
        ("a.tar.gz", gzip(&tar(2))),
        ("a.tar.zst", zstd(&tar(2))),
        ("a.tar.xz", xz(&tar(2))),
        ("a.zip", zip(2)),
    ] {
        for _ in 0..200 {
            let mut bytes = good.clone();
            mutate(&mut bytes, PROFILE, &mut random);
            let list = listed(&write(folder.path(), name, &bytes));
            for index in 0..list.len() {
                let _ = list.open(index, &mut Vec::new());
            }
        }
    }
}

/// A block header declares a dictionary of 4 GiB less one byte. The reader must not allocate memory of that size.
#[test]
fn an_xz_file_that_states_a_huge_dictionary_is_refused() {
    let mut bytes = xz(PROFILE);
    // The stream header has 12 bytes. The block header follows: size, flags, filter LZMA2 (0x21), length 1, dictionary
    // size.
    let at = bytes[12..30]
        .windows(2)
        .position(|pair| pair == [0x21, 1])
        .unwrap();
    bytes[12 + at + 2] = 40;
    let size = (usize::from(bytes[12]) + 1) * 4;
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[12..12 + size - 4]);
    bytes[12 + size - 4..12 + size].copy_from_slice(&crc.sum().to_le_bytes());
    let error = expand(&bytes).unwrap_err();
    assert!(error.to_string().contains("mem_limit"), "{error}");
}

/// The header declares that the name of a member is 8 GiB long.
#[test]
fn a_compressed_archive_with_an_endless_name_ends() {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(8 << 30);
    header.set_path("././@LongLink").unwrap();
    header.set_cksum();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(header.as_bytes()).unwrap();
    for _ in 0..3 {
        encoder.write_all(&[b'a'; 1 << 20]).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "name.tar.gz", &encoder.finish().unwrap());
    let list = listed(&path);
    assert_eq!(list.len(), 0);
    let problem = format!("{:?}", list.notes);
    assert!(problem.contains("larger than 1 MiB"), "{problem}");
}

fn tar_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn zip_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in members {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// As `tar -x` leaves the last one.
#[test]
fn of_members_with_one_name_the_last_counts() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = tar_of(&[
        ("a.profraw", b"old"),
        ("b.profraw", b"only"),
        ("./a.profraw", b"newer"),
        ("c/a.profraw", b"another"),
        (".//a.profraw", b"newest"),
    ]);
    let extracted = folder.path().join("extracted");
    std::fs::create_dir(&extracted).unwrap();
    let path = write(folder.path(), "a.tar", &bytes);
    let tar = std::process::Command::new("tar")
        .arg("-xf")
        .arg(&path)
        .arg("-C")
        .arg(&extracted)
        .status();
    assert!(tar.is_ok_and(|status| status.success()));
    for (name, bytes) in [("a.tar", bytes.clone()), ("a.tar.gz", gzip(&bytes))] {
        let path = write(folder.path(), name, &bytes);
        let list = listed(&path);
        assert_eq!(list.len(), 3, "{name}");
        for index in 0..list.len() {
            let member = list.name(index).rsplit_once('!').unwrap().1.to_owned();
            let expected = std::fs::read(extracted.join(&member)).unwrap();
            assert_eq!(bytes_of(&list, index), expected, "{name}!{member}");
        }
        let notes: Vec<_> = list.notes.iter().map(ToString::to_string).collect();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].contains("is in the archive 3 times"),
            "{}",
            notes[0]
        );
    }
}

#[test]
fn archives_in_archives_are_opened_to_a_depth() {
    let folder = tempfile::tempdir().unwrap();
    let inner = gzip(&tar_of(&[("runs/1.proftext", PROFILE)]));
    for (name, outer) in [
        ("o.zip", zip_of(&[("in.tgz", &inner), ("b", PROFILE)])),
        ("o.tar", tar_of(&[("in.tgz", &inner), ("b", PROFILE)])),
        ("o.txz", xz(&tar_of(&[("in.tgz", &inner), ("b", PROFILE)]))),
    ] {
        let path = write(folder.path(), name, &outer);
        let list = listed(&path);
        assert!(list.notes.is_empty(), "{:?}", list.notes);
        let names: Vec<_> = (0..list.len()).map(|index| list.name(index)).collect();
        let path = path.display();
        assert_eq!(
            names,
            [
                format!("{path}!in.tgz!runs/1.proftext"),
                format!("{path}!b")
            ]
        );
        assert_eq!(bytes_of(&list, 0), PROFILE);
        // The names that reports print can be given again.
        for name in [names[0].as_ref(), &format!("{path}!in.tgz")] {
            let again = listed(Path::new(name));
            assert_eq!((again.len(), again.name(0)), (1, names[0].clone()));
            assert_eq!(bytes_of(&again, 0), PROFILE);
        }
        let opened = crate::Input::open(Path::new(names[0].as_ref())).unwrap();
        assert_eq!(opened.bytes(), PROFILE);
    }
    // Deeper than the limit, an archive is a file.
    let mut bytes = tar_of(&[("a.proftext", PROFILE)]);
    for _ in 0..super::MOST_NESTED {
        bytes = tar_of(&[("deep.tar", &bytes)]);
    }
    let list = listed(&write(folder.path(), "deep.tar", &bytes));
    assert_eq!(bytes_of(&list, 0), PROFILE);
    let list = listed(&write(
        folder.path(),
        "deeper.tar",
        &tar_of(&[("deep.tar", &bytes)]),
    ));
    assert!(list.name(0).ends_with("!deep.tar"), "{}", list.name(0));
}

#[test]
fn a_damaged_archive_in_an_archive_is_named() {
    use crate::InputNote;
    let folder = tempfile::tempdir().unwrap();
    let whole = tar(3);
    let cut = gzip(&whole[..512 * 4]);
    let path = write(
        folder.path(),
        "o.zip",
        &zip_of(&[("in.tar.gz", &cut), ("b", PROFILE)]),
    );
    let list = listed(&path);
    // The archive has the header of a second member, and none of its bytes.
    assert_eq!(list.len(), 3);
    assert!(list.open(1, &mut Vec::new()).unwrap().problem().is_some());
    let [InputNote::DamagedArchive { name, members, .. }] = &list.notes[..] else {
        panic!("{:?}", list.notes);
    };
    assert_eq!(
        (name.as_str(), *members),
        (&*format!("{}!in.tar.gz", path.display()), 2)
    );
}

#[test]
fn an_archive_has_limits() {
    use super::spool::Allowance;
    let bytes = gzip(&tar(3));
    let few = Allowance {
        members: 2,
        ..Allowance::default()
    };
    let small = Allowance {
        unpacked: 20,
        ..Allowance::default()
    };
    for mut allowance in [few, small] {
        let is_few = allowance.members == 2;
        let file = super::ArchiveFile::with_allowance(
            crate::InputData::Buffer(bytes.clone()),
            &mut allowance,
        );
        let file = file.unwrap();
        let [problem] = file.problems() else {
            panic!("{:?}", file.problems());
        };
        let is_expected = match problem.error {
            StoredError::TooManyMembers { .. } => is_few,
            StoredError::TooLarge { .. } => !is_few,
            _ => false,
        };
        assert!(is_expected, "{problem:?}");
        assert_eq!(file.members().len(), problem.members);
    }
}
