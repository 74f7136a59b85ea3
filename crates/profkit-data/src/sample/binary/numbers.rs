//! Reads and writes the ULEB128 numbers of sample profiles, and the summary, which consists of such numbers.
use crate::bytes::Cursor;
use crate::limits::SAMPLE_INLINE_DEPTH;
use crate::summary::{Summary, SummaryCutoff};
use crate::{ErrorKind, Result, Structure};

#[inline]
pub(in crate::sample) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Reads a ULEB128 number of at most 32 bits. Fails with the text `what` if the number is larger.
#[inline]
pub(in crate::sample) fn u32(cursor: &mut Cursor<'_>, what: &'static str) -> Result<u32> {
    let start = cursor.offset();
    let value = cursor.uleb128()?;
    u32::try_from(value).map_err(|_| {
        ErrorKind::Malformed
            .error(what)
            .at(start)
            .found(value)
            .expected("a number of 32 bits")
    })
}

/// Reads the number of items that follow. Fails with the text `what` if the remaining bytes cannot hold that many items
/// of at least `least` bytes.
#[inline]
pub(in crate::sample) fn count(
    cursor: &mut Cursor<'_>,
    least: usize,
    what: &'static str,
) -> Result<usize> {
    let start = cursor.offset();
    let value = cursor.uleb128()?;
    match usize::try_from(value) {
        Ok(count) if count <= cursor.remaining() / least => Ok(count),
        _ => {
            let left = cursor.remaining();
            let (most, bytes) = (left / least, if least == 1 { "byte" } else { "bytes" });
            let are = if left == 1 { "is" } else { "are" };
            Err(ErrorKind::Truncated.error(what)
                .at(start)
                .found(value)
                .expected(format_args!(
                    "at most {most}, because each takes at least {least} {bytes} and only {left} {are} left"
                )))
        }
    }
}

/// Reads the number of functions that are inlined in a function at this depth. Each takes at least `least` bytes.
/// `what` is the text of the error if the remaining bytes cannot hold that many functions.
///
/// # Errors
/// The errors of [`count`], and [`ErrorKind::LimitExceeded`] if functions nest too deeply.
pub(in crate::sample) fn inlined_count(
    cursor: &mut Cursor<'_>,
    least: usize,
    depth: usize,
    what: &'static str,
) -> Result<usize> {
    let count = count(cursor, least, what)?;
    if count != 0 && depth == SAMPLE_INLINE_DEPTH {
        return Err(ErrorKind::LimitExceeded
            .error("inlined functions nest too deeply")
            .at(cursor.offset())
            .expected(format_args!("at most {SAMPLE_INLINE_DEPTH} levels")));
    }
    Ok(count)
}

pub(in crate::sample) fn summary(cursor: &mut Cursor<'_>) -> Result<Summary> {
    let mut read = || -> Result<Summary> {
        let mut summary = Summary {
            total_count: cursor.uleb128()?,
            max_count: cursor.uleb128()?,
            max_function_count: cursor.uleb128()?,
            blocks: cursor.uleb128()?,
            functions: cursor.uleb128()?,
            ..Summary::default()
        };
        let count = count(
            cursor,
            3,
            "the summary claims more cutoffs than the bytes left can hold",
        )?;
        for _ in 0..count {
            summary.cutoffs.push(SummaryCutoff {
                cutoff: cursor.uleb128()?,
                min_count: cursor.uleb128()?,
                blocks: cursor.uleb128()?,
            });
        }
        Ok(summary)
    };
    read().map_err(|error| error.within(Structure::Summary))
}

pub(in crate::sample) fn put_summary(out: &mut Vec<u8>, summary: &Summary) {
    put(out, summary.total_count);
    put(out, summary.max_count);
    put(out, summary.max_function_count);
    put(out, summary.blocks);
    put(out, summary.functions);
    put(out, summary.cutoffs.len() as u64);
    for cutoff in &summary.cutoffs {
        put(out, cutoff.cutoff);
        put(out, cutoff.min_count);
        put(out, cutoff.blocks);
    }
}
