use super::*;
use made::{CALLS, COVERAGE, MipFunction, MipImage};

/// `whole` infers its entry, `counted` only blocks.
fn image() -> MipImage {
    MipImage::new(
        &[0xcd; 20],
        vec![
            MipFunction::inferred("whole", COVERAGE, &[&[1, 2], &[], &[], &[1, 2], &[2]]),
            MipFunction::new("plain", COVERAGE | made::BLOCKS, 2),
            MipFunction::inferred("counted", CALLS, &[&[], &[], &[0]]),
        ],
    )
}

fn profile() -> MipProfile {
    let image = image();
    let facts = ImageFacts::new()
        .build_id(Some(BuildId(image.build_id.clone())))
        .section_size(Some(image.layout().1 as u64));
    created(&image.map().finish(), &facts).unwrap().profile
}

/// The runs of the entry and of each block, function by function.
fn counts(profile: &MipProfile) -> Vec<Vec<u64>> {
    let functions = profile.functions.iter();
    functions
        .map(|function| {
            let blocks = function.blocks.iter().map(|block| block.runs);
            std::iter::once(function.called_runs)
                .chain(blocks)
                .collect()
        })
        .collect()
}

fn add(profile: &mut MipProfile, runs: &[Vec<u8>]) {
    let plan = plan::RecordPlan::new(profile);
    let mut sums = RecordSums::new(&plan);
    for run in runs {
        sums.add(&plan, &RawParts::new(run).next().unwrap().unwrap());
    }
    assert_eq!(sums.add_to(&plan, profile), 0);
}

#[test]
fn runs_are_inferred_one_by_one() {
    let image = image();
    assert_eq!(image.layout(), (vec![0, 3, 8], 17));
    let mut profile = profile();
    let raw = |records: &[u8]| image.raw(records);
    let mut one = image.records();
    one[1] = 0;
    let mut both = image.records();
    both[1..3].fill(0);
    both[8..16].fill(0);
    // The two runs of block 1 and the run of block 2 are two runs of the entry, not three.
    add(
        &mut profile,
        &[raw(&one), raw(&both), raw(&image.records())],
    );
    assert_eq!(
        counts(&profile),
        [vec![2, 2, 1, 2, 1], vec![0, 0, 0], vec![1, 0, 1]]
    );
    assert_eq!(
        (profile.runs, profile.functions[function(0)].raw_runs),
        (3, 3)
    );
}

#[test]
fn lists_come_back() {
    let mut profile = profile();
    profile.functions[function(0)].called_runs = 3;
    let written = encoded(&profile, ProfileVersion::V9);
    assert_eq!(MipProfile::parse(&written).unwrap(), profile);
    let mut yaml = Vec::new();
    yaml::write(&profile, &MipWriteOptions::new(), &mut yaml).unwrap();
    let text = String::from_utf8(yaml).unwrap();
    assert!(text.contains("Inferred From:   [ 1, 2 ]"), "{text}");
    assert_eq!(yaml::parse(text.as_bytes()).unwrap().0, profile);
    let mut cleared = profile.clone();
    cleared.clear_runs();
    assert_eq!(cleared, self::profile());
    // A build whose blocks are inferred in another way has other records.
    let mut other = profile.clone();
    other.functions[function(2)].inference = Some(Box::new(Inference::new([&[][..], &[0], &[]])));
    assert!(matches!(
        &add_profile(&mut profile, &other)[..],
        [Refusal::Function { name, .. }] if name == b"counted"
    ));
}

#[test]
fn damaged_lists() {
    let lists = image().map().offset("whole.lists");
    let with = |number: usize, value: u32| {
        let mut map = image().map();
        map.label_at("number", lists + 4 * number)
            .patch_u32("number", value);
        match created(&map.finish(), &ImageFacts::new()) {
            Ok(created) => {
                // What is sound beside it is kept.
                assert_eq!(created.profile.functions.len(), 2);
                message(&created.dropped[0])
            }
            Err(error) => message(&error),
        }
    };
    insta::assert_snapshot!(with(0, 3), @"map entry of map, at offset 0x48: the size of the entry does not match its blocks and name: found an entry of 104 bytes with 4 blocks and a name of 5 bytes, expected 105 bytes, padded to a multiple of 8");
    insta::assert_snapshot!(with(0, u32::MAX), @"map entry of map, at offset 0x48: the size of the entry does not match its blocks and name: found an entry of 104 bytes with 4 blocks and a name of 5 bytes, expected 17179869261 bytes, padded to a multiple of 8");
    insta::assert_snapshot!(with(5, 3), @"blocks of map entry of whole, at offset 0x28: a block is inferred from a block that is inferred itself: found block 0 from block 3, expected a block that has a byte in the record");
    insta::assert_snapshot!(with(5, 0), @"blocks of map entry of whole, at offset 0x28: a block is inferred from a block that is inferred itself: found block 0 from block 0, expected a block that has a byte in the record");
    insta::assert_snapshot!(with(5, 5), @"blocks of map entry of whole, at offset 0x28: a block is inferred from a block that does not exist: found block 0 from block 5, expected a block up to 4");
    let mut map = image().map();
    map.patch_u32("counted.lists", 1);
    map.label_at("two", map.offset("counted.lists") + 8);
    map.patch_u32("two", 0);
    let dropped = created(&map.finish(), &ImageFacts::new()).unwrap().dropped;
    insta::assert_snapshot!(message(&dropped[0]), @"blocks of map entry of counted, at offset 0xc8: the entry of a function is inferred although its calls are counted: expected an entry with its own record, except in plain coverage");

    let whole = encoded(&profile(), ProfileVersion::V9);
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    let list = 64 + 24 + 7 * 24;
    let section = usize::try_from(word(list + 8)).unwrap();
    let with = |at: usize, value: u32| {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        message(&MipProfile::parse(&made::with_checksum(bytes)).unwrap_err())
    };
    insta::assert_snapshot!(with(section, 3), @"blocks of function 0 of section of functions of MIP profile, at offset 0x2c0: a block is inferred from a block that is inferred itself: found block 4 from block 0, expected a block that has a byte in the record");
    insta::assert_snapshot!(with(section, u32::MAX), @"function 0 of section of functions of MIP profile, at offset 0x2c0: the data are too short here: found 56 bytes left, expected 60 bytes");
    insta::assert_snapshot!(with(section + 20, 3), @"blocks of function 0 of section of functions of MIP profile, at offset 0x2c0: a block is inferred from a block that is inferred itself: found block 0 from block 3, expected a block that has a byte in the record");
    insta::assert_snapshot!(with(list + 16, 8), @"function 0 of section of functions of MIP profile, at offset 0x2c0: the data are too short here: found 8 bytes left, expected 20 bytes");

    let text = |profile: &MipProfile| {
        let mut yaml = Vec::new();
        yaml::write(profile, &MipWriteOptions::new(), &mut yaml).unwrap();
        String::from_utf8(yaml).unwrap()
    };
    let yaml = text(&profile());
    let with = |from: &str, to: &str| {
        assert!(yaml.contains(from));
        message(&yaml::parse(yaml.replacen(from, to, 1).as_bytes()).unwrap_err())
    };
    insta::assert_snapshot!(with("[ 1, 2 ]", "[ 1, 9 ]"), @"MIP YAML at line 11, column 5: the blocks of a function are inferred wrongly: found a block is inferred from a block that does not exist");
    insta::assert_snapshot!(with(", Inferred Blocks", ""), @"MIP YAML at line 11, column 5: a block of a function without inferred blocks is inferred: expected Inferred Blocks in Profile Type, or no Inferred From");
}
