//! Reads and writes the sections after the function table, and the summaries before it.
use crate::bytes::{Bytes, Cursor};
use crate::ids::{BuildId, NameRef};
use crate::instr::{TemporalTrace, TemporalTraces};
use crate::names::SymbolTable;
use crate::summary::{Summary, SummaryCutoff};
use crate::{Error, ErrorKind, Result, Structure};

/// The number of fields in a summary, which is the same in all versions with a summary (from version 4).
const SUMMARY_FIELDS: usize = 6;

/// Reads a summary: the number of fields, the number of cutoffs, the fields, and three words for each cutoff.
pub(super) fn read_summary(cursor: &mut Cursor<'_>) -> Result<Summary> {
    let field_count = cursor.u64()?;
    let cutoff_count = cursor.u64()?;
    let (words, _) = cursor.take_u64(field_count.saturating_mul(8))?.as_chunks();
    // The file states the number of fields, which may be less or more than expected. Missing fields count as 0;
    // additional fields of a later LLVM are skipped.
    let field = |index: usize| words.get(index).map_or(0, |&word| u64::from_le_bytes(word));
    let mut summary = Summary {
        functions: field(0),
        blocks: field(1),
        max_function_count: field(2),
        max_count: field(3),
        max_internal_count: field(4),
        total_count: field(5),
        cutoffs: Vec::new(),
    };
    let (words, _) = cursor
        .take_u64(cutoff_count.saturating_mul(24))?
        .as_chunks::<8>();
    let cutoffs = words.chunks_exact(3).map(|entry| {
        let word = |index: usize| entry.get(index).map_or(0, |&word| u64::from_le_bytes(word));
        SummaryCutoff {
            cutoff: word(0),
            min_count: word(1),
            blocks: word(2),
        }
    });
    summary.cutoffs = cutoffs.collect();
    Ok(summary)
}

/// Returns the number of bytes that [`encode_summary`] appends for a summary with `cutoffs` cutoffs.
pub(super) fn summary_len(cutoffs: usize) -> u64 {
    8 * (2 + SUMMARY_FIELDS + 3 * cutoffs) as u64
}

pub(super) fn encode_summary(summary: &Summary, out: &mut Vec<u8>) {
    let words = [
        SUMMARY_FIELDS as u64,
        summary.cutoffs.len() as u64,
        summary.functions,
        summary.blocks,
        summary.max_function_count,
        summary.max_count,
        summary.max_internal_count,
        summary.total_count,
    ];
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    for cutoff in &summary.cutoffs {
        for word in [cutoff.cutoff, cutoff.min_count, cutoff.blocks] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
}

/// Reads the length at the start of the build ids section. Returns a cursor over the bytes after the length, which hold
/// the build ids.
pub(super) fn binary_ids_window<'data>(cursor: &mut Cursor<'data>) -> Result<Cursor<'data>> {
    let offset = cursor.offset();
    let len = cursor.u64().map_err(corrupted_binary_ids)?;
    if len % 8 != 0 {
        return Err(ErrorKind::BadHeader
            .error("the length of the build ids is not a multiple of 8")
            .at(offset)
            .found(len));
    }
    let available = cursor.remaining();
    cursor.window(len).map_err(|_| {
        corrupted_binary_ids(
            ErrorKind::Malformed
                .error("the build ids run past the end of the file")
                .because_data_end()
                .at(offset)
                .found(Bytes(len))
                .expected(format_args!("at most {available}")),
        )
    })
}

/// Gives an error the kind and the detail text that LLVM uses for a build ids section that is cut off.
#[cold]
pub(super) fn corrupted_binary_ids(error: Error) -> Error {
    error
        .with_kind(ErrorKind::Malformed)
        .llvm_detail("corrupted binary ids")
}

/// Reads build ids. Each is stored as its length, its bytes, and padding to a multiple of 8 (`readBinaryIdsInternal`).
pub(super) fn read_binary_ids(mut ids: Cursor<'_>) -> Result<Vec<BuildId>> {
    let mut found = Vec::new();
    while !ids.is_empty() {
        let offset = ids.offset();
        let bad = |message: &'static str, available: usize, wanted: u64, detail: &'static str| {
            ErrorKind::Malformed
                .error(message)
                .at(offset)
                .within(Structure::BuildIds)
                .found(format_args!("{} left", Bytes(available)))
                .expected(Bytes(wanted))
                .llvm_detail(detail)
        };
        let available = ids.remaining();
        let len = ids.u64().map_err(|_| {
            bad(
                "the length of a build id is cut off",
                available,
                8,
                "not enough data to read binary id length",
            )
        })?;
        if len == 0 {
            return Err(ErrorKind::Malformed
                .error("a build id is empty")
                .at(offset)
                .within(Structure::BuildIds)
                .llvm_detail("binary id length is 0"));
        }
        let available = ids.remaining();
        let padded = len.checked_next_multiple_of(8).unwrap_or(u64::MAX);
        let bytes = ids.take_u64(padded).map_err(|_| {
            bad(
                "a build id runs past its section",
                available,
                padded,
                "not enough data to read binary id data",
            )
        })?;
        // The conversion to `usize` cannot fail: `len` is at most `padded`, and `padded` bytes are in memory.
        let bytes = bytes.get(..usize::try_from(len).unwrap_or(usize::MAX));
        found.push(BuildId(bytes.unwrap_or_default().to_vec()));
    }
    Ok(found)
}

/// Returns the bytes of the build ids section. `ids` must be sorted and have no duplicates.
pub(super) fn encode_binary_ids(ids: &[BuildId]) -> Vec<u8> {
    let mut out = vec![0; 8];
    for BuildId(id) in ids {
        out.extend_from_slice(&(id.len() as u64).to_le_bytes());
        out.extend_from_slice(id);
        pad(&mut out);
    }
    let len = out.len() as u64 - 8;
    if let Some(word) = out.first_chunk_mut() {
        *word = len.to_le_bytes();
    }
    out
}

/// Returns the bytes of the vtable names section, compressed as LLVM does it. Without names, the section consists only
/// of a length, which is 0.
pub(super) fn encode_vtable_names(names: &[Vec<u8>]) -> Vec<u8> {
    let blob = match names {
        [] => Vec::new(),
        names => crate::names::encode_blob_zlib(names.iter().map(Vec::as_slice)),
    };
    let mut out = (blob.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(&blob);
    pad(&mut out);
    out
}

/// Reads the section of vtable names: the length of the names, then the names themselves.
pub(super) fn read_vtable_names(mut section: Cursor<'_>, names: &mut SymbolTable) -> Result<()> {
    let len = section.u64()?;
    let blob = section.window(len)?;
    names.read_blob(blob.rest(), blob.offset())
}

/// Reads the section of temporal traces. The section has the number of traces in the file, then the number of traces
/// from which they were sampled. Each trace has its weight, its number of functions and the name hashes of these
/// functions.
///
/// If the section is cut off, the function returns an error, and `traces` has the traces before the cut.
pub(super) fn read_traces(mut cursor: Cursor<'_>, traces: &mut TemporalTraces) -> Result<()> {
    let start = cursor.offset();
    let count = cursor.u64()?;
    traces.stream_size = cursor.u64()?;
    if count > cursor.remaining() as u64 / 16 {
        return Err(cut(start, "traces", count, cursor.remaining() as u64 / 16));
    }
    for _ in 0..count {
        let weight = cursor.u64()?;
        let offset = cursor.offset();
        let len = cursor.u64()?;
        let available = cursor.remaining() as u64 / 8;
        if len > available {
            return Err(cut(offset, "functions of a trace", len, available));
        }
        let (words, _) = cursor.take_u64(8 * len)?.as_chunks();
        traces.traces.push(TemporalTrace {
            weight,
            functions: words
                .iter()
                .map(|&word| NameRef(u64::from_le_bytes(word)))
                .collect(),
        });
    }
    Ok(())
}

#[cold]
fn cut(offset: u64, what: &str, found: u64, expected: u64) -> Error {
    ErrorKind::Truncated
        .error(format!("the {what} run past the end of the file"))
        .at(offset)
        .found(format_args!("{found} {what}"))
        .expected(format_args!("at most {expected}"))
}

pub(super) fn traces_len(traces: &TemporalTraces) -> u64 {
    let words = traces
        .traces
        .iter()
        .map(|trace| 2 + trace.functions.len() as u64);
    8 * (2 + words.sum::<u64>())
}

pub(super) fn encode_traces(traces: &TemporalTraces, out: &mut Vec<u8>) {
    let mut word = |word: u64| out.extend_from_slice(&word.to_le_bytes());
    word(traces.traces.len() as u64);
    word(traces.stream_size);
    for trace in &traces.traces {
        word(trace.weight);
        word(trace.functions.len() as u64);
        trace.functions.iter().for_each(|name| word(name.0));
    }
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(8), 0);
}
