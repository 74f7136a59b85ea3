//! Writes raw MemProf dumps, for tests and to make files that older LLVM releases can read.
use super::header::{BUILD_ID_LEN, Elements, HEADER_LEN, MAGIC, Version};
use super::histogram::encode_element;
use super::reader::{RawBlock, Segment};
use crate::bytes::{Bytes, Sink, assert_planned};
use crate::memprof::block::Field;
use crate::memprof::losses::Losses;
use crate::{ErrorKind, Result, Structure};

/// A segment to write: a mapping of code in the profiled process.
pub type SegmentToWrite = Segment;

/// The contents of a raw MemProf dump to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpToWrite {
    /// The segments: the mappings of code.
    pub segments: Vec<SegmentToWrite>,
    /// The memory info blocks, each with the id of its call stack.
    pub blocks: Vec<RawBlock>,
    /// The id and the addresses of each call stack.
    pub stacks: Vec<(u64, Vec<u64>)>,
}

/// Options for writing a raw MemProf dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawMemProfOptions {
    /// The version of the raw MemProf format to write.
    pub version: Version,
}

impl RawMemProfOptions {
    /// Returns the default options for a version.
    pub fn for_version(version: Version) -> Self {
        RawMemProfOptions { version }
    }
}

/// Writes a dump. Nothing is left out: data that the version cannot hold is an error.
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if the version cannot hold a build id or a histogram, and the errors of the sink.
pub fn write(
    dump: &DumpToWrite,
    options: &RawMemProfOptions,
    sink: &mut dyn Sink,
) -> Result<Losses> {
    let version = options.version;
    let mut segments = count(dump.segments.len());
    for segment in &dump.segments {
        for word in [segment.start, segment.end, segment.offset] {
            segments.extend_from_slice(&word.to_le_bytes());
        }
        let id = &segment.build_id.0;
        if version.has_build_id_size() {
            segments.extend_from_slice(&(id.len() as u64).to_le_bytes());
        }
        if id.len() > BUILD_ID_LEN {
            return Err(ErrorKind::CannotRepresent
                .error("a build id is too long")
                .within(Structure::RawMemProf)
                .found(Bytes(id.len()))
                .expected(format_args!("at most {BUILD_ID_LEN}")));
        }
        segments.extend_from_slice(id);
        segments.extend((id.len()..BUILD_ID_LEN).map(|_| 0));
    }
    let schema = version.schema();
    let mut blocks = count(dump.blocks.len());
    for RawBlock {
        stack_id,
        block,
        histogram,
    } in &dump.blocks
    {
        blocks.extend_from_slice(&stack_id.to_le_bytes());
        let mut block = *block;
        if version.elements() == Elements::None && !histogram.is_empty() {
            return Err(ErrorKind::CannotRepresent
                .error("this version has no histograms")
                .within(Structure::RawMemProf)
                .found(version.number())
                .expected("4 or 5"));
        }
        block.set(Field::AccessHistogramSize, histogram.len() as u64);
        schema.write(&block, &mut blocks);
        for &value in histogram {
            match version.elements() {
                Elements::Floats => blocks.extend_from_slice(&encode_element(value).to_le_bytes()),
                _ => blocks.extend_from_slice(&value.to_le_bytes()),
            }
        }
    }
    let mut stacks = count(dump.stacks.len());
    for (id, addresses) in &dump.stacks {
        for word in [*id, addresses.len() as u64].iter().chain(addresses) {
            stacks.extend_from_slice(&word.to_le_bytes());
        }
    }
    let mut header = vec![MAGIC, u64::from(version.number())];
    let mut offset = HEADER_LEN as u64;
    let mut offsets = Vec::new();
    for section in [&mut segments, &mut blocks, &mut stacks] {
        section.resize(section.len().next_multiple_of(8), 0);
        offsets.push(offset);
        offset += section.len() as u64;
    }
    header.push(offset);
    header.append(&mut offsets);
    let header: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_planned(
        "header of the MemProf dump",
        HEADER_LEN as u64,
        header.len() as u64,
    );
    let mut written = 0;
    for part in [header, segments, blocks, stacks] {
        written += part.len() as u64;
        sink.put(&part)?;
    }
    assert_planned("MemProf dump", offset, written);
    Ok(Losses::default())
}

fn count(items: usize) -> Vec<u8> {
    (items as u64).to_le_bytes().to_vec()
}
