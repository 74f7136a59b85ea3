//! An ELF program or library through whose code a simulation walks.
use super::code::{Flow, Machine, decode};
use object::elf::PF_X;
use object::{Architecture, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A hash function for addresses. It consists of one multiplication, because each step of a walk looks up an address.
#[derive(Clone, Debug, Default)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type ByAddress<T> = RefCell<HashMap<u64, T, BuildHasherDefault<AddressHasher>>>;

/// A section of code.
#[derive(Clone, Debug)]
struct Code {
    address: u64,
    bytes: Vec<u8>,
    /// Whether the code consists of stubs, which call functions of other programs.
    stubs: bool,
}

/// An executable segment, extended to whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSegment {
    /// The address of its first page.
    pub address: u64,
    /// The size in bytes, which is a multiple of the page size.
    pub size: u64,
    /// The offset in the file.
    pub offset: u64,
}

/// Instructions in a row, up to the first one that does not always continue with the next instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The address of the last instruction.
    pub last: u64,
    /// The address after it.
    pub next: u64,
    pub flow: Flow,
    /// Whether the block is in a stub, which calls a function of another program.
    pub stub: bool,
}

/// A function of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFunction {
    /// The name of the symbol; empty if there is no symbol.
    pub name: String,
    /// The address.
    pub address: u64,
}

/// An ELF program or library for x86-64 or AArch64 through whose code a simulation can walk. Code is decoded when a
/// walk first reaches it.
#[derive(Debug)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// The instruction set.
    pub machine: Machine,
    /// Whether the program can be loaded at any address.
    pub relocatable: bool,
    /// The build id; empty if there is none.
    pub build_id: Vec<u8>,
    /// The executable segments.
    pub segments: Vec<CodeSegment>,
    /// The functions that calls with unknown targets may call, in the order of their addresses. Stubs are not among
    /// them.
    pub functions: Vec<ProgramFunction>,
    /// The index of `main` in `functions`; `None` if there is no `main`.
    pub main: Option<usize>,
    code: Vec<Code>,
    /// The addresses at which functions begin, including functions without symbols.
    starts: Vec<u64>,
    blocks: ByAddress<Option<Block>>,
    targets: ByAddress<Rc<[u64]>>,
}

const PAGE: u64 = 0x1000;

impl Program {
    /// Reads a program.
    ///
    /// # Panics
    /// If the file is no ELF file for one of the two instruction sets, or has no functions.
    pub fn open(path: &Path) -> Program {
        let name = path.display();
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let file = object::File::parse(&*bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let machine = match file.architecture() {
            Architecture::X86_64 => Machine::X86,
            Architecture::Aarch64 => Machine::A64,
            other => panic!("{name}: code of {other:?} cannot be walked"),
        };
        let executable = |flags| match flags {
            object::SegmentFlags::Elf { p_flags, .. } => p_flags.0 & PF_X.0 != 0,
            _ => false,
        };
        let segments = file
            .segments()
            .filter(|segment| executable(segment.flags()))
            .map(|segment| {
                let start = segment.address() / PAGE * PAGE;
                CodeSegment {
                    address: start,
                    size: (segment.address() + segment.size()).next_multiple_of(PAGE) - start,
                    offset: segment.file_range().0 / PAGE * PAGE,
                }
            })
            .collect();
        let code: Vec<Code> = file
            .sections()
            .filter(|section| section.kind() == object::SectionKind::Text)
            .map(|section| Code {
                address: section.address(),
                bytes: section.data().expect("code is in the file").to_vec(),
                stubs: section.name_bytes().is_ok_and(|it| it.starts_with(b".plt")),
            })
            .collect();
        let in_code = |address: u64| {
            let has = |code: &&Code| {
                let offset = address.wrapping_sub(code.address);
                !code.stubs && offset < code.bytes.len() as u64
            };
            code.iter().any(|code| has(&code))
        };
        let mut functions: Vec<ProgramFunction> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            .filter(|symbol| in_code(symbol.address()))
            .map(|symbol| ProgramFunction {
                name: symbol.name().unwrap_or_default().to_owned(),
                address: symbol.address(),
            })
            .collect();
        functions.sort_by(|one, two| (one.address, &one.name).cmp(&(two.address, &two.name)));
        functions.dedup_by_key(|function| function.address);
        let mut starts: Vec<u64> = functions.iter().map(|function| function.address).collect();
        starts.extend(
            unwind_starts(&file)
                .into_iter()
                .filter(|start| in_code(*start)),
        );
        starts.extend(code.iter().map(|code| code.address));
        starts.extend(
            code.iter()
                .map(|code| code.address + code.bytes.len() as u64),
        );
        starts.sort_unstable();
        starts.dedup();
        assert!(!functions.is_empty(), "{name} has no symbols of functions");
        let main = functions.iter().position(|it| it.name == "main");
        Program {
            path: path.to_owned(),
            machine,
            relocatable: file.kind() == object::ObjectKind::Dynamic,
            build_id: file.build_id().ok().flatten().unwrap_or_default().to_vec(),
            segments,
            functions,
            main,
            code,
            starts,
            blocks: RefCell::default(),
            targets: RefCell::default(),
        }
    }

    /// Returns the name of the function that contains an address; empty if it is unknown.
    pub fn name_at(&self, address: u64) -> &str {
        let after = self.functions.partition_point(|it| it.address <= address);
        let function = after.checked_sub(1).and_then(|at| self.functions.get(at));
        match function {
            Some(it) if self.is_same_function(it.address, address) => &it.name,
            _ => "",
        }
    }

    /// Returns the offset in the file for an address of code. `None` if the address is not in code.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let distance = address.checked_sub(segment.address)?;
            (distance < segment.size).then_some(segment.offset + distance)
        })
    }

    /// Whether an address is in a stub, which calls a function of another program (`.plt`).
    pub fn is_stub(&self, address: u64) -> bool {
        self.code_at(address).is_some_and(|(code, _)| code.stubs)
    }

    /// Whether no function begins between two addresses.
    pub(super) fn is_same_function(&self, one: u64, two: u64) -> bool {
        let after = |address| self.starts.partition_point(|&start| start <= address);
        after(one) == after(two)
    }

    /// Returns the block that begins at an address. `None` if there is no code.
    pub(super) fn block(&self, address: u64) -> Option<Block> {
        if let Some(&known) = self.blocks.borrow().get(&address) {
            return known;
        }
        let found = self.find_block(address);
        self.blocks.borrow_mut().insert(address, found);
        found
    }

    fn code_at(&self, address: u64) -> Option<(&Code, &[u8])> {
        self.code.iter().find_map(|code| {
            let offset = usize::try_from(address.checked_sub(code.address)?).ok()?;
            let bytes = code.bytes.get(offset..)?;
            (!bytes.is_empty()).then_some((code, bytes))
        })
    }

    fn find_block(&self, start: u64) -> Option<Block> {
        let (code, mut bytes) = self.code_at(start)?;
        let mut last = start;
        loop {
            let instruction = decode(self.machine, bytes, last)?;
            let next = last + instruction.length;
            if instruction.flow != Flow::Next {
                return Some(Block {
                    last,
                    next,
                    flow: instruction.flow,
                    stub: code.stubs,
                });
            }
            bytes = bytes.get(usize::try_from(instruction.length).ok()?..)?;
            last = next;
        }
    }

    /// Returns the places to which an indirect jump of this function may jump. They are the targets of the function's
    /// branches, and the places after instructions that never continue with the next instruction.
    pub(super) fn jump_targets(&self, address: u64) -> Rc<[u64]> {
        let at = self.starts.partition_point(|&start| start <= address);
        let start = self.starts[at.saturating_sub(1)];
        let end = self.starts.get(at).copied().unwrap_or(start);
        if let Some(known) = self.targets.borrow().get(&start) {
            return known.clone();
        }
        let mut targets = Vec::new();
        let mut place = start;
        let mut ended = false;
        while place < end {
            let Some(instruction) = self
                .code_at(place)
                .and_then(|(_, bytes)| decode(self.machine, bytes, place))
            else {
                break;
            };
            if ended && !instruction.padding {
                targets.push(place);
                ended = false;
            }
            match instruction.flow {
                Flow::Conditional(target) => targets.push(target),
                Flow::Jump(target) => {
                    targets.push(target);
                    ended = true;
                }
                Flow::IndirectJump | Flow::Return | Flow::Trap => ended = true,
                _ => {}
            }
            place += instruction.length;
        }
        targets.retain(|target| (start..end).contains(target));
        targets.sort_unstable();
        targets.dedup();
        let targets: Rc<[u64]> = targets.into();
        self.targets.borrow_mut().insert(start, targets.clone());
        targets
    }
}

/// Returns the addresses at which functions begin according to the table in `.eh_frame_hdr`. The table must have its
/// usual form: pairs of signed 32-bit distances from the section's start.
fn unwind_starts(file: &object::File<'_>) -> Vec<u64> {
    let Some(section) = file.section_by_name(".eh_frame_hdr") else {
        return Vec::new();
    };
    let data = section.data().unwrap_or_default();
    if data.get(..4) != Some(&[1, 0x1b, 0x03, 0x3b]) {
        return Vec::new();
    }
    data.get(12..)
        .unwrap_or_default()
        .chunks_exact(8)
        .map(|entry| {
            let distance = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            section.address().wrapping_add_signed(distance.into())
        })
        .collect()
}
