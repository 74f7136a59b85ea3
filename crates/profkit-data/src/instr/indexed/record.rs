//! Reads and writes the data of one function in the function table: a function record for each function hash.
use super::header::{BITMAPS_SINCE, COUNT_LENGTHS_SINCE, UNIFORMITY_SINCE, VALUES_SINCE};
use crate::bytes::{Bytes, Cursor, Endian};
use crate::hash_table::Entry;
use crate::ids::{FuncHash, NameRef};
use crate::instr::{Record, RecordRef, ValueData, value_data};
use crate::llvm_order::NumberMap;
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::value_kind;
use std::borrow::Cow;

/// The function records of one name, one for each function hash. They are decoded one by one.
#[derive(Clone, Debug)]
pub struct NameRecords<'data> {
    version: u32,
    name: &'data [u8],
    name_ref: NameRef,
    offset: u64,
    data: Cursor<'data>,
    /// The form in which the bytes of bitmaps and uniformity bits are stored.
    form: ByteForm,
    /// Whether the first record was already requested. The length of all records is checked only once, at the first
    /// request.
    begun: bool,
    /// Whether records are decoded as LLVM decodes them. All records of the name are then checked before the first one
    /// is returned, and no record is returned if one is damaged. Value data whose TotalSize is 0 are read as empty.
    as_llvm: bool,
}

/// The form in which function records store the bytes of bitmaps and uniformity bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteForm {
    /// Each byte takes a word of 8 bytes (versions 11 to 13).
    Words,
    /// The bytes follow each other without gaps. Zero bytes after the last one fill the space up to a multiple of 8
    /// (version 14).
    Packed,
}

impl ByteForm {
    fn of(version: u32) -> Self {
        if version < UNIFORMITY_SINCE {
            ByteForm::Words
        } else {
            ByteForm::Packed
        }
    }
}

/// The detail text that LLVM prints after `malformed` for every fault in a function record.
const LLVM_DETAIL: &str = "profile data is empty";

impl<'data> NameRecords<'data> {
    #[inline]
    pub(super) fn new(entry: &Entry<'data>, version: u32) -> Self {
        NameRecords {
            version,
            name: entry.key,
            name_ref: NameRef(entry.hash),
            offset: entry.offset,
            data: entry.cursor(),
            form: ByteForm::of(version),
            begun: false,
            as_llvm: false,
        }
    }

    /// Sets whether records are decoded as LLVM decodes them: no record of the name is returned if one is damaged, and
    /// value data whose TotalSize is 0 are read as empty.
    #[must_use]
    #[inline]
    pub(super) fn with_llvm_rules(mut self, as_llvm: bool) -> Self {
        self.as_llvm = as_llvm;
        self
    }

    /// The name of the function that the records belong to.
    pub fn name(&self) -> &'data [u8] {
        self.name
    }

    /// The hash of the function's name, as stored in the function table.
    pub fn name_ref(&self) -> NameRef {
        self.name_ref
    }

    /// The offset in the file of the item of the function table that holds these records. The offset increases from
    /// name to name in reading order.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// A number for the place of a record in the file, which increases from record to record. `record` is its index among the
    /// records of the name.
    #[inline]
    pub fn place(&self, record: u64) -> u64 {
        // A record has at least 8 bytes, so all places of a name are less than those of the next one.
        (self.offset >> 3) + record
    }

    /// Decodes the next function record into `record` and reuses its buffers. Returns `Ok(false)` after the last record
    /// of the name.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the data are damaged. Further calls then return no more records of this name.
    pub fn read_record(&mut self, record: &mut Record) -> Result<bool> {
        if self.begun && self.data.is_empty() {
            return Ok(false);
        }
        if self.read_plain(record) {
            return Ok(true);
        }
        self.read_parts(record)
    }

    /// Decodes the next record part by part. This works for records of any form, but is slower than
    /// [`read_plain`](Self::read_plain).
    fn read_parts(&mut self, record: &mut Record) -> Result<bool> {
        let mut data = self.data;
        let read = self
            .check_len()
            .and_then(|()| self.decode(&mut data, record))
            .and_then(|()| self.check_rest(data));
        self.begun = true;
        match read {
            Ok(()) => {
                self.data = data;
                self.name_record(record);
                Ok(true)
            }
            Err(error) => {
                self.data = Cursor::new(&[], self.data.offset(), Endian::Little);
                Err(error
                    .within(Structure::Record)
                    .within(Structure::Function(
                        String::from_utf8_lossy(self.name).into_owned(),
                    ))
                    .llvm_detail(LLVM_DETAIL))
            }
        }
    }

    fn name_record(&self, record: &mut Record) {
        record.name.clear();
        record.name.extend_from_slice(self.name);
        record.name_ref = self.name_ref;
    }

    /// Decodes the only record of the name if it has counters alone: no bitmap, no uniformity bits and no values. Most
    /// records are of this form. Decoding them in one step takes a quarter of the time that decoding part by part
    /// takes. Returns `false` for data of any other form and for damaged data; the caller decodes such data part by
    /// part.
    fn read_plain(&mut self, record: &mut Record) -> bool {
        if self.begun {
            return false;
        }
        let Some((func_hash, counts)) = self.plain() else {
            return false;
        };
        record.clear();
        record.func_hash = func_hash;
        let counts = counts.iter().map(|&count| u64::from_le_bytes(count));
        record.counts.extend(counts);
        self.name_record(record);
        self.begun = true;
        self.data = Cursor::new(&[], self.data.offset(), Endian::Little);
        true
    }

    /// Returns the function hash and the counters, little-endian, if the data of the function consist of a single record
    /// with nothing but counters; otherwise `None`. Must be called before the first record is read.
    #[inline]
    pub fn plain(&self) -> Option<(FuncHash, &'data [[u8; 8]])> {
        // The number of words that state the lengths of the bitmap and of the uniformity bits in this version.
        let lengths = match self.version {
            ..VALUES_SINCE => return None,
            VALUES_SINCE..BITMAPS_SINCE => 0,
            BITMAPS_SINCE..UNIFORMITY_SINCE => 1,
            UNIFORMITY_SINCE.. => 2,
        };
        let (words, []) = self.data.rest().as_chunks::<8>() else {
            return None;
        };
        let [func_hash, count, rest @ ..] = words else {
            return None;
        };
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let (counts, rest) = rest.split_at_checked(count)?;
        let (values, rest) = rest.split_last()?;
        let is_plain = u64::from_le_bytes(*values) == NO_VALUES
            && rest.len() == lengths
            && rest.iter().all(|length| *length == [0; 8]);
        is_plain.then(|| (FuncHash(u64::from_le_bytes(*func_hash)), counts))
    }

    /// Decodes all records after the first one if records are decoded as LLVM decodes them. Damage in these records is
    /// then found before the first record is returned.
    fn check_rest(&self, mut data: Cursor<'_>) -> Result<()> {
        if self.begun || !self.as_llvm {
            return Ok(());
        }
        let mut record = Record::default();
        while !data.is_empty() {
            self.decode(&mut data, &mut record)?;
        }
        Ok(())
    }

    fn decode(&self, data: &mut Cursor<'_>, record: &mut Record) -> Result<()> {
        read_record(data, self.version, self.form, record)?;
        if self.version < VALUES_SINCE || self.as_llvm && value_data::is_empty_for_llvm(data) {
            return Ok(());
        }
        value_data::decode(data, &mut record.values).map_err(as_malformed)
    }

    /// Checks the length of all records before the first is decoded.
    fn check_len(&self) -> Result<()> {
        if self.begun {
            return Ok(());
        }
        let len = self.data.remaining();
        if len == 0 {
            return Err(ErrorKind::Malformed
                .error("the hash table holds no data for the function")
                .at(self.data.offset()));
        }
        if !len.is_multiple_of(8) {
            return Err(ErrorKind::Malformed
                .error("the data of a function have a wrong length")
                .at(self.data.offset())
                .found(Bytes(len))
                .expected("a multiple of 8"));
        }
        Ok(())
    }
}

/// Reads one function record from `data`, but not its value data. The length of `data` must be a multiple of 8.
fn read_record(
    data: &mut Cursor<'_>,
    version: u32,
    form: ByteForm,
    record: &mut Record,
) -> Result<()> {
    record.clear();
    record.func_hash = FuncHash(data.u64().map_err(too_short)?);
    if version < COUNT_LENGTHS_SINCE {
        let words = data.remaining() as u64 / 8;
        if words == 0 {
            return Err(ErrorKind::Malformed
                .error("a record has no counters")
                .at(data.offset())
                .found(0)
                .expected("at least 1 in version 1"));
        }
        return read_words(data, words, &mut record.counts);
    }
    let count = read_len(data, "the counters run past the data of their function")?;
    read_words(data, count, &mut record.counts)?;
    if version >= BITMAPS_SINCE {
        read_bytes(data, form, LONG_BITMAP, &mut record.bitmap)?;
    }
    if version >= UNIFORMITY_SINCE {
        let len = uniformity_len(data, count)?;
        read_byte_data(data, form, len, LONG_UNIFORMITY, &mut record.uniformity)?;
    }
    Ok(())
}

/// Reads a length that counts words of 8 bytes. Fails with the text `message` if the data after the length have fewer
/// words.
fn read_len(data: &mut Cursor<'_>, message: &'static str) -> Result<u64> {
    let offset = data.offset();
    let len = data.u64().map_err(too_short)?;
    let available = data.remaining() as u64 / 8;
    if len > available {
        return Err(ErrorKind::Malformed
            .error(message)
            .at(offset)
            .found(format_args!("{len} words"))
            .expected(format_args!("at most {available} words of 8 bytes")));
    }
    Ok(len)
}

fn read_words(data: &mut Cursor<'_>, count: u64, words: &mut Vec<u64>) -> Result<()> {
    let (chunks, _) = data.take_u64(8 * count)?.as_chunks::<8>();
    words.extend(chunks.iter().map(|&bytes| u64::from_le_bytes(bytes)));
    Ok(())
}

const LONG_BITMAP: &str = "the bitmap runs past the data of its function";
const LONG_UNIFORMITY: &str = "the uniformity bits run past the data of their function";

/// Reads a list of bytes: first their number, then the bytes, which are stored in the given form. Fails with the text
/// `message` if the data end before the last of these bytes.
fn read_bytes(
    data: &mut Cursor<'_>,
    form: ByteForm,
    message: &'static str,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let len = data.u64().map_err(too_short)?;
    read_byte_data(data, form, len, message, bytes)
}

/// Reads the number of uniformity bytes of a record with `counts` counters. A record has one uniformity bit for each
/// counter, or no uniformity bits at all.
fn uniformity_len(data: &mut Cursor<'_>, counts: u64) -> Result<u64> {
    let offset = data.offset();
    let len = data.u64().map_err(too_short)?;
    if len != 0 && len != counts.div_ceil(8) {
        return Err(ErrorKind::Malformed
            .error("the number of uniformity bytes does not fit the number of counters")
            .at(offset)
            .found(len)
            .expected(format_args!("{} or 0", counts.div_ceil(8))));
    }
    Ok(len)
}

/// Reads `len` bytes, which are stored in the given form. Fails with the text `message` if the data end before the last
/// of these bytes.
fn read_byte_data(
    data: &mut Cursor<'_>,
    form: ByteForm,
    len: u64,
    message: &'static str,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let offset = data.offset();
    let available = data.remaining() as u64;
    let (stored, most) = match form {
        ByteForm::Words => (len.checked_mul(8), available / 8),
        ByteForm::Packed => (len.checked_next_multiple_of(8), available),
    };
    let Some(stored) = stored.filter(|&stored| stored <= available) else {
        // The length is stored in the word before the bytes, so the error is located at this word.
        return Err(ErrorKind::Malformed
            .error(message)
            .at(offset.saturating_sub(8))
            .found(Bytes(len))
            .expected(format_args!("at most {}", Bytes(most))));
    };
    let stored = data.take_u64(stored)?;
    match form {
        ByteForm::Words => read_words_of_bytes(stored, offset, bytes),
        ByteForm::Packed => {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            bytes.extend_from_slice(stored.get(..len).unwrap_or_default());
            Ok(())
        }
    }
}

/// Appends the bytes in `stored` to `bitmap`. Each byte is stored as a word of 8 bytes. `start` is the offset of the
/// first word in the file.
fn read_words_of_bytes(stored: &[u8], start: u64, bitmap: &mut Vec<u8>) -> Result<()> {
    let (chunks, _) = stored.as_chunks::<8>();
    for (index, &bytes) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(bytes);
        let Ok(byte) = u8::try_from(word) else {
            return Err(ErrorKind::Malformed
                .error("a word of a bitmap has a value above 255")
                .at(start + 8 * index as u64)
                .found(format_args!("{word:#x}"))
                .expected("at most 0xff"));
        };
        bitmap.push(byte);
    }
    Ok(())
}

#[cold]
fn too_short(error: Error) -> Error {
    let short = ErrorKind::Malformed.error("the data of a function end inside a record");
    match error.offset() {
        Some(offset) => short.at(offset),
        None => short,
    }
}

/// Changes the kind of an error in value data to `Malformed`, because LLVM reports every such error in an indexed
/// profile as malformed.
#[cold]
fn as_malformed(error: Error) -> Error {
    error.with_kind(ErrorKind::Malformed)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RecordLayout {
    pub(super) version: u32,
    pub(super) vtable_sites: bool,
    /// The order of the records of a function.
    pub(super) map: NumberMap,
}

/// Returns the part of a value profile that is written: all value kinds, but vtable value sites only if `vtables` is
/// true.
pub(in crate::instr) fn known_values(values: &ValueData, vtables: bool) -> Cow<'_, ValueData> {
    if vtables || !has_vtable_sites(values) {
        return Cow::Borrowed(values);
    }
    let mut known = values.clone();
    if let Some(kind) = known.kind_mut(value_kind::VTABLE_TARGET) {
        kind.clear();
    }
    Cow::Owned(known)
}

/// Whether the value profile has vtable value sites. Only version 12 and later can hold them.
pub(in crate::instr) fn has_vtable_sites(values: &ValueData) -> bool {
    values
        .kind(value_kind::VTABLE_TARGET)
        .is_some_and(|kind| kind.site_count() > 0)
}

/// The length in bytes of the value data of a record without value sites. Such value data consist only of a header.
const NO_VALUES_LEN: usize = 8;
/// The value data of a record without value sites, read as one number: TotalSize is 8 and NumValueKinds is 0.
const NO_VALUES: u64 = 8;

/// The length in bytes that the bitmap and the uniformity bits of a record take in the given version. The word with the
/// length of the uniformity bits is included. The word with the length of the bitmap is not.
fn byte_lens(record: &RecordRef<'_>, version: u32) -> u64 {
    let (bitmap, uniformity) = (record.bitmap.len() as u64, record.uniformity.len() as u64);
    if version >= UNIFORMITY_SINCE {
        bitmap.next_multiple_of(8) + 8 + uniformity.next_multiple_of(8)
    } else {
        8 * bitmap
    }
}

/// Appends bytes, then zero bytes up to a multiple of 8.
fn encode_packed(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
    let padding = bytes.len().next_multiple_of(8) - bytes.len();
    out.extend(std::iter::repeat_n(0, padding));
}

pub(super) fn encoded_len(record: &RecordRef<'_>, layout: RecordLayout) -> u64 {
    let mut len = 16 + 8 * record.counts.len() as u64;
    if layout.version >= BITMAPS_SINCE {
        len += 8 + byte_lens(record, layout.version);
    }
    let values = record.values.map_or(NO_VALUES_LEN, |values| {
        value_data::encoded_len(&known_values(values, layout.vtable_sites))
    });
    len + values as u64
}

/// The length in bytes of a record with nothing but this number of counters.
pub(super) fn plain_len(counters: usize, layout: RecordLayout) -> u64 {
    let words = match layout.version {
        UNIFORMITY_SINCE.. => 2,
        BITMAPS_SINCE.. => 1,
        _ => 0,
    };
    8 * (3 + words + counters as u64)
}

/// Appends a record with nothing but counters.
#[inline]
pub(super) fn encode_plain(
    func_hash: FuncHash,
    counts: &[u64],
    layout: RecordLayout,
    out: &mut Vec<u8>,
) {
    let words = plain_len(counts.len(), layout) / 8;
    let start = out.len();
    let len = usize::try_from(words).unwrap_or(0) * 8;
    out.resize(start + len, 0);
    let (words, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut();
    let [hash, count, rest @ ..] = words else {
        return;
    };
    *hash = func_hash.0.to_le_bytes();
    *count = (counts.len() as u64).to_le_bytes();
    for (word, count) in rest.iter_mut().zip(counts) {
        *word = count.to_le_bytes();
    }
    // The words between are the lengths of bitmap and uniformity bits, which are 0.
    if let Some(values) = rest.last_mut() {
        *values = NO_VALUES.to_le_bytes();
    }
}

pub(super) fn encode_record(
    record: &RecordRef<'_>,
    layout: RecordLayout,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.extend_from_slice(&record.func_hash.0.to_le_bytes());
    out.extend_from_slice(&(record.counts.len() as u64).to_le_bytes());
    let start = out.len();
    out.resize(start + 8 * record.counts.len(), 0);
    let (words, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut();
    for (word, count) in words.iter_mut().zip(record.counts) {
        *word = count.to_le_bytes();
    }
    if layout.version >= UNIFORMITY_SINCE {
        encode_packed(record.bitmap, out);
        encode_packed(record.uniformity, out);
    } else if layout.version >= BITMAPS_SINCE {
        out.extend_from_slice(&(record.bitmap.len() as u64).to_le_bytes());
        for &byte in record.bitmap {
            out.extend_from_slice(&u64::from(byte).to_le_bytes());
        }
    }
    match record.values {
        Some(values) => value_data::encode(
            &known_values(values, layout.vtable_sites),
            Endian::Little,
            out,
        ),
        None => {
            out.extend_from_slice(&NO_VALUES.to_le_bytes());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_data(version: u32) -> Vec<u64> {
        let lengths = match version {
            ..BITMAPS_SINCE => 0,
            BITMAPS_SINCE..UNIFORMITY_SINCE => 1,
            UNIFORMITY_SINCE.. => 2,
        };
        let mut words = vec![0x1234, 2, 7, u64::MAX];
        words.extend(std::iter::repeat_n(0, lengths));
        words.push(NO_VALUES);
        words
    }

    fn records(data: &[u8], version: u32, as_llvm: bool) -> NameRecords<'_> {
        let entry = Entry {
            hash: 5,
            key: b"name",
            data,
            offset: 0,
            data_offset: 28,
        };
        NameRecords::new(&entry, version).with_llvm_rules(as_llvm)
    }

    #[test]
    fn a_record_with_counters_alone_is_decoded_in_one_step_as_part_by_part() {
        let (mut plain, mut others) = (0, 0);
        for (version, as_llvm) in (VALUES_SINCE..=14).flat_map(|v| [(v, false), (v, true)]) {
            let words = plain_data(version);
            // The variants of the data to test: the unchanged data; the data without the last word; the data with one
            // more word; and the data with one word replaced by a small or large number, for every word and several
            // numbers.
            let mut forms = vec![words.clone(), words[..words.len() - 1].to_vec()];
            forms.push([words.as_slice(), &[NO_VALUES]].concat());
            for (at, value) in
                (0..words.len()).flat_map(|at| [0, 1, 3, 8, 16, 1 << 32, u64::MAX].map(|v| (at, v)))
            {
                let mut changed = words.clone();
                changed[at] = value;
                forms.push(changed);
            }
            for form in forms {
                let data: Vec<u8> = form.iter().flat_map(|word| word.to_le_bytes()).collect();
                let (mut fast, mut slow) = (Record::default(), Record::default());
                let mut in_one = records(&data, version, as_llvm);
                if !in_one.read_plain(&mut fast) {
                    others += 1;
                    continue;
                }
                plain += 1;
                let mut by_parts = records(&data, version, as_llvm);
                assert_eq!(
                    by_parts.read_parts(&mut slow),
                    Ok(true),
                    "{version} {form:x?}"
                );
                assert_eq!(fast, slow, "{version} {form:x?}");
                assert_eq!(in_one.read_record(&mut fast), Ok(false));
                assert_eq!(by_parts.read_record(&mut slow), Ok(false));
            }
        }
        assert!(plain > 100 && others > 100, "{plain} {others}");
    }
}
