//! Builds MIP files byte by byte, for tests of the readers. This module shares no code with the readers.
use crate::bytes::{ByteBuilder, Endian};
use twox_hash::XxHash3_64;

/// Mode flag: function coverage, one byte per function.
pub const COVERAGE: u16 = 0x01;
/// Mode flag: block coverage. In the record, the bytes of the blocks follow the bytes of the entry.
pub const BLOCKS: u16 = 0x02;
/// Mode flags: the number of calls and the ordinal of the first call. They take eight bytes.
pub const CALLS: u16 = 0x0c;
/// Mode flag: return addresses are sampled.
pub const RETURN_ADDRESSES: u16 = 0x10;
/// Mode flag: calls are sampled into a table. The entry then takes sixteen bytes.
pub const CALL_EDGES: u16 = 0x80;
/// Mode flags: function coverage with a unary counter in the byte.
pub const UNARY: u16 = 0x21;

/// Mode flag: some blocks are inferred from others.
pub const INFERRED: u16 = 0x400;

/// A map of version 8, in the layout that docs/formats/mip.md calls B. The authors of the original MIP published it. It
/// contains the function foo with one block, and the function main.
pub const V8_MAP: &[u8] = &[
    0xfb, 0x4d, 0x49, 0x50, 0x08, 0x00, 0x14, 0x00, 0x01, 0x00, 0x00, 0x00, 0xef, 0xbe, 0xad, 0xde,
    0xa0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00,
    0xa0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0x10, 0x00, 0x00, 0x00, 0x15, 0x77, 0x0e, 0x00, 0x01, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00,
    0x03, 0x00, 0x00, 0x00, 0x66, 0x6f, 0x6f, 0x00, 0x79, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0x68, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x30, 0x00, 0x00, 0x00, 0x11, 0x11, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x6d, 0x61, 0x69, 0x6e,
];

/// A raw file for the map [`V8_MAP`], which the authors of the original MIP published. In its run, foo was entered.
pub const V8_RAW: &[u8] = &[
    0xfb, 0x4d, 0x49, 0x50, 0x08, 0x00, 0x11, 0x00, 0x01, 0x00, 0x00, 0x00, 0xef, 0xbe, 0xad, 0xde,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00,
    0x00, 0xff,
];

/// A function of an invented image.
#[derive(Clone, Debug)]
pub struct MipFunction {
    /// The symbol of the function.
    pub name: String,
    /// The mode flags of the function.
    pub modes: u16,
    /// The offsets of the function's blocks, without the entry block.
    pub blocks: Vec<u32>,
    /// With the mode [`INFERRED`]: for each block, the entry first, the blocks from which it is inferred.
    pub lists: Vec<Vec<u32>>,
    /// The size of the function in bytes.
    pub size: u32,
    /// The control-flow signature of the function.
    pub signature: u32,
}

impl MipFunction {
    /// Makes a function of 0x40 bytes with a block every 8 bytes.
    pub fn new(name: impl Into<String>, modes: u16, blocks: u32) -> Self {
        MipFunction {
            name: name.into(),
            modes,
            blocks: (1..=blocks).map(|block| 8 * block).collect(),
            lists: Vec::new(),
            size: 0x40,
            signature: 0x1000 + blocks,
        }
    }

    /// Makes a function with inferred blocks.
    pub fn inferred(name: impl Into<String>, modes: u16, lists: &[&[u32]]) -> Self {
        let blocks = u32::try_from(lists.len() - 1).expect("few blocks");
        MipFunction {
            lists: lists.iter().map(|list| list.to_vec()).collect(),
            ..MipFunction::new(name, modes | BLOCKS | INFERRED, blocks)
        }
    }

    fn entry_size(&self) -> usize {
        match self.modes & (CALLS | CALL_EDGES) {
            0 => 1,
            CALLS => 8,
            _ => 16,
        }
    }

    fn record_size(&self) -> usize {
        let blocks = if self.modes & INFERRED != 0 {
            self.lists
                .iter()
                .skip(1)
                .filter(|list| list.is_empty())
                .count()
        } else if self.modes & BLOCKS != 0 {
            self.blocks.len()
        } else {
            0
        };
        self.entry_size() + blocks
    }
}

/// An invented image. Its functions begin at intervals of 0x40 bytes, the first at [`TEXT`](MipImage::TEXT).
#[derive(Clone, Debug)]
pub struct MipImage {
    /// The build id of the image.
    pub build_id: Vec<u8>,
    /// The functions of the image, in the order of their addresses.
    pub functions: Vec<MipFunction>,
}

impl MipImage {
    /// The address of the record section.
    pub const SECTION: u64 = 0x40_4000;
    /// The address of the first function.
    pub const TEXT: u64 = 0x40_1000;

    /// Makes an image with these functions.
    pub fn new(build_id: &[u8], functions: Vec<MipFunction>) -> Self {
        MipImage {
            build_id: build_id.to_vec(),
            functions,
        }
    }

    /// Returns the offset of each record in the record section, and the size of the section.
    pub fn layout(&self) -> (Vec<usize>, usize) {
        let mut end = 0usize;
        let offsets = self
            .functions
            .iter()
            .map(|function| {
                let align = if function.modes & CALLS != 0 { 4 } else { 1 };
                let start = end.next_multiple_of(align);
                end = start + function.record_size();
                start
            })
            .collect();
        (offsets, end)
    }

    /// Returns the bitwise OR of the mode flags of all functions, as the headers of raw files have it.
    pub fn modes(&self) -> u16 {
        self.functions
            .iter()
            .fold(0, |modes, function| modes | function.modes & !INFERRED)
    }

    /// Makes the map of the image in version 9. The anchor is its first entry. The builder has the labels `anchor`,
    /// `NAME`, `NAME.modes`, `NAME.record`, `NAME.blocks`, `NAME.length`, `NAME.lists`, `NAME.name` and `end`.
    pub fn map(&self) -> ByteBuilder {
        let mut map = ByteBuilder::new(Endian::Little);
        let anchor = MipFunction {
            name: String::new(),
            modes: 0,
            blocks: Vec::new(),
            lists: Vec::new(),
            size: 0,
            signature: 0,
        };
        entry(&mut map, "anchor", &anchor, Self::SECTION, 0x40_3000);
        let (offsets, _) = self.layout();
        for ((function, offset), index) in self.functions.iter().zip(offsets).zip(0..) {
            let record = Self::SECTION + offset as u64;
            let address = Self::TEXT + 0x40 * index;
            entry(&mut map, &function.name, function, record, address);
        }
        map.label("end");
        map
    }

    /// Returns the records as they are when the program starts.
    pub fn records(&self) -> Vec<u8> {
        vec![0xff; self.layout().1]
    }

    /// Returns the records after a run. Each element of `called` is the index of a function, the number of its calls,
    /// and the ordinal of its first call, which is used only if the function counts calls. All blocks of a called
    /// function except the last are marked as executed.
    pub fn run(&self, called: &[(usize, u32, u32)]) -> Vec<u8> {
        let (offsets, _) = self.layout();
        let mut records = self.records();
        for &(index, calls, ordinal) in called {
            let function = &self.functions[index];
            let start = offsets[index];
            let record = &mut records[start..start + function.record_size()];
            let entry = function.entry_size();
            match function.modes & (CALLS | UNARY) {
                CALLS => {
                    record[..4].copy_from_slice(&calls.wrapping_sub(1).to_le_bytes());
                    record[4..8].copy_from_slice(&ordinal.to_le_bytes());
                }
                UNARY => record[0] = 0xffu8.checked_shr(calls).unwrap_or(0),
                // The program leaves the byte of an inferred entry as it is.
                _ if function.lists.first().is_some_and(|list| !list.is_empty()) => {}
                _ => record[0] = 0,
            }
            let blocks = record.len() - entry;
            record[entry..entry + blocks.saturating_sub(1)].fill(0);
        }
        records
    }

    /// Makes a raw file of version 9 with one run.
    pub fn raw(&self, records: &[u8]) -> Vec<u8> {
        self.raw_with(records, 1, &[]).finish()
    }

    /// Makes a raw file of version 9. The builder has the labels `magic`, `version`, `type`, `modes`, `id.length`,
    /// `samples.size`, `runs`, `records.size`, `id`, `records`, `samples` and `checksum`.
    pub fn raw_with(&self, records: &[u8], runs: u32, samples: &[(u32, u32)]) -> ByteBuilder {
        let mut raw = ByteBuilder::new(Endian::Little);
        raw.label("magic").u32(0x5049_4dfb);
        raw.label("version").u16(9).label("type").u16(0x11);
        raw.label("modes").u32(self.modes().into());
        let length = u32::try_from(self.build_id.len()).expect("a short build id");
        raw.label("id.length").u32(length);
        let size = u32::try_from(8 * samples.len()).expect("few samples");
        raw.label("samples.size").u32(size);
        raw.label("runs").u32(runs);
        raw.label("records.size").u64(records.len() as u64);
        raw.label("id").bytes(&self.build_id).align(8);
        raw.label("records").bytes(records);
        raw.label("samples");
        for &(record, address) in samples {
            raw.u32(record).u32(address);
        }
        raw.label("checksum");
        let checksum = XxHash3_64::oneshot(&raw.clone().finish());
        raw.u64(checksum);
        raw
    }
}

fn entry(map: &mut ByteBuilder, label: &str, function: &MipFunction, record: u64, address: u64) {
    let name = function.name.as_bytes();
    let lists = function.lists.iter();
    let numbers = function.blocks.len() + lists.map(|list| 1 + list.len()).sum::<usize>();
    let size = (40 + 4 * numbers + name.len()).next_multiple_of(8);
    map.label(label)
        .u32(u32::try_from(size).expect("a short entry"));
    map.label(&format!("{label}.modes"))
        .u16(function.modes)
        .u16(0);
    map.label(&format!("{label}.record")).u64(record);
    map.u64(address).u32(function.size).u32(function.signature);
    let blocks = u32::try_from(function.blocks.len()).expect("few blocks");
    map.label(&format!("{label}.blocks")).u32(blocks);
    let length = u32::try_from(name.len()).expect("a short name");
    map.label(&format!("{label}.length")).u32(length);
    for &block in &function.blocks {
        map.u32(block);
    }
    map.label(&format!("{label}.lists"));
    for list in &function.lists {
        map.u32(u32::try_from(list.len()).expect("a short list"));
    }
    for &from in function.lists.iter().flatten() {
        map.u32(from);
    }
    map.label(&format!("{label}.name")).bytes(name).align(8);
}

/// Corrects the checksum of a raw file that a test has damaged, so that a reader reports the damage and not the
/// checksum.
///
/// # Panics
/// If the file is too short for a checksum.
pub fn with_checksum(mut raw: Vec<u8>) -> Vec<u8> {
    let at = raw.len() - 8;
    let checksum = XxHash3_64::oneshot(&raw[..at]);
    raw[at..].copy_from_slice(&checksum.to_le_bytes());
    raw
}

/// Returns the image that the fixtures contain. It has functions of all modes, blocks, and a name that must be quoted.
pub fn mixed_image() -> MipImage {
    MipImage::new(
        &[0xab; 20],
        vec![
            MipFunction::new("main", CALLS | BLOCKS | RETURN_ADDRESSES, 3),
            MipFunction::new("_ZN3one3twoEi", CALLS | RETURN_ADDRESSES, 0),
            MipFunction::new("covered", COVERAGE | BLOCKS, 2),
            MipFunction::new("-[Unary counter:]", UNARY, 0),
            MipFunction::new("never", COVERAGE, 0),
        ],
    )
}
