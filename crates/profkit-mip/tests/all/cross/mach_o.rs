//! Tests the instrumentation for Mach-O, on x86-64 and arm64.
use super::check::{CALLS, STORE, UNARY, options};
use super::machine::{find, source, succeed};
use object::{Object as _, ObjectSection as _};
use profkit_abi::mip::{map_entry, section};
use profkit_mip::instrument::{Mode, Options, instrument};
use std::collections::HashMap;
use std::process::Command;

/// Mach-O programs cannot be run here, so only the object and its disassembly are examined.
fn mach_o(
    triple: &str,
    flags: &[&str],
    source_name: &str,
    options: &Options,
) -> Option<(Vec<u8>, String)> {
    for tool in ["clang-22", "llvm-objdump-22"] {
        if find(tool).is_none() {
            profkit_testkit::skip(&format!("{tool} is not installed"));
            return None;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let source = source(source_name);
    let mut command = Command::new("clang-22");
    let assembly = succeed(
        command
            .args(["-target", triple, "-w", "-O1", "-S"])
            .args(flags)
            .arg(&source)
            .args(["-o", "-"]),
    );
    let made = instrument(&assembly, source_name, None, options).unwrap();
    assert_eq!(
        made.text,
        instrument(
            &assembly,
            source_name,
            Some(triple.parse().unwrap()),
            options
        )
        .unwrap()
        .text
    );
    let (file, object) = (folder.path().join("a.s"), folder.path().join("a.o"));
    std::fs::write(&file, &made.text).unwrap();
    succeed(
        Command::new("clang-22")
            .args(["-target", triple, "-c"])
            .arg(&file)
            .arg("-o")
            .arg(&object),
    );
    let code = succeed(
        Command::new("llvm-objdump-22")
            .args(["--macho", "-d", "--no-show-raw-insn"])
            .arg(&object),
    );
    Some((
        std::fs::read(&object).unwrap(),
        String::from_utf8(code).unwrap(),
    ))
}

/// Returns, for each function in a disassembly, its first instructions. Operands are separated by one space.
fn listing(code: &str) -> HashMap<&str, Vec<String>> {
    let mut functions: HashMap<&str, Vec<String>> = HashMap::new();
    let mut current = "";
    for line in code.lines() {
        if let Some(name) = line.strip_suffix(':') {
            current = name;
        } else if let Some((_, instruction)) = line.split_once(":\t") {
            let words: Vec<&str> = instruction.split_whitespace().collect();
            functions.entry(current).or_default().push(words.join(" "));
        }
    }
    functions
}

fn entry_probe(is_arm64: bool, mode: Mode, index: usize) -> Vec<String> {
    let record = format!("l_profkit_mip_r{index}");
    let lines: &[&str] = match (is_arm64, mode) {
        (true, STORE) => &["adrp x16, R@PAGE", "strb wzr, [x16, R@PAGEOFF]"],
        (true, UNARY) => &[
            "adrp x16, R@PAGE",
            "ldrb w17, [x16, R@PAGEOFF]",
            "lsr w17, w17, #1",
            "strb w17, [x16, R@PAGEOFF]",
        ],
        (true, _) => &[
            "adrp x16, R@PAGE",
            "ldr w17, [x16, R@PAGEOFF]",
            "adds w17, w17, #0x1",
            "str w17, [x16, R@PAGEOFF]",
        ],
        // The disassembler shows `R-1`: it ignores that one byte (the immediate 0) stands after the address, as the
        // relocation's type says.
        (false, STORE) => &["movb $0x0, R-1(%rip)"],
        (false, UNARY) => &["shrb R(%rip)"],
        (false, _) => &["incl R(%rip)"],
    };
    lines
        .iter()
        .map(|line| line.replace('R', &record))
        .collect()
}

/// The relocation of the number that is subtracted, in a pair for a difference.
fn is_subtracted(relocation: &object::Relocation) -> bool {
    let object::RelocationFlags::MachO { r_type, .. } = relocation.flags() else {
        panic!("{relocation:?}")
    };
    r_type == object::macho::ARM64_RELOC_SUBTRACTOR
        || r_type == object::macho::X86_64_RELOC_SUBTRACTOR
}

/// Addresses in a map entry must be relocations that refer to the function and to its record.
fn check_mach_o(triple: &str, flags: &[&str], mode: Mode, blocks: bool) {
    let mut options = options(mode, blocks);
    // The list of probes that this test expects is that of all blocks.
    options.all_blocks = true;
    let Some((bytes, code)) = mach_o(triple, flags, "macho.c", &options) else {
        return;
    };
    let is_arm64 = triple.starts_with("arm64");
    let file = object::File::parse(&*bytes).unwrap();
    let map = file.section_by_name(section::MAP).unwrap();
    let object::SectionFlags::MachO { flags, .. } = map.flags() else {
        panic!("{:?}", map.flags())
    };
    assert_eq!(flags, object::macho::S_ATTR_LIVE_SUPPORT);
    assert_eq!(
        map.segment_name().unwrap(),
        Some(section::MACHO_MAP_SEGMENT)
    );
    // In 64-bit objects an address is stored as its distance from the entry: a second relocation has the entry's label.
    let relocations: HashMap<u64, String> = map
        .relocations()
        .filter(|(_, relocation)| !is_subtracted(relocation))
        .map(|(at, relocation)| {
            let object::RelocationTarget::Symbol(index) = relocation.target() else {
                panic!("{relocation:?}")
            };
            let symbol = object::Object::symbol_by_index(&file, index).unwrap();
            (at, object::ObjectSymbol::name(&symbol).unwrap().to_owned())
        })
        .collect();
    let functions = listing(&code);
    let data = map.data().unwrap();
    let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut index, mut anchors, mut record_bytes) = (0, 0, 0, 0);
    while at < data.len() {
        let target = |field: usize| relocations[&((at + field) as u64)].as_str();
        let block_count = word(at + map_entry::BLOCK_COUNT);
        let name_at = at + map_entry::FIXED_SIZE + block_count * map_entry::BLOCK_OFFSET_SIZE;
        let name = std::str::from_utf8(&data[name_at..name_at + word(at + map_entry::NAME_LENGTH)])
            .unwrap();
        if name.is_empty() {
            assert_eq!(&data[at + map_entry::RECORD_ADDRESS..][..16], [0; 16]);
            assert!(!relocations.contains_key(&((at + map_entry::RECORD_ADDRESS) as u64)));
            anchors += 1;
        } else {
            assert_eq!(
                target(map_entry::RECORD_ADDRESS),
                format!("l_profkit_mip_r{index}")
            );
            assert_eq!(target(map_entry::FUNCTION_ADDRESS), name);
            let probe = entry_probe(is_arm64, mode, index);
            // On x86-64, the probe is after the frame setup, unless it finds the return address by the stack pointer.
            let by_stack = matches!(
                mode,
                Mode::Calls {
                    return_addresses: Some(_)
                }
            );
            let frame = ["pushq %rbp", "movq %rsp, %rbp"];
            let after = usize::from(!is_arm64 && !by_stack && functions[name][..2] == frame) * 2;
            assert_eq!(functions[name][after..][..probe.len()], probe, "{name}");
            // Every block has its own store instruction. The blocks may be in any order.
            for block in 0..block_count {
                if !is_arm64 {
                    let offset = match options.entry_size() + block - 1 {
                        0 => String::new(),
                        offset => format!("+{offset}"),
                    };
                    let store = format!("movb $0x0, l_profkit_mip_r{index}{offset}(%rip)");
                    assert!(
                        functions[name].contains(&store),
                        "{name}: no {store}\n{code}"
                    );
                }
            }
            if is_arm64 {
                let stores = functions[name]
                    .iter()
                    .filter(|line| line.starts_with("strb wzr"))
                    .count();
                assert!(stores >= block_count, "{name}");
            }
            record_bytes += options.entry_size() + block_count;
            record_bytes = record_bytes.next_multiple_of(options.record_align());
            index += 1;
        }
        at += word(at + map_entry::ENTRY_SIZE);
    }
    assert_eq!((index, anchors), (6, 1));
    let records = file.section_by_name(section::RECORDS).unwrap();
    assert_eq!(
        records
            .size()
            .next_multiple_of(options.record_align() as u64),
        record_bytes as u64
    );
    if let Mode::Calls { return_addresses } = mode {
        let helper = match return_addresses {
            Some(slots) => format!("___profkit_mip_edge_{slots}"),
            None => "___profkit_mip_first".to_owned(),
        };
        assert!(
            functions[&*helper]
                .iter()
                .any(|line| line.starts_with("ret"))
        );
    }
}

#[test]
fn mach_o_objects() {
    for (triple, flags) in [
        ("arm64-apple-macos13", [].as_slice()),
        ("x86_64-apple-macos13", &[]),
        ("x86_64-apple-macos13", &["-masm=intel"]),
    ] {
        for mode in [
            STORE,
            UNARY,
            CALLS,
            Mode::Calls {
                return_addresses: Some(16),
            },
        ] {
            check_mach_o(triple, flags, mode, false);
            check_mach_o(triple, flags, mode, true);
        }
    }
}

/// Objects for 32-bit Arm: addresses in the map instead of distances, and no linker to check them with.
#[test]
fn mach_o_objects_for_32_bit_arm() {
    for (triple, flags) in [
        ("armv7k-apple-watchos2", [].as_slice()),
        ("armv7-apple-ios7", &["-mthumb"]),
        ("armv7-apple-ios7", &["-marm"]),
    ] {
        for (mode, blocks) in [(STORE, true), (UNARY, false), (CALLS, true)] {
            let mut options = options(mode, blocks);
            options.all_blocks = true;
            let Some((bytes, code)) = mach_o(triple, flags, "macho.c", &options) else {
                return;
            };
            let file = object::File::parse(&*bytes).unwrap();
            let map = file.section_by_name(section::MAP).unwrap();
            assert_eq!(
                map.segment_name().unwrap(),
                Some(section::MACHO_MAP_SEGMENT)
            );
            let data = map.data().unwrap();
            let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
            let functions = listing(&code);
            let (mut at, mut found, mut with_blocks) = (0, 0, 0);
            while at < data.len() {
                assert_eq!(
                    data[at + map_entry::FORM..][..2],
                    map_entry::ADDRESSES.to_le_bytes()
                );
                let blocks = word(at + map_entry::BLOCK_COUNT) as usize;
                let name_at = at + map_entry::FIXED_SIZE + blocks * map_entry::BLOCK_OFFSET_SIZE;
                let length = word(at + map_entry::NAME_LENGTH) as usize;
                let name = std::str::from_utf8(&data[name_at..name_at + length]).unwrap();
                if !name.is_empty() {
                    let stores = functions[name]
                        .iter()
                        .filter(|line| line.contains("strb"))
                        .count();
                    assert!(stores >= blocks, "{name}: {code}");
                    assert_eq!(word(at + map_entry::FUNCTION_ADDRESS) & 1, 0, "{name}");
                    found += 1;
                    with_blocks += usize::from(blocks > 0);
                }
                at += word(at + map_entry::ENTRY_SIZE) as usize;
            }
            assert_eq!(found, 6);
            assert!(!options.blocks || with_blocks >= 3, "{with_blocks}");
        }
    }
}
