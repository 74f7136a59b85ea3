use super::*;

fn shown(map: &[u8]) -> String {
    let map = MipMap::parse(map).unwrap();
    map.entries()
        .map(|entry| {
            let entry = entry.unwrap();
            let blocks: Vec<_> = entry.blocks.iter().map(|block| u32::from_le_bytes(*block)).collect();
            format!(
                "{} at {:#x}: record {:#x} address {:#x} size {:#x} signature {:#x} modes {:#x} blocks {blocks:?}\n",
                String::from_utf8_lossy(entry.name),
                entry.offset,
                entry.record_offset,
                entry.address,
                entry.size,
                entry.signature,
                entry.modes.0,
            )
        })
        .collect()
}

#[test]
fn the_published_map_of_version_8() {
    insta::assert_snapshot!(shown(V8_MAP), @r"
foo at 0x20: record 0x20 address 0x100 size 0x10 signature 0xe7715 modes 0x1 blocks [4]
main at 0x48: record 0x21 address 0x110 size 0x30 signature 0x1111 modes 0x1 blocks []
");
    let map = MipMap::parse(V8_MAP).unwrap();
    assert_eq!(map.identity(), &Identity::ModuleHash(0xdead_beef));
    assert_eq!((map.version(), map.width()), (8, Some(Width::Bits64)));
}

/// The example map in the documentation of the original format: layout B, for a 32-bit target.
fn narrow() -> ByteBuilder {
    let mut map = ByteBuilder::new(Endian::Little);
    map.u32(0x5049_4dfb).u16(8).label("type").u16(0x24);
    map.label("modes").u32(1).u32(0xdead_beef).u32(0xffff_fea0);
    map.u32(0).u32(0).label("data").u32(0x20);
    // The records begin 0x160 bytes before the map, so 0x180 bytes before the map entry, whose offset is 0x20.
    map.u32(0xffff_fea0)
        .u32(0xffff_ff80)
        .u32(0x10)
        .u32(0xe_7715);
    map.label("blocks").u32(0).u32(3).bytes(b"foo").align(4);
    map.u32(0xffff_fe89).u32(0xffff_ff78).u32(0x30).u32(0x1111);
    map.u32(0).label("length").u32(4).bytes(b"main");
    map
}

#[test]
fn layout_b_of_32_bits() {
    insta::assert_snapshot!(shown(&narrow().finish()), @r"
foo at 0x20: record 0x20 address 0x100 size 0x10 signature 0xe7715 modes 0x1 blocks []
main at 0x3c: record 0x25 address 0x114 size 0x30 signature 0x1111 modes 0x1 blocks []
");
}

/// The functions of the same example in layout A1. Each of its map entries has its own offset to the records.
fn layout_a1() -> ByteBuilder {
    let mut map = ByteBuilder::new(Endian::Little);
    map.u32(0x5049_4dfb)
        .u16(8)
        .label("type")
        .u16(2)
        .u32(3)
        .u32(0xdead_beef);
    map.label("start").u32(0).label("data").u32(0x18);
    map.u32(0xffff_fe80).u32(0xffff_fe98).u32(0xffff_ff80);
    map.u32(0x10)
        .u32(0xe_7715)
        .u32(1)
        .u32(4)
        .u32(3)
        .bytes(b"foo")
        .align(8);
    map.u32(0xffff_fe58).u32(0xffff_fe72).u32(0xffff_ff68);
    map.u32(0x30).u32(0x1111).u32(0).u32(4).bytes(b"main");
    map
}

#[test]
fn layout_a1_is_read_and_a2_refused() {
    let map = layout_a1();
    insta::assert_snapshot!(shown(&map.finish()), @r"
foo at 0x18: record 0x18 address 0x100 size 0x10 signature 0xe7715 modes 0x3 blocks [4]
main at 0x40: record 0x1a address 0x110 size 0x30 signature 0x1111 modes 0x3 blocks []
");
    let mut a2 = map.clone();
    a2.patch_u32("start", 0x1000);
    insta::assert_snapshot!(refused(&a2), @"
    header of map, at offset 0x10: the map has layout A2, which no finished tool ever wrote: found 0x1000, expected 0, as in layout A1 of MIP version 8
    hint: only layouts A1 and B are read
    ");
}

fn refused(map: &ByteBuilder) -> String {
    let bytes = map.finish();
    match created(&bytes, &ImageFacts::new()) {
        Err(error) => message(&error),
        Ok(created) => created
            .dropped
            .iter()
            .map(message)
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

#[test]
fn damaged_maps_of_version_8() {
    let with = |label: &str, value: u32| {
        let mut map = narrow();
        map.patch_u32(label, value);
        refused(&map)
    };
    insta::assert_snapshot!(with("type", 0x0001_0004), @"header of map, at offset 0x6: the map does not state the width of its addresses: found no width in the file type, expected 0x14 or 0x24");
    insta::assert_snapshot!(with("type", 0x0001_0034), @"header of map, at offset 0x6: the file type claims both 64-bit and 32-bit addresses: found file type 0x34, expected one of the bits 0x10 and 0x20");
    insta::assert_snapshot!(with("type", 0x0001_0064), @"header of map, at offset 0x6: the file type has unknown bits: found 0x64, expected only bits of 0x3f");
    insta::assert_snapshot!(with("type", 0x0001_0021), @"
    header of map, at offset 0x6: this is another kind of MIP file: found a raw file, expected a map
    hint: merge raw files into a profile first
    ");
    insta::assert_snapshot!(with("type", 0x0001_0022), @"
    header of map, at offset 0x6: this is another kind of MIP file: found a file of return-address samples, expected a map
    hint: no tool ever wrote such files for version 8, so their layout is unknown
    ");
    insta::assert_snapshot!(with("modes", 0x10), @"header of map, at offset 0x8: the profile type does not exist in version 8: found 0x10, expected 0x1, 0x3, 0xc or 0xe");
    insta::assert_snapshot!(with("modes", 0x8000_0001), @"header of map, at offset 0x8: the profile type does not exist in version 8: found 0x80000001, expected 0x1, 0x3, 0xc or 0xe");
    insta::assert_snapshot!(with("data", 0x1c), @"header of map, at offset 0x14: the offset to the data fits no layout of version 8: found 0x0 at offset 0x14 and 0x1c at offset 0x1c, expected 0x18 at offset 0x14, or 0x20 at offset 0x1c");
    insta::assert_snapshot!(with("blocks", 1), @"map entry of map, at offset 0x3c: the data are too short here: found 28 bytes left, expected 7303014 bytes");
    insta::assert_snapshot!(with("length", 5), @"map entry of map, at offset 0x54: the data are too short here: found 4 bytes left, expected 5 bytes");
}

#[test]
fn a_map_of_version_9() {
    let image = mixed_image();
    insta::assert_snapshot!(shown(&image.map().finish()), @r"
main at 0x28: record 0x0 address 0x401000 size 0x40 signature 0x1003 modes 0x1e blocks [8, 16, 24]
_ZN3one3twoEi at 0x60: record 0xc address 0x401040 size 0x40 signature 0x1000 modes 0x1c blocks []
covered at 0x98: record 0x14 address 0x401080 size 0x40 signature 0x1002 modes 0x3 blocks [8, 16]
-[Unary counter:] at 0xd0: record 0x17 address 0x4010c0 size 0x40 signature 0x1000 modes 0x21 blocks []
never at 0x110: record 0x18 address 0x401100 size 0x40 signature 0x1000 modes 0x1 blocks []
");
    assert!(is_map(&image.map().finish()));
    assert!(!is_map(V8_MAP) && !is_map(b"text that is no map, but long enough for one"));
    // The reader skips zero bytes between two sections of a map.
    let mut padded = vec![0; 16];
    padded.extend(image.map().finish());
    padded.extend([0; 24]);
    assert_eq!(
        MipMap::parse(&padded).unwrap().entries().count(),
        image.functions.len()
    );
    // The first byte of this map entry is 0, because its size is 0x200 and is stored little-endian. The reader must not
    // skip this byte as padding.
    let long = made::MipImage::new(
        b"id",
        vec![made::MipFunction::new(
            "n".repeat(0x200 - 40),
            made::COVERAGE,
            0,
        )],
    );
    let long = long.map().finish();
    assert_eq!(MipMap::parse(&long).unwrap().entries().count(), 1);
    let profile = mixed();
    let (offsets, _) = image.layout();
    for ((function, made), offset) in profile.functions.iter().zip(&image.functions).zip(offsets) {
        assert_eq!(function.name, made.name.as_bytes());
        assert_eq!(function.record_offset, offset as u64);
        assert_eq!(function.blocks.len(), made.blocks.len());
    }
}

#[test]
fn damaged_maps_of_version_9() {
    let image = mixed_image();
    let with = |label: &str, value: u32| {
        let mut map = image.map();
        map.patch_u32(label, value);
        refused(&map)
    };
    insta::assert_snapshot!(with("main", 36), @"map, at offset 0x28: the size of a map entry is impossible: found 36, expected a multiple of 8, at least 40");
    insta::assert_snapshot!(with("main", 60), @"map, at offset 0x28: the size of a map entry is impossible: found 60, expected a multiple of 8, at least 40");
    insta::assert_snapshot!(with("never", 1 << 20), @"map entry of map, at offset 0x110: the data are too short here: found 48 bytes left, expected 1048576 bytes");
    insta::assert_snapshot!(with("never", 0), @"map, at offset 0x110: the size of a map entry is impossible: found 0, expected a multiple of 8, at least 40");
    insta::assert_snapshot!(with("main.modes", 0x2), @"map entry of map, at offset 0x2c: the mode flags are not a valid combination: found 0x2, expected 0x1 (coverage), 0x21 (unary) or 0xc (calls), with or without 0x2 (blocks), 0x10 (return addresses) and 0x80 (call edges, only with calls); 0x40 (part) and 0x400 (inferred blocks) only with 0x2");
    insta::assert_snapshot!(with("main.modes", 0xd), @"map entry of map, at offset 0x2c: the mode flags are not a valid combination: found 0xd, expected 0x1 (coverage), 0x21 (unary) or 0xc (calls), with or without 0x2 (blocks), 0x10 (return addresses) and 0x80 (call edges, only with calls); 0x40 (part) and 0x400 (inferred blocks) only with 0x2");
    insta::assert_snapshot!(with("main.modes", 0x2_000c), @"map entry of map, at offset 0x2c: the mode flags are not a valid combination: found 0x2000c, expected 0x1 (coverage), 0x21 (unary) or 0xc (calls), with or without 0x2 (blocks), 0x10 (return addresses) and 0x80 (call edges, only with calls); 0x40 (part) and 0x400 (inferred blocks) only with 0x2");
    insta::assert_snapshot!(with("main.modes", 0x1_000c), @r"
    map entry of map, at offset 0x2c: the map holds distances from its own place in the program, not addresses
    hint: give the program from which the map was extracted: the map of a Mach-O program cannot be read alone
    ");
    insta::assert_snapshot!(with("main.blocks", u32::MAX), @"map entry of map, at offset 0x48: the size of the entry does not match its blocks and name: found an entry of 56 bytes with 4294967295 blocks and a name of 4 bytes, expected 17179869224 bytes, padded to a multiple of 8");
    insta::assert_snapshot!(with("main.length", 13), @"map entry of map, at offset 0x48: the size of the entry does not match its blocks and name: found an entry of 56 bytes with 3 blocks and a name of 13 bytes, expected 65 bytes, padded to a multiple of 8");
    insta::assert_snapshot!(with("anchor.modes", 1), @"
    map, at offset 0x140: the map has no anchor entry: expected an entry with mode 0, which has the address of the record section
    hint: give the binary instead of the map
    ");
    insta::assert_snapshot!(with("never.record", 0), @"map entry of never, at offset 0x110: a record lies outside the record section: found 1 bytes at offset 0xffffffffffbfc000, expected an end at 0x10000000000 or before");
    insta::assert_snapshot!(with("covered.record", 0x40_4004), @"map entry of covered, at offset 0x98: a record overlaps another record: found offset 0x4, expected at least 0xb, where the record of main ends");
    let mut stray = image.map();
    stray.bytes([1]);
    insta::assert_snapshot!(refused(&stray), @"map, at offset 0x140: the data are too short here: found 1 byte left, expected 4 bytes");
    let mut padding = image.map();
    let name = padding.offset("never.name");
    padding.label_at("padding", name + 5).patch_u8("padding", 1);
    insta::assert_snapshot!(refused(&padding), @"map entry of map, at offset 0x13d: the padding is not zero");
    insta::assert_snapshot!(refused(&ByteBuilder::new(Endian::Little)), @"map: the map is empty");
    let raw = ByteBuilder::from_bytes(Endian::Little, image.raw(&image.records()));
    insta::assert_snapshot!(refused(&raw), @"
    header of map, at offset 0x6: this is another kind of MIP file: found a raw file, expected a map
    hint: merge raw files into a profile first
    ");
    let moved = MipMap::parse_with(
        &image.map().finish(),
        &MapReadOptions::new().section_address(Some(0x1000)),
    )
    .unwrap_err();
    insta::assert_snapshot!(message(&moved), @"
    map, at offset 0x0: an anchor entry states a wrong address for the record section: found 0x404000, expected 0x1000, the address in the binary
    hint: use the map of the linked image, not of its object files
    ");
}

#[test]
fn functions_that_share_a_record_stay() {
    let image = mixed_image();
    let (offsets, _) = image.layout();
    // Give the function `never` the same record as the function with the unary counter. Functions can share a record
    // only if their modes are equal, so `never` is left out.
    let mut across = image.map();
    across.patch_u64("never.record", made::MipImage::SECTION + offsets[3] as u64);
    insta::assert_snapshot!(refused(&across), @"map entry of never, at offset 0x110: a record overlaps another record: found offset 0x17, expected at least 0x18, where the record of -[Unary counter:] ends");
    let mut shared = made::MipImage::new(
        b"id",
        ["a", "b", "c"]
            .map(|name| made::MipFunction::new(name, made::COVERAGE, 0))
            .to_vec(),
    )
    .map();
    shared.patch_u64("c.record", made::MipImage::SECTION + 1);
    let created = created(&shared.finish(), &ImageFacts::new()).unwrap();
    assert_eq!(
        (created.shared_records, created.profile.functions.len()),
        (1, 3)
    );
}
