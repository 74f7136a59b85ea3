use super::blocks::{BlockList, HotBlocks, ListVersion, hot_blocks};
use profkit_data::mip::{Block, Function, MipProfile, Modes};
use profkit_data::sample::base_discriminator;
use profkit_object::bb_addr_map::{BasicBlock, BlockFlags, FunctionBlocks};

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
        flags: BlockFlags::default(),
    };
    FunctionBlocks {
        address,
        version: 2,
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
        // All addresses differ, the signature of `changed`, and the number of blocks of `grown`.
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

#[test]
fn base_parts_of_discriminators() {
    // LLVM's: no discriminator, base 1, base 1 with factor 2, base 0 with factor 2, a large base.
    assert_eq!(
        [0, 2, 2 | 4 << 7, 1 | 4 << 1, 0x7e].map(base_discriminator),
        [0, 1, 1, 0, 0x1f]
    );
    assert_eq!(
        base_discriminator(((100 & 0xfe0) << 1 | 0x20 | (100 & 0x1f)) << 1),
        100
    );
}
