//! Checks that the MIP fixtures have the bytes that this test builds. `BLESS=1` writes the fixtures.
use profkit_data::ids::BuildId;
use profkit_data::mip::{
    ImageFacts, MipMap, MipProfile, MipWriteOptions, ProfileVersion, RawParts, Width, calls_record,
    write, yaml,
};
use profkit_testkit::mip::{MipImage, V8_MAP, V8_RAW, mixed_image};
use profkit_testkit::{ByteBuilder, Endian, fixture_path};

fn check(name: &str, bytes: &[u8]) {
    let path = fixture_path("mip").join(name);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, bytes).expect("a writable fixture");
    }
    let kept = std::fs::read(&path).expect("a fixture");
    assert!(
        kept == bytes,
        "{name} is not what is built (BLESS=1 writes it)"
    );
}

fn written(profile: &MipProfile, version: ProfileVersion) -> Vec<u8> {
    let mut out = Vec::new();
    write(profile, &MipWriteOptions::new().version(version), &mut out).expect("all has a place");
    out
}

fn created(map: &[u8]) -> MipProfile {
    let map = MipMap::parse(map).expect("a sound map");
    let created = MipProfile::create(&map, &ImageFacts::new());
    created.expect("a sound map").profile
}

#[test]
fn version_8() {
    check("v8-b.mipmap", V8_MAP);
    check("v8-b.mipraw", V8_RAW);
    check("v8-b.mip", &written(&created(V8_MAP), ProfileVersion::V8));
    // The same functions in layout A1, with block coverage.
    let mut map = ByteBuilder::new(Endian::Little);
    map.u32(0x5049_4dfb).u16(8).u16(2).u32(3).u32(0xdead_beef);
    map.u32(0).u32(0x18);
    map.u32(0xffff_fe80).u32(0xffff_fe98).u32(0xffff_ff80);
    map.u32(0x10).u32(0xe_7715).u32(1).u32(4).u32(3);
    map.bytes(b"foo").align(8);
    map.u32(0xffff_fe58).u32(0xffff_fe72).u32(0xffff_ff68);
    map.u32(0x30).u32(0x1111).u32(0).u32(4).bytes(b"main");
    check("v8-a1.mipmap", &map.finish());
    let mut raw = ByteBuilder::new(Endian::Little);
    raw.u32(0x5049_4dfb).u16(8).u16(1).u32(3).u32(0xdead_beef);
    raw.u32(0).u32(0x18).bytes([0, 0, 0xff]);
    check("v8-a1.mipraw", &raw.finish());
    assert_eq!(
        created(&map.finish()).functions.as_slice()[1].record_offset,
        0x1a
    );
}

#[test]
fn version_9() {
    let image = mixed_image();
    check("mixed.mipmap", &image.map().finish());
    let first = image.run(&[(0, 1, 1), (1, 20, 2), (2, 1, 0), (3, 3, 0)]);
    // A return address in main, at offset 0x15.
    let call = 0u32.wrapping_sub(0x3000 - 0x15);
    let first = image
        .raw_with(&first, 1, &[(12, call), (12, call)])
        .finish();
    check("mixed-1.mipraw", &first);
    let second = image.raw(&image.run(&[(0, 1, 1), (3, 9, 0)]));
    check("mixed-2.mipraw", &second);
    // A raw file in which several runs were added up: a part with the sum of three runs, followed by a part of one more
    // run.
    let pool = image.raw_with(&image.run(&[(0, 3, 1)]), 3, &[]).finish();
    check("mixed-pool.mipraw", &[&pool[..], &second].concat());
    let other = MipImage::new(&[1; 20], image.functions.clone());
    check("other.mipraw", &other.raw(&other.records()));
    let part = RawParts::new(&first)
        .next()
        .expect("a part")
        .expect("sound");
    assert_eq!(calls_record(19, 2).calls, 20);
    assert_eq!(part.samples().count(), 2);
}

#[test]
fn profiles() {
    let image = mixed_image();
    let facts = ImageFacts::new()
        .build_id(Some(BuildId(image.build_id.clone())))
        .width(Some(Width::Bits64))
        .section_size(Some(image.layout().1 as u64));
    let bytes = image.map().finish();
    let map = MipMap::parse(&bytes).expect("a sound map");
    let created = MipProfile::create(&map, &facts).expect("a sound map");
    let empty = written(&created.profile, ProfileVersion::V9);
    check("mixed-empty.mip", &empty);
    let mut text = Vec::new();
    yaml::write(&created.profile, &MipWriteOptions::new(), &mut text).expect("a Vec takes all");
    check("mixed-empty.yaml", &text);
    let eight = MipProfile::parse(&std::fs::read(fixture_path("mip/v8-b.mip")).expect("a fixture"));
    let mut text = Vec::new();
    yaml::write(
        &eight.expect("sound"),
        &MipWriteOptions::new().version(ProfileVersion::V8),
        &mut text,
    )
    .expect("a Vec takes all");
    check("v8-b.yaml", &text);
}
