use super::bb_addr_map::{self, BasicBlock, FunctionBlocks};
use super::blocks::{BlockList, HotBlocks, ListVersion, hot_blocks};
use super::sample::base_discriminator;
use profkit_data::bytes::Endian;
use profkit_data::mip::{Block, Function, MipProfile, Modes};

fn function(name: &str, address: u64, signature: u32, runs: &[u64]) -> Function {
    let blocks = (1..).zip(runs).map(|(number, &runs)| Block {
        offset: number * 0x10,
        runs,
    });
    Function {
        name: name.into(),
        modes: Modes(Modes::CALLS.0 | Modes::BLOCK_COVERAGE.0),
        address,
        signature,
        size: 0x100,
        called_runs: 1,
        calls: 1,
        blocks: blocks.collect(),
        ..Function::default()
    }
}

fn profile(functions: Vec<Function>) -> MipProfile {
    MipProfile {
        functions: functions.into(),
        ..MipProfile::default()
    }
}

/// Makes a block map of a function whose blocks have 16 bytes each.
fn map(address: u64, ids: &[u32]) -> FunctionBlocks {
    let block = |(number, &id): (u64, &u32)| BasicBlock {
        id,
        address: address + number * 0x10,
        size: 0x10,
    };
    FunctionBlocks {
        address,
        blocks: (0..).zip(ids).map(block).collect(),
    }
}

#[test]
fn executed_blocks_are_listed_by_id_and_everything_else_is_counted() {
    let mut never = function("never", 0x2000, 7, &[0]);
    never.called_runs = 0;
    let mut plain = function("plain", 0x7000, 7, &[]);
    plain.modes = Modes::CALLS;
    let old = profile(vec![
        function("split", 0x1000, 7, &[1, 0, 3]),
        never,
        function("changed", 0x3000, 7, &[1, 0]),
        function("grown", 0x3000, 7, &[1, 0]),
        function("gone", 0x4000, 7, &[0]),
        function("twice", 0x5000, 7, &[0]),
        function("twice", 0x5100, 7, &[0]),
        function("assembly", 0x6000, 7, &[0]),
        plain,
        function("whole", 0x8000, 7, &[1, 1]),
    ]);
    let mut new = old.clone();
    new.functions
        .as_mut_vec()
        .retain(|function| function.name != b"gone");
    for function in &mut new.functions {
        function.called_runs = 0;
        function.blocks.iter_mut().for_each(|block| block.runs = 0);
        // In the new build the function has another address, and its second MIP block begins later.
        function.address += 0x10_000;
        if function.name == b"changed" {
            function.signature = 8;
        } else if function.name == b"grown" {
            function.blocks.push(Block::default());
        }
    }
    let maps = [map(0x11_000, &[0, 5, 2, 9, 11]), map(0x18_000, &[0, 1, 2])];
    let list = hot_blocks(&old, &new, &maps);
    assert_eq!(
        list,
        BlockList {
            functions: vec![HotBlocks {
                name: b"split",
                ids: vec![0, 5, 9, 11],
                cold: 1,
                cold_bytes: 0x10
            }],
            whole: 1,
            never_called: 1,
            missing: vec![b"gone"],
            stale: vec![b"changed", b"grown"],
            ambiguous: vec![b"twice"],
            without_blocks: 1,
            without_ids: 1,
        }
    );
    assert_eq!(
        String::from_utf8_lossy(&list.write(ListVersion::V1)),
        "v1\nf split\nc 0 5 9 11\n"
    );
    assert_eq!(
        String::from_utf8_lossy(&list.write(ListVersion::V0)),
        "!split\n!!0 5 9 11\n"
    );
    assert_eq!(ListVersion::of_release(14), None);
    assert_eq!(ListVersion::of_release(16), Some(ListVersion::V0));
    assert_eq!(ListVersion::of_release(22), Some(ListVersion::V1));
}

/// Encoded maps of a function with two blocks at 0x1000. They were copied from the assembly of clang 16 and 19 (version
/// 2) and 22 (version 5).
const V2: &[u8] = &[2, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 2, 0, 0, 8, 8, 3, 2, 6, 1];
const V5: &[u8] = &[
    5, 32, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 8, 8, 3, 2, 1, 4, 2, 1,
];

#[test]
fn block_ids_and_addresses_of_all_versions() {
    let blocks = vec![
        BasicBlock {
            id: 0,
            address: 0x1000,
            size: 8,
        },
        BasicBlock {
            id: 3,
            address: 0x100a,
            size: 6,
        },
    ];
    let function = FunctionBlocks {
        address: 0x1000,
        blocks,
    };
    assert_eq!(
        bb_addr_map::read(V2, Endian::Little, 8),
        Ok(vec![function.clone()])
    );
    assert_eq!(
        bb_addr_map::read(V5, Endian::Little, 8),
        Ok(vec![function.clone()])
    );
    // In version 1 the id of a block is its index in the function.
    let numbered = bb_addr_map::read(
        &[1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 2, 0, 8, 8, 2, 6, 1],
        Endian::Little,
        8,
    );
    let ids = numbered.map(|functions| {
        functions
            .iter()
            .flat_map(|function| function.blocks.clone())
            .map(|block| (block.id, block.address))
            .collect()
    });
    assert_eq!(ids, Ok(vec![(0, 0x1000), (1, 0x100a)]));
    let both = [V2, V5].concat();
    assert_eq!(
        bb_addr_map::read(&both, Endian::Little, 8),
        Ok(vec![function.clone(), function])
    );
}

#[test]
fn damaged_maps_of_blocks() {
    let message = |change: fn(&mut Vec<u8>)| {
        let mut bytes = V2.to_vec();
        change(&mut bytes);
        bb_addr_map::read(&bytes, Endian::Little, 8)
            .map_err(|error| error.to_string())
            .unwrap_err()
    };
    insta::assert_snapshot!(message(|bytes| bytes[0] = 6), @"unknown version in function 0 of .llvm_bb_addr_map at offset 0x0: found 6, expected 1 to 5 (LLVM 15 to 22)");
    insta::assert_snapshot!(message(|bytes| bytes[1] = 0x80), @"the features are unknown in function 0 of .llvm_bb_addr_map at offset 0x1: found 0x80, expected bits of 0x3f");
    insta::assert_snapshot!(message(|bytes| bytes.splice(1..2, [8, 0]).for_each(drop)), @"the list of block ranges is empty in function 0 of .llvm_bb_addr_map at offset 0x2: found 0, expected at least 1");
    insta::assert_snapshot!(message(|bytes| bytes.truncate(14)), @"the data end too early in function 0 of .llvm_bb_addr_map at offset 0xe: found 0 bytes left, expected 1 bytes");
    insta::assert_snapshot!(message(|bytes| bytes.splice(15..16, [0xff, 0xff, 0xff, 0xff, 0x7f]).for_each(drop)), @"the block id is too large in function 0 of .llvm_bb_addr_map at offset 0xf: found 34359738367, expected 32 bits");
    // Changing any byte must not cause a panic, or more blocks than the section can contain.
    for place in 0..V5.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = V5.to_vec();
            bytes[place] = value;
            let read = bb_addr_map::read(&bytes, Endian::Little, 8);
            let blocks = read.iter().flatten().map(|function| function.blocks.len());
            assert!(blocks.sum::<usize>() <= V5.len());
        }
    }
    // Cutting the section anywhere must give an error, except between two functions. Reading a cut section must never
    // cause a panic.
    for end in 0..V5.len() {
        assert_eq!(
            bb_addr_map::read(&V5[..end], Endian::Little, 8).is_ok(),
            end == 0,
            "{end}"
        );
    }
}

#[test]
fn base_parts_of_discriminators() {
    // The values were made by LLVM's encoding: no discriminator, base 1, base 1 with factor 2, base 0 with factor 2,
    // and a large base.
    assert_eq!(
        [0, 2, 2 | 4 << 7, 1 | 4 << 1, 0x7e].map(base_discriminator),
        [0, 1, 1, 0, 0x1f]
    );
    assert_eq!(
        base_discriminator(((100 & 0xfe0) << 1 | 0x20 | (100 & 0x1f)) << 1),
        100
    );
}
