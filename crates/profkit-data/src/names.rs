//! Reads and writes function names. The symbol table finds names by their hashes. The names blob is the form in which
//! raw and indexed files store names.
//!
//! The blob (`__llvm_prf_names`, from raw version 3) is a sequence of chunks, one per translation unit. A linker may
//! put zero bytes between chunks as padding. A chunk has its length (ULEB128), its compressed length (ULEB128, 0 if it
//! is not compressed) and a list of names. The byte 0x01 separates the names. If the chunk is compressed, the list is a
//! zlib stream.
use crate::bytes::{Bytes, Cursor, Endian};
use crate::ids::NameRef;
use crate::md5_lanes::hash_names;
use crate::{Error, ErrorKind, Result, Structure, limits};
use flate2::{Decompress, FlushDecompress, Status};
use rustc_hash::FxHashMap;

/// The byte that separates two names in a names blob (`getInstrProfNameSeparator`).
pub const NAME_SEPARATOR: u8 = 0x01;

/// A table that finds names by their hashes.
///
/// ```
/// use profkit_data::names::SymbolTable;
///
/// let mut names = SymbolTable::new();
/// let main = names.insert(b"main");
/// assert_eq!(names.get(main), Some(b"main".as_slice()));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    bytes: Vec<u8>,
    spans: FxHashMap<NameRef, (usize, u32)>,
    inflated: usize,
}

impl SymbolTable {
    /// Makes a symbol table without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name and returns its hash. Does nothing if the name is already in the table.
    pub fn insert(&mut self, name: &[u8]) -> NameRef {
        let name_ref = NameRef::of(name);
        self.insert_hashed(name_ref, name);
        name_ref
    }

    /// Adds a name whose hash is already known. If the table already has a name with this hash, that name is kept.
    pub fn insert_hashed(&mut self, name_ref: NameRef, name: &[u8]) {
        let Ok(len) = u32::try_from(name.len()) else {
            return;
        };
        let start = self.bytes.len();
        self.spans.entry(name_ref).or_insert_with(|| {
            self.bytes.extend_from_slice(name);
            (start, len)
        });
    }

    /// Returns the name with this hash; `None` if the table does not have the name.
    pub fn get(&self, name_ref: NameRef) -> Option<&[u8]> {
        let &(start, len) = self.spans.get(&name_ref)?;
        self.bytes.get(start..start + len as usize)
    }

    /// The number of names in the symbol table.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether the symbol table has no names.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns all names with their hashes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (NameRef, &[u8])> {
        self.spans.iter().filter_map(|(&name_ref, &(start, len))| {
            Some((name_ref, self.bytes.get(start..start + len as usize)?))
        })
    }

    /// Returns all names with their hashes, in the order in which they were added.
    pub fn in_order(&self) -> impl Iterator<Item = (NameRef, &[u8])> {
        let mut spans: Vec<_> = self.spans.iter().collect();
        spans.sort_unstable_by_key(|&(_, &(start, len))| (start, len));
        spans.into_iter().filter_map(|(&name_ref, &(start, len))| {
            Some((name_ref, self.bytes.get(start..start + len as usize)?))
        })
    }

    /// Adds all names of another symbol table.
    pub fn extend(&mut self, other: &SymbolTable) {
        for (name_ref, name) in other.iter() {
            self.insert_hashed(name_ref, name);
        }
    }

    /// Adds the names of a names blob. `base` is the offset of the blob's first byte in the file.
    ///
    /// After an error, the names that could be read stay in the table ([`NameList::read_blob`]).
    pub fn read_blob(&mut self, blob: &[u8], base: u64) -> Result<()> {
        let mut list = NameList {
            inflated: self.inflated,
            ..NameList::default()
        };
        let result = list.read_blob(blob, base);
        self.inflated = list.inflated;
        let mut hashes = vec![NameRef::default(); list.len()];
        list.hash(0, &mut hashes);
        for (name, hash) in list.iter().zip(hashes) {
            self.insert_hashed(hash, name);
        }
        result
    }
}

/// A list of names in the order of the names blob, without their hashes. Most of the time of building a symbol table is
/// spent on hashing. With this list, several threads can hash the names.
#[derive(Clone, Debug, Default)]
pub struct NameList {
    bytes: Vec<u8>,
    spans: Vec<(usize, u32)>,
    inflated: usize,
    /// Whether the last chunk that was read contains an empty name.
    met_empty: bool,
}

impl NameList {
    /// The number of names. A name that occurs several times counts each time.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether the list has no names.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the name at an index of the list; `None` if the list is too short.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let &(start, len) = self.spans.get(index)?;
        self.bytes.get(start..start + len as usize)
    }

    /// Returns all names in the order of the list.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.spans.iter().map(|&(start, len)| {
            self.bytes
                .get(start..start + len as usize)
                .unwrap_or_default()
        })
    }

    /// Computes the hashes of consecutive names, of which the first has the index `start`. Several names are hashed at a
    /// time, which is faster than one by one.
    pub fn hash(&self, start: usize, hashes: &mut [NameRef]) {
        let names = self.iter().skip(start).take(hashes.len());
        hash_names(names, |index, hash| {
            if let Some(slot) = hashes.get_mut(index) {
                *slot = hash;
            }
        });
    }

    /// Returns the start and the length of a name in [`bytes`](Self::bytes). The argument is the index of the name; the
    /// result is `None` if the list is too short.
    pub fn span(&self, index: usize) -> Option<(usize, u32)> {
        self.spans.get(index).copied()
    }

    /// Appends a name. Returns its index; `None` if the name or the list is too long.
    pub fn push(&mut self, name: &[u8]) -> Option<u32> {
        let index = u32::try_from(self.spans.len()).ok()?;
        let len = u32::try_from(name.len()).ok()?;
        self.spans.push((self.bytes.len(), len));
        self.bytes.extend_from_slice(name);
        Some(index)
    }

    /// Returns the bytes of all names, one after the other without separators.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Consumes the list and returns the bytes of all names.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Adds the names of a names blob. `base` is the offset of the blob's first byte in the file.
    ///
    /// The size of decompressed data is limited by [`limits`]. If a chunk is damaged, the names of the chunks before it
    /// stay in the list. If a chunk is cut off, the names before the cut stay too.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if an uncompressed chunk is cut off, or if a name is empty (reported after all other
    /// names were read); [`ErrorKind::UncompressFailed`] if a zlib stream is cut off or does not have the stated length
    /// after decompression; [`ErrorKind::LimitExceeded`] if a limit is exceeded.
    pub fn read_blob(&mut self, blob: &[u8], base: u64) -> Result<()> {
        let mut cursor = Cursor::new(blob, base, Endian::Little);
        let budget = blob
            .len()
            .saturating_mul(3)
            .saturating_add(limits::INFLATE_TOTAL_FLOOR);
        let mut empty_name = None;
        self.met_empty = false;
        while !cursor.is_empty() {
            let start = cursor.offset();
            self.read_chunk(&mut cursor, budget)
                .map_err(|error| error.at(start).within(Structure::Names))?;
            if std::mem::take(&mut self.met_empty) {
                empty_name.get_or_insert(start);
            }
            cursor.skip_zeros();
        }
        match empty_name {
            // No data are lost if a name is empty, but LLVM rejects the file, so an error is reported.
            Some(start) => Err(ErrorKind::Malformed
                .error("a name is empty")
                .at(start)
                .within(Structure::Names)
                .llvm_detail("symbol name is empty")),
            None => Ok(()),
        }
    }

    fn read_chunk(&mut self, cursor: &mut Cursor<'_>, budget: usize) -> Result<()> {
        let start = cursor.offset();
        let length = cursor.uleb128()?;
        let compressed_length = cursor.uleb128()?;
        if compressed_length == 0 {
            let available = cursor.remaining();
            if length > available as u64 {
                let rest = cursor.rest();
                // If a chunk of names is cut off, its last name may be incomplete.
                let whole = rest
                    .iter()
                    .rposition(|&byte| byte == NAME_SEPARATOR)
                    .unwrap_or(0);
                self.insert_joined(rest.get(..whole).unwrap_or_default());
                return Err(cut_chunk(start, available, length));
            }
            let payload = cursor.take_u64(length)?;
            self.insert_joined(payload);
            return Ok(());
        }
        let available = cursor.remaining();
        let cut = compressed_length > available as u64;
        let payload = if cut {
            cursor.rest()
        } else {
            cursor.take_u64(compressed_length)?
        };
        let cap = payload
            .len()
            .saturating_mul(limits::INFLATE_RATIO)
            .max(limits::INFLATE_FLOOR);
        let length_usize = usize::try_from(length).unwrap_or(usize::MAX);
        if length_usize > cap || self.inflated.saturating_add(length_usize) > budget {
            return Err(ErrorKind::LimitExceeded
                .error("the function names would be too large after decompression")
                .at(start)
                .found(format_args!(
                    "{length} bytes from {} compressed bytes",
                    payload.len()
                ))
                .expected(format_args!(
                    "at most {} bytes",
                    cap.min(budget.saturating_sub(self.inflated))
                )));
        }
        let mut inflated = Vec::with_capacity(length_usize);
        let status =
            Decompress::new(true).decompress_vec(payload, &mut inflated, FlushDecompress::Finish);
        self.inflated += inflated.len();
        // A zlib stream that ends inside the section is complete, even if its chunk states a length that goes beyond the
        // end of the section. LLVM accepts such a chunk too.
        let whole = matches!(status, Ok(Status::StreamEnd)) && inflated.len() == length_usize;
        if whole {
            if cut {
                cursor.take_u64(available as u64)?;
            }
            self.insert_joined(&inflated);
            return Ok(());
        }
        let kept = inflated
            .iter()
            .rposition(|&byte| byte == NAME_SEPARATOR)
            .unwrap_or(0);
        self.insert_joined(inflated.get(..kept).unwrap_or_default());
        if cut {
            return Err(cut_chunk(start, available, compressed_length)
                .with_kind(ErrorKind::UncompressFailed));
        }
        Err(ErrorKind::UncompressFailed
            .error("the compressed names cannot be decompressed completely")
            .at(start)
            .found(Bytes(inflated.len()))
            .expected(Bytes(length)))
    }

    fn insert_joined(&mut self, names: &[u8]) {
        for name in names.split(|&byte| byte == NAME_SEPARATOR) {
            self.met_empty |= name.is_empty();
            if let (false, Ok(len)) = (name.is_empty(), u32::try_from(name.len())) {
                self.spans.push((self.bytes.len(), len));
                self.bytes.extend_from_slice(name);
            }
        }
    }
}

#[cold]
fn cut_chunk(start: u64, available: usize, wanted: u64) -> Error {
    ErrorKind::Malformed
        .error("a chunk of names runs past the end of its section")
        .at(start)
        .found(format_args!("{} left", Bytes(available)))
        .expected(Bytes(wanted))
}

/// Encodes names as a names blob with one chunk that is not compressed.
pub fn encode_blob_stored<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let joined = join(names);
    let mut blob = Vec::with_capacity(joined.len() + 12);
    put_uleb128(&mut blob, joined.len() as u64);
    put_uleb128(&mut blob, 0);
    blob.extend_from_slice(&joined);
    blob
}

/// Encodes names as one zlib-compressed chunk. Uses the zlib level for the smallest size, as LLVM does.
pub fn encode_blob_zlib<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    use std::io::Write;
    let joined = join(names);
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    // The compressor writes to a `Vec`, so it cannot fail. If it failed nevertheless, the names would be written
    // uncompressed, which is also correct.
    let Ok(compressed) = encoder.write_all(&joined).and_then(|()| encoder.finish()) else {
        return encode_blob_stored([joined.as_slice()]);
    };
    let mut blob = Vec::with_capacity(compressed.len() + 12);
    put_uleb128(&mut blob, joined.len() as u64);
    put_uleb128(&mut blob, compressed.len() as u64);
    blob.extend_from_slice(&compressed);
    blob
}

fn join<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        if index > 0 {
            joined.push(NAME_SEPARATOR);
        }
        joined.extend_from_slice(name);
    }
    joined
}

fn put_uleb128(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_encodings_read_back_with_padding_between() {
        let names: [&[u8]; 3] = [b"main", b"file.c;helper", b"_Z1fv"];
        let mut blob = encode_blob_stored(names[..2].iter().copied());
        blob.extend_from_slice(&[0; 5]);
        blob.extend(encode_blob_zlib(names[2..].iter().copied()));
        let mut table = SymbolTable::new();
        table.read_blob(&blob, 0).unwrap();
        for name in names {
            assert_eq!(table.get(NameRef::of(name)), Some(name));
        }
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn a_cut_chunk_keeps_the_names_before_the_cut() {
        let blob = encode_blob_stored([b"one".as_slice(), b"two", b"three"]);
        let mut table = SymbolTable::new();
        let error = table.read_blob(&blob[..blob.len() - 2], 16).unwrap_err();
        insta::assert_snapshot!(error, @"names, at offset 0x10: a chunk of names runs past the end of its section: found 11 bytes left, expected 13 bytes");
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn an_empty_name_is_told_after_all_names_were_read() {
        let mut blob = encode_blob_stored([b"one".as_slice(), b""]);
        blob.extend(encode_blob_stored([b"two".as_slice()]));
        let mut table = SymbolTable::new();
        let error = table.read_blob(&blob, 16).unwrap_err();
        insta::assert_snapshot!(error, @"names, at offset 0x10: a name is empty");
        assert_eq!(error.detail_for_llvm(), Some("symbol name is empty"));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_cut_zlib_chunk_does_not_inflate() {
        let blob = encode_blob_zlib([b"one".as_slice(), b"two"]);
        let mut table = SymbolTable::new();
        let error = table.read_blob(&blob[..blob.len() - 2], 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UncompressFailed);
    }

    #[test]
    fn a_zlib_bomb_is_refused_before_it_inflates() {
        let mut blob = Vec::new();
        put_uleb128(&mut blob, 1 << 40);
        put_uleb128(&mut blob, 3);
        blob.extend_from_slice(b"xyz");
        let mut table = SymbolTable::new();
        assert_eq!(
            table.read_blob(&blob, 0).unwrap_err().kind(),
            ErrorKind::LimitExceeded
        );
    }
}
