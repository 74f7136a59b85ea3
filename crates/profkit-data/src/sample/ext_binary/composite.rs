//! Composite sections (version 105, which LLVM writes only after release 23). A function consists of blocks. Each block
//! states its type and size. One block has the samples, and a function can also have blocks of other types.
//!
//! | field | form |
//! |---|---|
//! | name or calling context | index |
//! | number of blocks | may be 0 |
//! | blocks | type, size of the payload, payload |
//! | number of inlined functions | |
//! | inlined functions | line, discriminator, then the same fields |
//!
//! All numbers are ULEB128. A block of type 0 has the samples: the number of head samples and the total number of
//! samples, the lines, and the vtables if the file has any. No description states which of the two numbers comes first,
//! and the encoding of both orders looks the same. The order is therefore inferred from the values of the numbers
//! ([`Evidence`]).
use crate::bytes::{Bytes, Cursor};
use crate::sample::binary::body::{Decoder, location};
use crate::sample::binary::numbers;
use crate::sample::flat::{FlatFunction, Step};
use crate::sample::report::ReadReport;
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::sample::{block, section};
use rustc_hash::FxHashSet;
use std::cell::Cell;

/// The order of the first two numbers in a block of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    TotalFirst,
    HeadFirst,
}

/// Facts about the composite sections of a file: the assumed order of the first two numbers in blocks of samples, and
/// the blocks of unknown types.
#[derive(Debug, Default)]
pub(super) struct Findings {
    order: Order,
    unknown: Cell<u64>,
    /// The offset and the type of the first block of an unknown type; `None` if there is no such block.
    first: Cell<Option<(u64, u64)>>,
}

impl Findings {
    pub(super) fn new(order: Order) -> Self {
        Findings {
            order,
            ..Self::default()
        }
    }

    fn note_unknown(&self, at: u64, kind: u64) {
        self.unknown.set(self.unknown.get().saturating_add(1));
        if self.first.get().is_none() {
            self.first.set(Some((at, kind)));
        }
    }

    /// Reports the blocks of unknown types, whose contents are left out.
    pub(super) fn report(&self, report: &mut ReadReport) {
        let Some((at, kind)) = self.first.get() else {
            return;
        };
        report.fault(
            ErrorKind::Unsupported.error("blocks of unknown types were left out")
            .at(at)
            .within(Structure::SampleSection(section::COMPOSITE))
            .found(match self.unknown.get() {
                1 => format!("a block of type {kind}"),
                count => format!("{count} blocks, the first of type {kind}"),
            })
            .expected(format_args!("type {} (samples)", block::SAMPLES))
            .with_hint("the samples are kept; only the LLVM release that wrote the file can use the other blocks"),
        );
    }
}

/// The numbers before the lines in a block of samples: one number (the total samples) or two (the total samples and the
/// head samples, in the order of the file).
#[derive(Clone, Copy, Debug)]
enum Lead {
    One(u64),
    Two(u64, u64),
}

impl Lead {
    fn total(self, order: Order) -> u64 {
        match (self, order) {
            (Lead::One(total) | Lead::Two(total, _), Order::TotalFirst)
            | (Lead::One(total) | Lead::Two(_, total), Order::HeadFirst) => total,
        }
    }

    fn head(self, order: Order) -> u64 {
        match (self, order) {
            (Lead::One(_), _) => 0,
            (Lead::Two(_, head), Order::TotalFirst) | (Lead::Two(head, _), Order::HeadFirst) => {
                head
            }
        }
    }
}

/// Reads the blocks and the inlined functions of a function at the top level. The cursor must be after the name of the
/// function.
pub(super) fn function(
    decoder: &mut Decoder<'_, '_>,
    cursor: &mut Cursor<'_>,
    function: &mut FlatFunction,
    findings: &Findings,
) -> Result<()> {
    let reader = Reader { findings };
    if let Some(lead) = reader.blocks(decoder, cursor, &mut function.steps, true)? {
        function.total = lead.total(findings.order);
        function.head = lead.head(findings.order);
    }
    reader.inlined(decoder, cursor, &mut function.steps, 0)
}

struct Reader<'a> {
    findings: &'a Findings,
}

impl Reader<'_> {
    /// Reads the blocks of a function. `is_top` states whether the function is at the top level. Returns the numbers
    /// before the lines in its block of samples (the total samples, or the total and the head samples); `None` if the
    /// function has no such block.
    fn blocks(
        &self,
        decoder: &mut Decoder<'_, '_>,
        cursor: &mut Cursor<'_>,
        steps: &mut Vec<Step>,
        is_top: bool,
    ) -> Result<Option<Lead>> {
        let mut lead = None;
        each_block(cursor, |at, kind, payload| {
            if kind == block::SAMPLES {
                lead = Some(samples(decoder, payload, steps, is_top)?);
            } else {
                self.findings.note_unknown(at, kind);
            }
            Ok(())
        })?;
        Ok(lead)
    }

    fn inlined(
        &self,
        decoder: &mut Decoder<'_, '_>,
        cursor: &mut Cursor<'_>,
        steps: &mut Vec<Step>,
        depth: usize,
    ) -> Result<()> {
        for _ in 0..inlined_count(cursor, depth)? {
            let location = location(cursor, false)?;
            let name = decoder.name(cursor)?;
            let entered = steps.len();
            let total = 0;
            steps.push(Step::Enter {
                location,
                name,
                total,
            });
            let lead = self.blocks(decoder, cursor, steps, false)?;
            if let (Some(lead), Some(Step::Enter { total, .. })) = (lead, steps.get_mut(entered)) {
                *total = lead.total(self.findings.order);
            }
            self.inlined(decoder, cursor, steps, depth + 1)?;
            steps.push(Step::Leave);
        }
        Ok(())
    }
}

/// Reads the number of functions that are inlined in a function at this depth. Each takes at least five bytes.
pub(super) fn inlined_count(cursor: &mut Cursor<'_>, depth: usize) -> Result<usize> {
    numbers::inlined_count(
        cursor,
        5,
        depth,
        "a function claims more inlined functions than the bytes left can hold",
    )
}

/// Calls `take` for each block of a function, with the offset of the block, its type and its payload.
pub(super) fn each_block<'data>(
    cursor: &mut Cursor<'data>,
    mut take: impl FnMut(u64, u64, Cursor<'data>) -> Result<()>,
) -> Result<()> {
    let count = numbers::count(
        cursor,
        2,
        "a function claims more blocks than the bytes left can hold",
    )?;
    let mut seen = FxHashSet::default();
    for _ in 0..count {
        let at = cursor.offset();
        let kind = cursor.uleb128()?;
        let size = cursor.uleb128()?;
        if size > cursor.remaining() as u64 {
            return Err(ErrorKind::Truncated
                .error("a block runs past the end of its section")
                .at(at)
                .found(format_args!("type {kind} with {size} bytes"))
                .expected(format_args!("at most {}", Bytes(cursor.remaining()))));
        }
        if count > 1 && !seen.insert(kind) {
            return Err(ErrorKind::Malformed
                .error("a function has two blocks of one type")
                .at(at)
                .found(format_args!("type {kind} again")));
        }
        take(at, kind, cursor.window(size)?)?;
    }
    Ok(())
}

/// Reads a block of samples. The block of a function at the top level (`is_top`) has both the number of head samples
/// and the total number of samples. In other encodings, inlined functions have no head samples. It is not known whether
/// they have this number in this encoding, so both forms are tried, and the form that uses exactly all bytes of the
/// payload is accepted.
fn samples(
    decoder: &mut Decoder<'_, '_>,
    payload: Cursor<'_>,
    steps: &mut Vec<Step>,
    is_top: bool,
) -> Result<Lead> {
    let start = steps.len();
    let mut read = |two: bool| {
        steps.truncate(start);
        let cursor = &mut payload.clone();
        let lead = lead(cursor, two)?;
        decoder.lines(cursor, steps)?;
        if decoder.vtables {
            decoder.vtables(cursor, steps)?;
        }
        used_up(cursor)?;
        Ok(lead)
    };
    if is_top {
        return read(true);
    }
    read(false).or_else(|error| read(true).map_err(|_| error))
}

fn lead(cursor: &mut Cursor<'_>, two: bool) -> Result<Lead> {
    let first = cursor.uleb128()?;
    if two {
        Ok(Lead::Two(first, cursor.uleb128()?))
    } else {
        Ok(Lead::One(first))
    }
}

fn used_up(cursor: &Cursor<'_>) -> Result<()> {
    if cursor.is_empty() {
        return Ok(());
    }
    Err(ErrorKind::Malformed
        .error("a block of samples has bytes after the samples")
        .at(cursor.offset())
        .found(format_args!("{} unread bytes", cursor.remaining()))
        .expected("none"))
}

/// Counts what the functions of a file show about the order of two numbers: the number of head samples and the total
/// number of samples. The total of a function is at least the sum of its lines, including the lines of its inlined
/// functions; the head samples do not depend on this sum.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// The number of functions in whose block of samples the first number equals the sum of the lines, and the second
    /// number does not.
    first_is_sum: u64,
    second_is_sum: u64,
    /// The number of functions in whose block of samples the first number is at least the sum of the lines, and the
    /// second number is smaller than this sum. The first number must then be the total.
    only_first_fits: u64,
    only_second_fits: u64,
    /// Whether the head samples and the total samples differ in any function. If they are equal in all functions, the
    /// order of the two numbers does not matter.
    matters: bool,
}

impl Evidence {
    /// Adds the functions of a section, up to the first damaged one. `vtables` states whether the file has vtables.
    pub(super) fn gather(&mut self, mut section: Cursor<'_>, vtables: bool) {
        while !section.is_empty() {
            let Ok((lead, sum)) = scan(&mut section, vtables, 0) else {
                return;
            };
            let Some(Lead::Two(first, second)) = lead else {
                continue;
            };
            let (first, second) = (u128::from(first), u128::from(second));
            self.matters |= first != second;
            self.first_is_sum += u64::from(first == sum && second != sum);
            self.second_is_sum += u64::from(second == sum && first != sum);
            self.only_first_fits += u64::from(first >= sum && second < sum);
            self.only_second_fits += u64::from(second >= sum && first < sum);
        }
    }

    /// Returns the more probable order of head samples and total samples, and whether this order is certain.
    pub(super) fn decide(&self) -> (Order, bool) {
        let (first, second) = match (self.first_is_sum, self.second_is_sum) {
            (0, 0) => (self.only_first_fits, self.only_second_fits),
            sums => sums,
        };
        let order = if second > first {
            Order::HeadFirst
        } else {
            Order::TotalFirst
        };
        (
            order,
            !self.matters || first.min(second) == 0 && first != second,
        )
    }
}

#[cold]
pub(super) fn uncertain_order(at: u64, order: Order) -> Error {
    let assumed = match order {
        Order::TotalFirst => "the total",
        Order::HeadFirst => "the number of head samples",
    };
    Error::new(ErrorKind::Unsupported, format!("it is not clear whether a function's total or its head samples come first; {assumed} was taken to come first"))
    .at(at)
    .within(Structure::SampleSection(section::COMPOSITE))
    .with_hint("to check, print the file with the LLVM release that wrote it (`llvm-profdata merge --sample --text`), and compare the counts")
}

/// Reads a function and skips its names. `vtables` states whether the file has vtables; `depth` is the depth of
/// inlining. Returns two values. The first has the numbers before the lines in its block of samples (the total samples,
/// or the total and the head samples); `None` if there is no such block. The second is the sum of all its lines,
/// including the lines of inlined functions.
fn scan(cursor: &mut Cursor<'_>, vtables: bool, depth: usize) -> Result<(Option<Lead>, u128)> {
    cursor.uleb128()?;
    let (mut found, mut sum) = (None, 0);
    each_block(cursor, |_, kind, payload| {
        if kind != block::SAMPLES {
            return Ok(());
        }
        let read = |two: bool| {
            let cursor = &mut payload.clone();
            let lead = lead(cursor, two)?;
            let lines = scan_lines(cursor, vtables)?;
            used_up(cursor)?;
            Ok((lead, lines))
        };
        let (lead, lines) = match depth {
            0 => read(true)?,
            _ => read(false).or_else(|error: Error| read(true).map_err(|_| error))?,
        };
        found = Some(lead);
        sum += lines;
        Ok(())
    })?;
    for _ in 0..inlined_count(cursor, depth)? {
        location(cursor, false)?;
        sum += scan(cursor, vtables, depth + 1)?.1;
    }
    Ok((found, sum))
}

fn scan_lines(cursor: &mut Cursor<'_>, vtables: bool) -> Result<u128> {
    let mut sum = 0;
    let lines = numbers::count(cursor, 4, "too many lines")?;
    for _ in 0..lines {
        location(cursor, true)?;
        sum += u128::from(cursor.uleb128()?);
        scan_targets(cursor)?;
    }
    let sites = if vtables {
        numbers::count(cursor, 3, "too many vtable sites")?
    } else {
        0
    };
    for _ in 0..sites {
        location(cursor, true)?;
        scan_targets(cursor)?;
    }
    Ok(sum)
}

fn scan_targets(cursor: &mut Cursor<'_>) -> Result<()> {
    for _ in 0..numbers::count(cursor, 2, "too many targets")? {
        cursor.uleb128()?;
        cursor.uleb128()?;
    }
    Ok(())
}
