//! Reads and writes the value data of one function record. LLVM's names for value data are `ValueProfData` and
//! `ValueProfRecord` (`InstrProfData.inc`). The checks are those of `ValueProfData::checkIntegrity` (`InstrProf.cpp`).
//!
//! Value data have the same layout in raw files (from version 2, in the byte order of the program) and in indexed files
//! (from version 3, little-endian):
//!
//! | bytes | field |
//! |---|---|
//! | 4 | TotalSize: the length of all these bytes, including this field; a multiple of 8 |
//! | 4 | NumValueKinds: how many value kinds follow; the following fields are repeated for each kind |
//! | 4 | Kind: the value kind (0 indirect call targets, 1 sizes of memory operations, 2 vtables) |
//! | 4 | NumValueSites: the number of value sites |
//! | NumValueSites | SiteCountArray: the number of values of each site, one byte per site |
//! | 0 to 7 | padding to a multiple of 8 |
//! | 16 per value | Value and Count of each value, one site after the other |
use super::record::{KindValues, ValueData, ValueEntry};
use crate::bytes::{Bytes, Cursor, Endian};
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::value_kind;

const BLOB_HEADER_LEN: usize = 8;
const KIND_HEADER_LEN: usize = 8;
const ENTRY_LEN: usize = 16;
/// The alignment of value data: the header of each value kind and the SiteCountArray after it are padded together to a
/// multiple of this length.
const ALIGNMENT: usize = 8;

const STRUCTURE: Structure = Structure::ValueData;

/// Decodes the value data of one function record at the cursor into `values`, which is emptied first. The values are as
/// the file has them: in a raw file, the values of call targets are addresses.
///
/// If a value kind occurs twice, its value sites are appended to each other, as in LLVM's reader.
///
/// # Errors
/// The error kinds and detail texts are LLVM's. In these cases the cursor does not move: [`ErrorKind::Truncated`] if
/// there are fewer bytes than the header of value data has; [`ErrorKind::TooLarge`] if TotalSize is greater than the
/// number of bytes; [`ErrorKind::Malformed`] if TotalSize is not a multiple of 8 or is less than 8. For all other
/// damage the error is [`ErrorKind::Malformed`], and the cursor moves past the value data, so that reading can
/// continue.
pub fn decode(cursor: &mut Cursor<'_>, values: &mut ValueData) -> Result<()> {
    values.clear();
    let mut blob = window(cursor)?;
    read_kinds(&mut blob, values).map_err(|error| {
        values.clear();
        error.within(STRUCTURE)
    })
}

/// Skips the value data of one function record at the cursor without decoding them.
///
/// # Errors
/// The errors of [`decode`], except those that are found only by decoding.
pub fn skip(cursor: &mut Cursor<'_>) -> Result<()> {
    window(cursor).map(drop)
}

/// Whether the value data at the cursor have a TotalSize of 0. No writer writes this, because the header alone has 8
/// bytes. LLVM's reader takes such value data for empty, and reads the value data of the next record at the same offset
/// (`ValueProfData::getValueProfData` copies TotalSize bytes to a structure that was set to 0).
pub(super) fn is_empty_for_llvm(cursor: &Cursor<'_>) -> bool {
    let mut peek = *cursor;
    cursor.remaining() >= BLOB_HEADER_LEN && peek.u32() == Ok(0)
}

/// Returns the number of bytes that [`encode`] appends for these values. Without value sites it is 8, the length of the
/// header.
pub fn encoded_len(values: &ValueData) -> usize {
    let kinds = values.kinds().filter(|(_, kind)| kind.site_count() > 0);
    BLOB_HEADER_LEN
        + kinds
            .map(|(_, kind)| kind_header_len(kind.site_count()) + kind.entries().len() * ENTRY_LEN)
            .sum::<usize>()
}

/// Appends the value data of one function record. Like LLVM's writer, it leaves out value kinds without value sites.
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if a value site has more than 255 values or the value data are 4 GiB or longer.
/// Nothing is appended then.
pub fn encode(values: &ValueData, endian: Endian, out: &mut Vec<u8>) -> Result<()> {
    let total = u32::try_from(encoded_len(values)).map_err(|_| {
        ErrorKind::CannotRepresent
            .error("the value data of one record are too large")
            .within(STRUCTURE)
            .expected("less than 4 GiB")
    })?;
    let kinds = || values.kinds().filter(|(_, kind)| kind.site_count() > 0);
    for (_, kind) in kinds() {
        let longest = kind.sites().map(<[_]>::len).max().unwrap_or(0);
        if longest > value_kind::MAX_VALUES_PER_SITE {
            return Err(ErrorKind::CannotRepresent
                .error("a value site has too many values")
                .within(STRUCTURE)
                .found(longest)
                .expected(format_args!("at most {}", value_kind::MAX_VALUES_PER_SITE)));
        }
    }
    let kind_count = kinds().fold(0u32, |count, _| count + 1);
    out.extend_from_slice(&endian.u32_bytes(total));
    out.extend_from_slice(&endian.u32_bytes(kind_count));
    for (number, kind) in kinds() {
        encode_kind(number, kind, endian, out);
    }
    Ok(())
}

fn encode_kind(number: u32, kind: &KindValues, endian: Endian, out: &mut Vec<u8>) {
    let sites = u32::try_from(kind.site_count()).unwrap_or(u32::MAX);
    out.extend_from_slice(&endian.u32_bytes(number));
    out.extend_from_slice(&endian.u32_bytes(sites));
    out.extend(
        kind.sites()
            .map(|site| u8::try_from(site.len()).unwrap_or(u8::MAX)),
    );
    let padding = kind_header_len(kind.site_count()) - KIND_HEADER_LEN - kind.site_count();
    out.extend(std::iter::repeat_n(0, padding));
    for entry in kind.entries() {
        out.extend_from_slice(&endian.u64_bytes(entry.value));
        out.extend_from_slice(&endian.u64_bytes(entry.count));
    }
}

fn kind_header_len(sites: usize) -> usize {
    (KIND_HEADER_LEN + sites).next_multiple_of(ALIGNMENT)
}

/// Moves `cursor` past the value data of one function record. Returns a cursor from the byte after the TotalSize field
/// to the end of these value data.
fn window<'data>(cursor: &mut Cursor<'data>) -> Result<Cursor<'data>> {
    let start = cursor.offset();
    let mut peek = *cursor;
    if cursor.remaining() < BLOB_HEADER_LEN {
        return Err(ErrorKind::Truncated
            .error("the data are too short here")
            .at(start)
            .within(STRUCTURE)
            .found(format_args!("{} left", Bytes(cursor.remaining())))
            .expected(format_args!("{BLOB_HEADER_LEN} bytes")));
    }
    let total = peek.u32()?;
    if total as usize > cursor.remaining() {
        return Err(ErrorKind::TooLarge
            .error("TotalSize runs past the end of the data")
            .at(start)
            .within(STRUCTURE)
            .found(Bytes(total))
            .expected(format_args!("at most {}", Bytes(cursor.remaining()))));
    }
    if !(total as usize).is_multiple_of(ALIGNMENT) {
        return Err(ErrorKind::Malformed
            .error("TotalSize is not a multiple of 8")
            .at(start)
            .within(STRUCTURE)
            .found(total)
            // The text below has the spelling error of LLVM's message.
            .llvm_detail("total size is not multiples of quardword"));
    }
    if (total as usize) < BLOB_HEADER_LEN {
        return Err(ErrorKind::Malformed
            .error("TotalSize is too small")
            .at(start)
            .within(STRUCTURE)
            .found(total)
            .expected(format_args!("at least {BLOB_HEADER_LEN}")));
    }
    let mut blob = cursor.window(u64::from(total))?;
    blob.u32()?;
    Ok(blob)
}

fn read_kinds(blob: &mut Cursor<'_>, values: &mut ValueData) -> Result<()> {
    let start = blob.offset();
    let kind_count = blob.u32()?;
    if kind_count as usize > value_kind::COUNT {
        return Err(ErrorKind::Malformed
            .error("there are too many value kinds")
            .at(start)
            .found(kind_count)
            .expected(format_args!("at most {}", value_kind::COUNT))
            .llvm_detail("number of value profile kinds is invalid"));
    }
    (0..kind_count).try_for_each(|_| read_kind(blob, values))
}

fn read_kind(blob: &mut Cursor<'_>, values: &mut ValueData) -> Result<()> {
    let start = blob.offset();
    let available = blob.remaining();
    let number = blob
        .u32()
        .map_err(|_| runs_past(start, available, KIND_HEADER_LEN as u64))?;
    let Some(kind) = values.kind_mut(number) else {
        return Err(ErrorKind::Malformed
            .error("there is no such value kind")
            .at(start)
            .found(number)
            .expected(format_args!("less than {}", value_kind::COUNT))
            .llvm_detail("value kind is invalid"));
    };
    let past = |wanted: u64| move |_| runs_past(start, available, wanted);
    let site_count = blob.u32().map_err(past(KIND_HEADER_LEN as u64))?;
    let counts_len = (KIND_HEADER_LEN as u64 + u64::from(site_count))
        .next_multiple_of(ALIGNMENT as u64)
        - KIND_HEADER_LEN as u64;
    let site_counts = blob
        .take_u64(counts_len)
        .map_err(past(KIND_HEADER_LEN as u64 + counts_len))?
        .get(..site_count as usize)
        .unwrap_or_default();
    let entry_count: u64 = site_counts.iter().map(|&count| u64::from(count)).sum();
    let entries_len = entry_count * ENTRY_LEN as u64;
    let mut entries = blob
        .take_u64(entries_len)
        .map_err(past(KIND_HEADER_LEN as u64 + counts_len + entries_len))?;
    let endian = blob.endian();
    for &count in site_counts {
        let (site, rest) = entries
            .split_at_checked(usize::from(count) * ENTRY_LEN)
            .unwrap_or_default();
        entries = rest;
        let (pairs, _) = site.as_chunks::<ENTRY_LEN>();
        kind.push_site(pairs.iter().map(|pair| {
            let (halves, _) = pair.as_chunks::<8>();
            let half = |index: usize| halves.get(index).map_or(0, |&bytes| endian.u64(bytes));
            ValueEntry {
                value: half(0),
                count: half(1),
            }
        }));
    }
    Ok(())
}

#[cold]
fn runs_past(start: u64, available: usize, wanted: u64) -> Error {
    ErrorKind::Malformed
        .error("the data of a value kind run past TotalSize")
        .at(start)
        .found(format_args!("{} left", Bytes(available)))
        .expected(Bytes(wanted))
        .llvm_detail("value profile address is greater than total size")
}

#[cfg(test)]
mod tests;
