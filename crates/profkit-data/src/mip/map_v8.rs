//! Reads the entries of version 8 maps: those of layout B for 64-bit and 32-bit targets, and those of layout A1, the
//! first form of layout A.
use super::entry::MapEntry;
use super::header::{Layout, MipKind};
use super::header_v8::HeaderV8;
use super::model::{Modes, Width};
use crate::bytes::Cursor;
use crate::{Result, Structure};
use profkit_abi::mip::v8::{map_entry_a1, map_entry_b32, map_entry_b64};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryLayout {
    B64,
    B32,
    A1,
}

impl EntryLayout {
    fn align(self) -> u64 {
        match self {
            EntryLayout::B64 => map_entry_b64::ALIGN as u64,
            EntryLayout::B32 => map_entry_b32::ALIGN as u64,
            EntryLayout::A1 => map_entry_a1::ALIGN as u64,
        }
    }
}

pub(super) fn parse(data: &[u8]) -> Result<(HeaderV8, EntryLayout)> {
    let header = HeaderV8::parse(data, MipKind::Map)?;
    let layout = match (header.preamble.layout, header.preamble.width) {
        (Layout::V8A, _) => EntryLayout::A1,
        (_, Some(Width::Bits32)) => EntryLayout::B32,
        _ => EntryLayout::B64,
    };
    Ok((header, layout))
}

/// Reads the next map entry; `None` at the end of the map. The padding of the last entry of a file may be missing.
pub(super) fn read_entry<'data>(
    cursor: &mut Cursor<'data>,
    layout: EntryLayout,
    modes: Modes,
    raw_section_offset: i64,
) -> Result<Option<MapEntry<'data>>> {
    let over = cursor.offset() % layout.align();
    if over != 0 {
        let padding = (layout.align() - over).min(cursor.remaining() as u64);
        cursor.take_u64(padding)?;
    }
    // The remaining bytes are padding by the linker: they are zeros and too few for an entry.
    if cursor.rest().iter().all(|&byte| byte == 0) && (cursor.remaining() as u64) < layout.align() {
        return Ok(None);
    }
    read_fields(cursor, layout, modes, raw_section_offset)
        .map(Some)
        .map_err(|error| error.within(Structure::MapEntry))
}

fn read_fields<'data>(
    cursor: &mut Cursor<'data>,
    layout: EntryLayout,
    modes: Modes,
    raw_section_offset: i64,
) -> Result<MapEntry<'data>> {
    let offset = cursor.offset();
    let narrow = |cursor: &mut Cursor<'data>| Ok(i64::from(cursor.u32()?.cast_signed()));
    // The distance from this map entry to the start of the records.
    let (start, record, function) = match layout {
        EntryLayout::B64 => (
            raw_section_offset.wrapping_sub(offset.cast_signed()),
            cursor.u64()?.cast_signed(),
            cursor.u64()?.cast_signed(),
        ),
        EntryLayout::B32 => (
            raw_section_offset.wrapping_sub(offset.cast_signed()),
            narrow(cursor)?,
            narrow(cursor)?,
        ),
        EntryLayout::A1 => (narrow(cursor)?, narrow(cursor)?, narrow(cursor)?),
    };
    let mut record = record.wrapping_sub(start);
    if layout == EntryLayout::B32 {
        // Keep only the low 32 bits: the addresses have 32 bits, so their difference wraps around at 32 bits.
        record &= i64::from(u32::MAX);
    }
    let size = cursor.u32()?;
    let signature = cursor.u32()?;
    // An entry lists the blocks of its function even if the program has no block coverage. The record of the function
    // then has no bytes for these blocks.
    let blocks = cursor.u32()?;
    let (blocks, _) = cursor.take_u64(u64::from(blocks) * 4)?.as_chunks::<4>();
    let length = cursor.u32()?;
    let name = cursor.take_u64(u64::from(length))?;
    Ok(MapEntry {
        offset,
        modes,
        record_offset: record.cast_unsigned(),
        address: function.wrapping_sub(start).cast_unsigned(),
        size,
        signature,
        blocks,
        inference: &[],
        name,
    })
}
