//! Writes ELF files with symbols and debug info, of which many parts share a large one.
use profkit_abi::mip::section::MAP;
use profkit_testkit::{ByteBuilder, Endian};
use std::collections::HashMap;

/// Files that are built for a number of bytes: their names, and what builds them.
pub type Builder = fn(usize) -> Vec<u8>;
pub const HOSTILE: &[(&str, Builder)] = &[
    ("symbols whose names are ends of one name", names),
    ("units that share abbreviations", abbreviations),
    ("units that share lines", lines),
    ("units that share ranges", ranges),
    ("functions whose names are ends of one name", function_names),
    ("sections with the same bytes", sections),
    ("sections of one long name", section_names),
    ("segments with the same notes", notes),
    ("a debug section that unpacks to much", unpacked),
    ("a section that claims to unpack to much", claimed),
    ("functions in functions", nested),
];

struct Section {
    name: Vec<u8>,
    kind: u32,
    flags: u64,
    address: u64,
    link: u32,
    entry: u64,
    data: Vec<u8>,
    /// The bytes are those of this section.
    same_as: Option<usize>,
}

/// A little-endian ELF file for x86-64.
#[derive(Default)]
pub struct Elf {
    sections: Vec<Section>,
    /// Notes: their section, and how many segments have them.
    notes: Option<(usize, usize)>,
}

impl Elf {
    pub fn new() -> Self {
        Elf::default()
    }

    pub fn section(
        mut self,
        name: &str,
        kind: u32,
        flags: u64,
        address: u64,
        data: Vec<u8>,
    ) -> Self {
        self.sections.push(Section {
            name: name.as_bytes().to_vec(),
            kind,
            flags,
            address,
            link: 0,
            entry: 0,
            data,
            same_as: None,
        });
        self
    }

    /// A section of debug info.
    fn debug(self, name: &str, data: Vec<u8>) -> Self {
        self.section(name, 1, 0, 0, data)
    }

    /// Code, and a symbol table with these names at the places of the code.
    fn code(self, size: usize) -> Self {
        self.section(".text", 1, 6, 0x1000, vec![0xc3; size])
    }

    pub fn finish(self) -> Vec<u8> {
        const HEADER: usize = 64;
        let programs = self.notes.map_or(0, |(_, count)| count);
        let mut strings = vec![0];
        let mut known = HashMap::new();
        let mut names = Vec::new();
        for section in &self.sections {
            // Sections of the same name share it.
            names.push(*known.entry(&section.name).or_insert_with(|| {
                let at = strings.len();
                strings.extend_from_slice(&section.name);
                strings.push(0);
                at
            }));
        }
        let mut data = Vec::new();
        let start = HEADER + programs * 56;
        let mut places: Vec<(usize, usize)> = Vec::new();
        for section in &self.sections {
            places.push(match section.same_as {
                Some(other) => places[other],
                None => {
                    data.resize(data.len().next_multiple_of(8), 0);
                    let place = (start + data.len(), section.data.len());
                    data.extend_from_slice(&section.data);
                    place
                }
            });
        }
        let strings_at = start + data.len();
        data.extend_from_slice(&strings);
        data.resize(data.len().next_multiple_of(8), 0);
        let number = |number: usize| number as u64;
        let count = self.sections.len() + 2;
        let mut file = ByteBuilder::new(Endian::Little);
        file.bytes(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        file.u16(3).u16(62).u32(1).u64(0x1000);
        file.u64(number(HEADER)).u64(number(start + data.len()));
        file.u32(0).u16(64).u16(56).u16(small(programs)).u16(64);
        // A number of sections that does not fit is in the first one.
        file.u16(u16::try_from(count).unwrap_or(0));
        file.u16(u16::try_from(count - 1).unwrap_or(0xffff));
        if let Some((section, count)) = self.notes {
            let (at, len) = places[section];
            for _ in 0..count {
                file.u32(4).u32(4).u64(number(at)).u64(0).u64(0);
                file.u64(number(len)).u64(number(len)).u64(4);
            }
        }
        file.bytes(&data);
        let large = |count: usize| if count > 0xfeff { number(count) } else { 0 };
        file.u64(0).u64(0).u64(0).u64(0).u64(large(count));
        file.u32(u32::try_from(large(count - 1)).expect("few"))
            .u32(0)
            .u64(0)
            .u64(0);
        for ((section, name), (at, len)) in self.sections.iter().zip(names).zip(places) {
            file.u32(u32::try_from(name).expect("a small file"))
                .u32(section.kind);
            file.u64(section.flags)
                .u64(section.address)
                .u64(number(at))
                .u64(number(len));
            file.u32(section.link).u32(0).u64(8).u64(section.entry);
        }
        file.u32(0)
            .u32(3)
            .u64(0)
            .u64(0)
            .u64(number(strings_at))
            .u64(number(strings.len()));
        file.u32(0).u32(0).u64(1).u64(0);
        file.finish()
    }

    /// Symbols of functions, whose names begin at these places of `strings`.
    fn symbols(mut self, strings: Vec<u8>, names: impl Iterator<Item = usize>) -> Self {
        let mut table = ByteBuilder::new(Endian::Little);
        table.bytes([0; 24]);
        for (number, name) in names.enumerate() {
            table.u32(u32::try_from(name).expect("a small file"));
            // A global function in the first section, of one byte.
            table
                .u8(0x12)
                .u8(0)
                .u16(1)
                .u64(0x1000 + number as u64)
                .u64(1);
        }
        let strings_index = u32::try_from(self.sections.len() + 2).expect("few");
        self = self.section(".symtab", 2, 0, 0, table.finish());
        if let Some(table) = self.sections.last_mut() {
            (table.link, table.entry) = (strings_index, 24);
        }
        self.section(".strtab", 3, 0, 0, strings)
    }
}

fn small(number: usize) -> u16 {
    u16::try_from(number).expect("a small number")
}

fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        if number == 0 {
            bytes.push(byte);
            return bytes;
        }
        bytes.push(byte | 0x80);
    }
}

fn names(size: usize) -> Vec<u8> {
    let mut strings = vec![b'n'; size];
    strings.push(0);
    Elf::new()
        .code(size)
        .symbols(strings, 0..size / 24)
        .finish()
}

/// Abbreviations: each is a number, and the bytes after the number.
fn abbreviation_table(entries: &[&[u8]]) -> Vec<u8> {
    let mut table = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        table.extend(leb(number + 1));
        table.extend_from_slice(entry);
        table.extend([0, 0]);
    }
    table.push(0);
    table
}

/// A unit of DWARF 4 with these entries, with abbreviations at the start of their section.
fn unit(entries: &[u8]) -> Vec<u8> {
    let mut unit = ByteBuilder::new(Endian::Little);
    unit.u32(u32::try_from(entries.len() + 7).expect("a small unit"));
    unit.u16(4).u32(0).u8(8).bytes(entries);
    unit.finish()
}

/// A unit without children, with an address and a size.
const PLAIN_UNIT: &[u8] = &[0x11, 0, 0x11, 0x01, 0x12, 0x06];
/// The same, with the place of its lines.
const UNIT_WITH_LINES: &[u8] = &[0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06];
/// A unit with the place of its ranges.
const UNIT_WITH_RANGES: &[u8] = &[0x11, 0, 0x55, 0x17];
/// A unit with children.
const PARENT_UNIT: &[u8] = &[0x11, 1, 0x11, 0x01, 0x12, 0x06];
/// A function with an address, a size, and a name in the table of strings.
const FUNCTION: &[u8] = &[0x2e, 0, 0x03, 0x0e, 0x11, 0x01, 0x12, 0x06, 0x20, 0x0b];
/// A function that was inlined, with children and the place of its name.
const INLINED: &[u8] = &[0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x06];

fn address_and_size(start: u64, size: u32) -> Vec<u8> {
    [&start.to_le_bytes()[..], &size.to_le_bytes()].concat()
}

fn abbreviations(size: usize) -> Vec<u8> {
    let entries = vec![PLAIN_UNIT; size / 9];
    let entry = [&leb(1)[..], &address_and_size(0x1000, 16)].concat();
    let units = unit(&entry).repeat(size / 24);
    Elf::new()
        .code(64)
        .debug(".debug_abbrev", abbreviation_table(&entries))
        .debug(".debug_info", units)
        .finish()
}

fn lines(size: usize) -> Vec<u8> {
    let entry = [&leb(1)[..], &[0; 4], &address_and_size(0x1000, 0x1000)].concat();
    let units = unit(&entry).repeat(size / 28);
    let mut program = ByteBuilder::new(Endian::Little);
    let header = [
        &[1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1][..],
        b"\0a.c\0\0\0\0\0",
    ]
    .concat();
    // The address, then rows, then the end.
    let mut rows = vec![0, 9, 2];
    rows.extend(0x1000_u64.to_le_bytes());
    rows.extend(vec![0x21; size]);
    rows.extend([0, 1, 1]);
    program.u32(u32::try_from(6 + header.len() + rows.len()).expect("a small file"));
    program
        .u16(4)
        .u32(u32::try_from(header.len()).expect("few"))
        .bytes(header)
        .bytes(rows);
    Elf::new()
        .code(0x1000)
        .debug(".debug_abbrev", abbreviation_table(&[UNIT_WITH_LINES]))
        .debug(".debug_info", units)
        .debug(".debug_line", program.finish())
        .finish()
}

fn ranges(size: usize) -> Vec<u8> {
    let units = unit(&[&leb(1)[..], &[0; 4]].concat()).repeat(size / 16);
    let mut list = ByteBuilder::new(Endian::Little);
    for number in 0..size as u64 / 16 {
        list.u64(0x1000 + 2 * number).u64(0x1001 + 2 * number);
    }
    list.u64(0).u64(0);
    Elf::new()
        .code(0x1000)
        .debug(".debug_abbrev", abbreviation_table(&[UNIT_WITH_RANGES]))
        .debug(".debug_info", units)
        .debug(".debug_ranges", list.finish())
        .finish()
}

fn function_names(size: usize) -> Vec<u8> {
    let mut entries = [&leb(1)[..], &address_and_size(0x1000, 0x10_0000)].concat();
    for number in 0..size / 18 {
        entries.extend(leb(2));
        entries.extend(u32::try_from(number).expect("a small file").to_le_bytes());
        entries.extend(address_and_size(0x1000 + number as u64, 1));
        // It was inlined.
        entries.push(1);
    }
    entries.push(0);
    let mut strings = vec![b'n'; size];
    strings.push(0);
    Elf::new()
        .code(size)
        .debug(
            ".debug_abbrev",
            abbreviation_table(&[PARENT_UNIT, FUNCTION]),
        )
        .debug(".debug_info", unit(&entries))
        .debug(".debug_str", strings)
        .finish()
}

/// A map of blocks, in as many sections as fit.
fn sections(size: usize) -> Vec<u8> {
    // Functions with no block.
    let functions = [&[2, 0][..], &0x1000_u64.to_le_bytes(), &[0]].concat();
    let mut elf = Elf::new().code(64).section(
        ".llvm_bb_addr_map",
        0x6fff_4c0a,
        0,
        0,
        functions.repeat(size / 11),
    );
    for _ in 0..(size / 64).min(60_000) {
        elf = elf.section(".llvm_bb_addr_map", 0x6fff_4c0a, 0, 0, Vec::new());
        if let Some(last) = elf.sections.last_mut() {
            last.same_as = Some(1);
        }
    }
    elf.finish()
}

fn section_names(size: usize) -> Vec<u8> {
    let mut elf = Elf::new().section(&"s".repeat(size), 1, 0, 0, vec![1; 8]);
    for _ in 0..(size / 64).min(60_000) {
        elf = elf.section(&"s".repeat(size), 1, 0, 0, Vec::new());
    }
    elf.finish()
}

fn notes(size: usize) -> Vec<u8> {
    // A note without a name and without a text.
    let notes = [0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0].repeat(size / 12);
    let mut elf = Elf::new().code(64).section("notes", 1, 2, 0, notes);
    elf.notes = Some((1, (size / 56).min(60_000)));
    elf.finish()
}

/// The header of a compressed section: zlib, the size, the alignment.
fn packed_header(size: u64) -> Vec<u8> {
    let mut header = ByteBuilder::new(Endian::Little);
    header.u32(1).u32(0).u64(size).u64(1);
    header.finish()
}

fn packed(elf: Elf, name: &str, data: Vec<u8>) -> Elf {
    elf.section(name, 1, 0x800, 0, data)
}

fn unpacked(size: usize) -> Vec<u8> {
    use std::io::Write as _;
    let unpacked = size * 500;
    let mut zlib = flate2::write::ZlibEncoder::new(
        packed_header(unpacked as u64),
        flate2::Compression::best(),
    );
    let zeros = vec![0; 1 << 16];
    for start in (0..unpacked).step_by(zeros.len()) {
        let len = zeros.len().min(unpacked - start);
        zlib.write_all(&zeros[..len]).expect("memory");
    }
    let data = zlib.finish().expect("memory");
    let mut elf = Elf::new().code(64);
    for name in [
        ".debug_info",
        ".debug_abbrev",
        ".debug_str",
        ".debug_line",
        MAP,
    ] {
        let same_as = (elf.sections.len() > 1).then_some(1);
        elf = packed(elf, name, data.clone());
        if let Some(last) = elf.sections.last_mut() {
            last.same_as = same_as;
        }
    }
    elf.finish()
}

fn claimed(size: usize) -> Vec<u8> {
    let mut data = packed_header(1 << 36);
    data.resize(size, 0);
    let mut elf = Elf::new().code(64);
    for name in [MAP, ".llvm_bb_addr_map", ".debug_info", ".debug_abbrev"] {
        elf = packed(elf, name, data.clone());
    }
    elf.finish()
}

fn nested(size: usize) -> Vec<u8> {
    let count = size / 18;
    let mut entries = [&leb(1)[..], &address_and_size(0x1000, 0x1000)].concat();
    for _ in 0..count {
        // Each says that it is an instance of the first one.
        entries.extend(leb(2));
        entries.extend(26_u32.to_le_bytes());
        entries.extend(address_and_size(0x1000, 0x1000));
    }
    entries.resize(entries.len() + count + 1, 0);
    Elf::new()
        .code(0x1000)
        .debug(".debug_abbrev", abbreviation_table(&[PARENT_UNIT, INLINED]))
        .debug(".debug_info", unit(&entries))
        .finish()
}
