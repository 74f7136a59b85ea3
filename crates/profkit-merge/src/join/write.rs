//! The second walk through the inputs: writes the result.
use super::chunk::{Chunk, Found, Function};
use super::{Joined, Side, Unjoinable};
use crate::driver::Threads;
use profkit_data::bytes::Sink;
use profkit_data::hash_table::index_offset;
use profkit_data::instr::indexed::{FunctionEncoder, IndexedFrame, IndexedWriteOptions};
use profkit_data::instr::{InstrProfile, Losses};
use profkit_data::{Error, ErrorKind, Result};
use std::ops::Range;

/// The number of bytes of the result that a thread encodes at a time.
const PIECE: u64 = 1 << 20;
/// The smallest result that several threads write.
const PARALLEL_FROM: u64 = 4 << 20;

/// Decides where each byte of a file with functions that are joined goes.
#[derive(Debug)]
pub struct JoinedPlan<'p> {
    joined: &'p Joined<'p>,
    encoder: FunctionEncoder,
    frame: IndexedFrame<'p>,
    losses: Losses,
}

/// The encoded buckets of a range.
#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    /// For each bucket, where it begins in `bytes`; [`EMPTY`] for an empty bucket.
    starts: Vec<u32>,
}

const EMPTY: u32 = u32::MAX;

impl<'p> JoinedPlan<'p> {
    /// Plans the file. `profile` has everything but the functions.
    ///
    /// # Errors
    /// [`ErrorKind::CannotRepresent`] if the inputs were joined for other options, and the errors of [`IndexedFrame::new`].
    pub fn new(
        joined: &'p Joined<'_>,
        profile: &'p InstrProfile,
        options: &IndexedWriteOptions,
    ) -> Result<Self> {
        if !joined.is_for(options) {
            return Err(ErrorKind::CannotRepresent
                .error("the functions were joined for another version of the indexed profile")
                .found(options.version)
                .expected(joined.write.version));
        }
        let size = (joined.payload_len, joined.buckets);
        let frame = IndexedFrame::new(profile, &joined.write, size)?;
        let mut losses = frame.losses().clone();
        losses.add_records(&joined.losses);
        Ok(JoinedPlan {
            joined,
            encoder: FunctionEncoder::new(&joined.write)?,
            frame,
            losses,
        })
    }

    /// The number of records that are written.
    pub fn record_count(&self) -> u64 {
        self.joined.records
    }

    /// The parts of the profile that are left out, because the version cannot hold them.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Writes the file on several threads, in pieces of about a megabyte.
    ///
    /// # Errors
    /// The errors of the sink; [`ErrorKind::WriteFailed`] if the inputs are not the same as when they were merged.
    pub fn write(&self, threads: &Threads, sink: &mut dyn Sink) -> Result<()> {
        let joined = self.joined;
        let sides = joined.join.sides().ok_or_else(changed)?;
        let mut head = Vec::new();
        self.frame.encode_head(joined.summaries.clone(), &mut head);
        sink.put(&head)?;
        let at_once = match joined.payload_len {
            ..PARALLEL_FROM => 1,
            _ => threads.count(),
        };
        let step = (joined.buckets as u64).saturating_mul(PIECE) / joined.payload_len.max(1);
        let step = usize::try_from(step).unwrap_or(usize::MAX).max(1);
        let mut pieces: Vec<Piece> = Vec::new();
        pieces.resize_with(at_once, Piece::default);
        let mut starts = Vec::with_capacity(joined.buckets);
        // For each piece, its first bucket and its offset among the items.
        let mut bases = Vec::new();
        let mut written = 0;
        let mut from = 0;
        while from < joined.buckets {
            let mut ranges = Vec::with_capacity(at_once);
            while from < joined.buckets
                && let Some(piece) = pieces.pop()
            {
                let to = from.saturating_add(step).min(joined.buckets);
                ranges.push((from..to, piece));
                from = to;
            }
            let encoded = threads.map(ranges, |(range, mut piece)| {
                self.encode(&sides, range, &mut piece).map(|()| piece)
            });
            for piece in encoded {
                let piece = piece?;
                bases.push((starts.len(), written));
                starts.extend_from_slice(&piece.starts);
                written += piece.bytes.len() as u64;
                sink.put(&piece.bytes)?;
                pieces.push(piece);
            }
        }
        if written != joined.payload_len {
            return Err(changed());
        }
        drop(pieces);
        self.write_tail(&starts, &bases, sink)
    }

    /// Writes the table of buckets and the sections after it.
    fn write_tail(
        &self,
        starts: &[u32],
        bases: &[(usize, u64)],
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let offset = self.frame.table_offset();
        let end = offset + self.joined.payload_len;
        let padding = index_offset(offset, self.joined.payload_len) - end;
        let mut out: Vec<u8> = (0..padding).map(|_| 0).collect();
        out.extend_from_slice(&(starts.len() as u64).to_le_bytes());
        out.extend_from_slice(&(self.joined.turns.items as u64).to_le_bytes());
        let ends = bases.iter().skip(1).map(|&(first, _)| first);
        for (&(first, base), end) in bases.iter().zip(ends.chain([starts.len()])) {
            let piece = starts.get(first..end).unwrap_or_default();
            out.extend(piece.iter().flat_map(|&start| {
                let start = match start {
                    EMPTY => 0,
                    start => offset + base + u64::from(start),
                };
                start.to_le_bytes()
            }));
            if out.len() as u64 >= PIECE {
                sink.put(&out)?;
                out.clear();
            }
        }
        self.frame.encode_sections(&mut out);
        sink.put(&out)
    }

    fn encode(&self, sides: &[Side<'_>], buckets: Range<usize>, piece: &mut Piece) -> Result<()> {
        piece.bytes.clear();
        piece.starts.clear();
        let joined = self.joined;
        let mut failed = None;
        let walked = joined.join.walk(sides, buckets, joined.buckets, |chunk| {
            self.encode_chunk(chunk, piece).map_err(|error| {
                failed = Some(error);
                Unjoinable
            })
        });
        walked.map_err(|Unjoinable| failed.unwrap_or_else(changed))
    }

    fn encode_chunk(&self, chunk: &Chunk<'_>, piece: &mut Piece) -> Result<()> {
        let filter = self.joined.join.filter.as_deref();
        let is_part = filter.is_some() || self.joined.write.sparse;
        let stays = |found: &Found<'_, '_>| {
            filter.is_none_or(|keep| keep(found.entry.key)) && self.data_len(found).is_some()
        };
        let mut bucket = Vec::new();
        for unit in chunk.units() {
            bucket.clear();
            for found in unit {
                if !is_part || stays(&found) {
                    bucket.push((false, found));
                }
            }
            if bucket.is_empty() {
                piece.starts.push(EMPTY);
                continue;
            }
            self.joined.turns.sort(&mut bucket, |found: Found<'_, '_>| {
                (found.entry.key, found.entry.hash)
            });
            let start = u32::try_from(piece.bytes.len()).ok();
            let start = start.filter(|&start| start != EMPTY).ok_or_else(changed)?;
            piece.starts.push(start);
            let out = &mut piece.bytes;
            // A unit has at most 256 functions.
            let items = u16::try_from(bucket.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&items.to_le_bytes());
            for (_, found) in &bucket {
                self.encode_item(found, out)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn data_len(&self, found: &Found<'_, '_>) -> Option<u64> {
        match &found.function {
            Function::Plain(record) => self.encoder.plain_len(record.counts),
            Function::Table(function) => self.encoder.data_len(function, &mut Losses::default()),
        }
    }

    #[inline]
    fn encode_item(&self, found: &Found<'_, '_>, out: &mut Vec<u8>) -> Result<()> {
        let key = found.entry.key;
        let data_len = self.data_len(found).unwrap_or(0);
        let mut head = [0; 24];
        let ([hash, key_len, len], _) = head.as_chunks_mut::<8>() else {
            return Ok(());
        };
        *hash = found.entry.hash.to_le_bytes();
        *key_len = (key.len() as u64).to_le_bytes();
        *len = data_len.to_le_bytes();
        out.extend_from_slice(&head);
        out.extend_from_slice(key);
        match &found.function {
            Function::Plain(record) => {
                self.encoder
                    .encode_plain(record.func_hash, record.counts, out);
                Ok(())
            }
            Function::Table(function) => self.encoder.encode_data(function, out),
        }
    }
}

#[cold]
pub(super) fn changed() -> Error {
    Error::new(
        ErrorKind::WriteFailed,
        "the inputs changed while they were merged",
    )
    .with_hint("merge them again when no other program writes them")
}
