use super::*;
use crate::bytes::{Cursor, Endian};
use proptest::prelude::*;

fn written(tables: &Tables) -> Vec<u8> {
    let mut out = Vec::new();
    tables.strings.write(&mut out).unwrap();
    assert_eq!(out.len(), tables.strings.encoded_len());
    let before = out.len();
    tables.paths.write(&mut out).unwrap();
    assert_eq!(out.len() - before, tables.paths.encoded_len());
    let before = out.len();
    tables.stacks.write(&mut out).unwrap();
    assert_eq!(out.len() - before, tables.stacks.encoded_len());
    out
}

fn read(data: &[u8]) -> Result<Tables> {
    let mut cursor = Cursor::new(data, 0, Endian::Little);
    let strings = StringTable::read(&mut cursor)?;
    let paths = PathTable::read(&mut cursor, strings.len())?;
    let stacks = StackTable::read(&mut cursor, strings.len(), paths.len())?;
    Ok(Tables {
        strings: strings.to_owned(),
        paths: paths.to_owned(),
        stacks: stacks.to_owned(),
    })
}

/// The frame of `main` in src/main.c, and a frame of `inner` in src/lib/inner.c, which is inlined into it.
fn example() -> Tables {
    let mut tables = Tables::default();
    let function = tables.strings.intern(b"main").unwrap();
    let path = Some(tables.intern_path(b"src/main.c").unwrap());
    let main = StackEntry {
        function,
        path,
        line: 3,
        column: 1,
        ..StackEntry::default()
    };
    let main = tables.stacks.intern(main).unwrap();
    let inner = StackEntry {
        function: tables.strings.intern(b"inner").unwrap(),
        path: Some(tables.intern_path(b"src/lib/inner.c").unwrap()),
        line: 70,
        column: 9,
        flags: StackFlags::INLINED,
        parent: Some(main),
    };
    assert_eq!(tables.stacks.intern(inner).unwrap(), StackId(1));
    tables
}

#[test]
fn bytes_of_an_example() {
    // The tables have the strings main, src, main.c, inner, lib, inner.c and the paths src, src/main.c, src/lib,
    // src/lib/inner.c.
    let mut expected = Vec::new();
    for word in [6u32, 28, 4, 7, 13, 18, 21, 28] {
        expected.extend(word.to_le_bytes());
    }
    expected.extend(b"mainsrcmain.cinnerlibinner.c");
    for word in [4u32, 0, 1, 1, 2, 1, 4, 3, 5] {
        expected.extend(word.to_le_bytes());
    }
    for word in [2u32, 0, 2, 3, 1, 0, 0, 3, 4, 70, 9, 1, 1] {
        expected.extend(word.to_le_bytes());
    }
    assert_eq!(written(&example()), expected);
    assert_eq!(read(&expected).unwrap(), example());
}

#[test]
fn a_stack_is_walked_from_its_innermost_frame() {
    let tables = example();
    let frames: Vec<_> = tables.frames(Some(StackId(1))).collect();
    let shown: Vec<_> = frames
        .iter()
        .map(|frame| {
            let path = frame.path.as_deref().unwrap_or_default();
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            (text(frame.function), text(path), frame.line)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("inner".into(), "src/lib/inner.c".into(), 70),
            ("main".into(), "src/main.c".into(), 3)
        ]
    );
    assert!(frames[0].flags.contains(StackFlags::INLINED));
    assert_eq!(tables.frames(None).count(), 0);
}

#[test]
fn tables_that_were_read_can_be_added_to() {
    let mut tables = read(&written(&example())).unwrap();
    assert_eq!(tables.strings.intern(b"lib").unwrap(), StringId(4));
    assert_eq!(tables.intern_path(b"src/lib").unwrap(), PathId(2));
    let known = tables.stacks.get(StackId(0)).unwrap();
    assert_eq!(tables.stacks.intern(known).unwrap(), StackId(0));
    assert_eq!(tables, example());
    let around = StackEntry {
        parent: Some(StackId(2)),
        ..known
    };
    insta::assert_snapshot!(
        tables.stacks.intern(around).unwrap_err(),
        @"stack entry table: the index of a frame is out of bounds: found 2, expected an index below 2"
    );
}

/// Replaces one word of the example and returns the error that reading it gives.
fn damaged(at: usize, word: u32) -> String {
    let mut data = written(&example());
    data[at..at + 4].copy_from_slice(&word.to_le_bytes());
    read(&data).unwrap_err().to_string()
}

#[test]
fn messages() {
    let whole = written(&example());
    insta::assert_snapshot!(read(&whole[..10]).unwrap_err(), @"string table, at offset 0x8: the data are too short here: found 2 bytes left, expected 24 bytes");
    insta::assert_snapshot!(damaged(0, u32::MAX), @"string table, at offset 0x8: the data are too short here: found 140 bytes left, expected 17179869180 bytes");
    insta::assert_snapshot!(damaged(4, u32::MAX), @"string table, at offset 0x20: the data are too short here: found 116 bytes left, expected 4294967295 bytes");
    insta::assert_snapshot!(damaged(12, 3), @"string table, at offset 0xc: the end offset of a string is before its start or beyond the table: found 3, expected 4 to 28");
    insta::assert_snapshot!(damaged(28, 27), @"string table, at offset 0x3b: some bytes belong to no string: found 1 byte, expected none");
    let paths = 60;
    insta::assert_snapshot!(damaged(paths, 1 << 30), @"file path table, at offset 0x40: the data are too short here: found 84 bytes left, expected 8589934592 bytes");
    insta::assert_snapshot!(damaged(paths + 4, 1), @"file path table, at offset 0x40: a folder does not come before its contents: found 0, expected an index below 0");
    insta::assert_snapshot!(damaged(paths + 8, 6), @"path of file path table, at offset 0x40: the index of a string is out of bounds: found 6, expected an index below 6");
    let stacks = paths + 36;
    insta::assert_snapshot!(damaged(stacks, 3), @"stack entry table, at offset 0x64: the data are too short here: found 48 bytes left, expected 72 bytes");
    insta::assert_snapshot!(damaged(stacks + 4, 6), @"frame of stack entry table, at offset 0x64: the index of a string is out of bounds: found 6, expected an index below 6");
    insta::assert_snapshot!(damaged(stacks + 8, 5), @"frame of stack entry table, at offset 0x64: the index of a path is out of bounds: found 4, expected an index below 4");
    insta::assert_snapshot!(damaged(stacks + 20, 4), @"frame of stack entry table, at offset 0x64: there are unknown flags: found 0x4, expected only bits of 0x3");
    insta::assert_snapshot!(damaged(stacks + 24, 1), @"stack entry table, at offset 0x64: a frame does not come after its outer frame: found 0, expected an index below 0");
}

#[test]
fn chains_have_a_limit() {
    let mut tables = Tables::default();
    let deepest = vec![b'/'; usize::from(crate::limits::TABLE_DEPTH) - 1];
    tables.intern_path(&deepest).unwrap();
    read(&written(&tables)).unwrap();
    tables.intern_path(&[&deepest[..], b"/"].concat()).unwrap();
    insta::assert_snapshot!(read(&written(&tables)).unwrap_err(), @"file path table, at offset 0x8010: a path or a call stack is too long: found 4097 entries, expected at most 4096");
}

#[test]
fn no_cut_and_no_flip_is_trouble() {
    let whole = written(&example());
    for end in 0..whole.len() {
        let error = read(&whole[..end]).unwrap_err();
        assert!(
            error.offset().is_some() && !error.structures().is_empty(),
            "{error}"
        );
    }
    for bit in 0..8 * whole.len() {
        let mut data = whole.clone();
        data[bit / 8] ^= 1 << (bit % 8);
        match read(&data) {
            Ok(tables) => {
                tables.check().unwrap();
                for id in (0..).map(StackId).take(tables.stacks.len()) {
                    assert!(tables.frames(Some(id)).count() <= tables.stacks.len());
                }
            }
            Err(error) => assert!(error.offset().is_some() && !error.structures().is_empty()),
        }
    }
}

proptest! {
    #[test]
    fn paths_come_back_as_they_were(paths in proptest::collection::vec("[a-c/]{0,12}", 0..20)) {
        let mut tables = Tables::default();
        let ids: Vec<_> = paths
            .iter()
            .map(|path| tables.intern_path(path.as_bytes()).unwrap())
            .collect();
        let again = read(&written(&tables)).unwrap();
        prop_assert_eq!(&again, &tables);
        for (path, id) in paths.iter().zip(ids) {
            let bytes = again.paths.get(id, &again.strings).unwrap();
            prop_assert_eq!(&*bytes, path.as_bytes());
        }
        // Paths that begin with the same components share the nodes of these components.
        let mut prefixes: Vec<&[u8]> = paths
            .iter()
            .flat_map(|path| {
                let bytes = path.as_bytes();
                let slashes = (0..bytes.len()).filter(|&at| bytes[at] == b'/');
                slashes.map(|at| &bytes[..at]).chain([bytes])
            })
            .collect();
        prefixes.sort();
        prefixes.dedup();
        prop_assert_eq!(tables.paths.len(), prefixes.len());
    }

    #[test]
    fn strings_are_kept_once(strings in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..6), 0..50)) {
        let mut table = Strings::default();
        for string in &strings {
            let id = table.intern(string).unwrap();
            prop_assert_eq!(table.get(id), Some(&string[..]));
        }
        let mut distinct = strings;
        distinct.sort();
        distinct.dedup();
        prop_assert_eq!(table.len(), distinct.len());
    }
}
