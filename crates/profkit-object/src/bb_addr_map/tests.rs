//! Tests block maps of every version, both as bytes and as compilers write them.
use super::*;
use crate::binary::BinaryFile;
use crate::code_symbols::code_symbols;
use profkit_testkit::{Llvm, links_c, or_skip, repo_root};
use std::process::Command;

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
            flags: BlockFlags(8),
        },
        BasicBlock {
            id: 3,
            address: 0x100a,
            size: 6,
            flags: BlockFlags(1),
        },
    ];
    let function = FunctionBlocks {
        address: 0x1000,
        version: 2,
        blocks,
    };
    let later = FunctionBlocks {
        version: 5,
        ..function.clone()
    };
    assert_eq!(read(V2, Endian::Little, 8), Ok(vec![function.clone()]));
    assert_eq!(read(V5, Endian::Little, 8), Ok(vec![later.clone()]));
    // In version 0 all offsets are counted from the start of the function.
    let old = read_version_0(
        &[0, 0x10, 0, 0, 0, 0, 0, 0, 2, 0, 8, 8, 10, 6, 1],
        Endian::Little,
        8,
    );
    let ids = |functions: Vec<FunctionBlocks>| -> Vec<(u32, u64)> {
        let blocks = functions.into_iter().flat_map(|function| function.blocks);
        blocks.map(|block| (block.id, block.address)).collect()
    };
    assert_eq!(old.map(ids), Ok(vec![(0, 0x1000), (1, 0x100a)]));
    // In version 1 the id of a block is its index in the function.
    let numbered = read(
        &[1, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 2, 0, 8, 8, 2, 6, 1],
        Endian::Little,
        8,
    );
    assert_eq!(numbered.map(ids), Ok(vec![(0, 0x1000), (1, 0x100a)]));
    let both = [V2, V5].concat();
    assert_eq!(
        read(&both, Endian::Little, 8),
        Ok(vec![function.clone(), later])
    );
}

#[test]
fn damaged_maps_of_blocks() {
    let message = |change: fn(&mut Vec<u8>)| {
        let mut bytes = V2.to_vec();
        change(&mut bytes);
        read(&bytes, Endian::Little, 8)
            .map_err(|error| error.to_string())
            .unwrap_err()
    };
    insta::assert_snapshot!(message(|bytes| bytes[0] = 6), @"function 0 of .llvm_bb_addr_map, at offset 0x0: unknown version: found 6, expected 1 to 5 (LLVM 15 to 22)");
    insta::assert_snapshot!(message(|bytes| *bytes = [&[5, 0, 1], &V5[3..]].concat()), @"function 0 of .llvm_bb_addr_map, at offset 0x1: the features are unknown: found 0x100, expected bits of 0xff");
    insta::assert_snapshot!(message(|bytes| bytes.splice(1..2, [8, 0]).for_each(drop)), @"function 0 of .llvm_bb_addr_map, at offset 0x2: the list of block ranges is empty: found 0, expected at least 1");
    insta::assert_snapshot!(message(|bytes| bytes.truncate(14)), @"function 0 of .llvm_bb_addr_map, at offset 0xe: the data are too short here: found 0 bytes left, expected 1 byte");
    insta::assert_snapshot!(message(|bytes| bytes.splice(15..16, [0xff, 0xff, 0xff, 0xff, 0x7f]).for_each(drop)), @"function 0 of .llvm_bb_addr_map, at offset 0xf: the block id is too large: found 34359738367, expected 32 bits");
    // Changing any byte must not cause a panic, or more blocks than the section can contain.
    for place in 0..V5.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = V5.to_vec();
            bytes[place] = value;
            let read = read(&bytes, Endian::Little, 8);
            let blocks = read.iter().flatten().map(|function| function.blocks.len());
            assert!(blocks.sum::<usize>() <= V5.len());
        }
    }
    // Cutting the section anywhere must give an error, except between two functions. Reading a cut section must never
    // cause a panic.
    for end in 0..V5.len() {
        assert_eq!(
            read(&V5[..end], Endian::Little, 8).is_ok(),
            end == 0,
            "{end}"
        );
    }
}

#[test]
fn maps_that_compilers_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let listed = folder.path().join("list");
    // This list for `-fbasic-block-sections=list=` puts one block of `main` into a section of its own, and gives the
    // frequencies of two edges.
    std::fs::write(&listed, "v1\nf main\ng 0:10,1:9\nc 0 1\n").expect("a list");
    let listed = format!("-fbasic-block-sections=list={}", listed.display());
    let analysis = "-mllvm -pgo-analysis-map=func-entry-count,bb-freq,br-prob";
    let cases = [
        (13, "-fbasic-block-sections=labels".to_owned(), 0),
        (14, "-fbasic-block-sections=labels".to_owned(), 0),
        (15, "-fbasic-block-sections=labels".to_owned(), 1),
        (16, "-fbasic-block-sections=labels".to_owned(), 1),
        (19, "-fbasic-block-address-map".to_owned(), 2),
        (19, format!("-fbasic-block-address-map {analysis}"), 2),
        (22, "-fbasic-block-address-map".to_owned(), 5),
        (
            22,
            "-fbasic-block-address-map -mllvm -emit-bb-hash".to_owned(),
            5,
        ),
        (
            22,
            format!(
                "-fbasic-block-address-map {listed} {analysis} -mllvm -pgo-analysis-map-emit-bb-sections-cfg"
            ),
            5,
        ),
    ];
    for (release, options, version) in cases {
        let Some(llvm) = Llvm::find(release) else {
            profkit_testkit::skip(&format!("LLVM {release} is not installed"));
            continue;
        };
        or_skip!(links_c(llvm.clang(), &[]), continue);
        let program = folder.path().join("program");
        let status = Command::new(llvm.clang())
            .args(["-O2", "-no-pie"])
            .args(options.split(' '))
            .arg(repo_root().join("tests/programs/walked.c"))
            .arg("-o")
            .arg(&program)
            .status();
        assert!(
            status.expect("clang runs").success(),
            "clang-{release} {options}"
        );
        let file = BinaryFile::open(&program).expect("a program");
        let image = file.image(|_| true).expect("a program");
        let functions = of_image(&image).expect("a sound map").expect("a map");
        assert!(functions.len() >= 8, "{release}: {}", functions.len());
        for function in &functions {
            assert_eq!(function.version, version, "clang-{release} {options}");
            let mut ids: Vec<u32> = function.blocks.iter().map(|block| block.id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), function.blocks.len(), "ids are unique");
            // Checks that the first address range of a function begins at the function's symbol, that only a listed
            // function has a second range, and that the last block of a function does not continue into another block.
            let symbols = code_symbols(&image).unwrap();
            let symbol = symbols.iter().find(|it| it.address == function.address);
            let symbol = symbol.expect("a symbol");
            let pieces = function.blocks.windows(2).filter(|two| {
                two[1].address < two[0].address + two[0].size
                    || two[1].address > two[0].address + two[0].size + 16
            });
            let split = options.contains("list=") && symbol.name == b"main";
            assert_eq!(
                pieces.count(),
                usize::from(split),
                "clang-{release} {options}"
            );
            assert!(
                function
                    .blocks
                    .iter()
                    .any(|block| block.flags.returns() || block.flags.has_tail_call())
            );
            assert!(
                function
                    .blocks
                    .last()
                    .is_some_and(|block| !block.flags.falls_through())
            );
            if !split {
                let last = function.blocks.last().expect("a block");
                let end = symbol.address + symbol.size;
                assert_eq!(last.address + last.size, end, "clang-{release} {options}");
            }
        }
    }
}
