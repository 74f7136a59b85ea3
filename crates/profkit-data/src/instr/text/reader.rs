//! Reads text profiles (LLVM's `TextInstrProfReader` in `InstrProfReader.cpp`).
use super::EXTERNAL_SYMBOL;
use super::ahead::Ahead;
use super::lexer::{Decimal, Lexer, integer, prefixed_integer};
use crate::ids::{BuildId, FuncHash, NameRef};
use crate::instr::{InstrKind, InstrSource, Record, TemporalTrace, TemporalTraces, ValueEntry};
use crate::names::SymbolTable;
use crate::quote::quote;
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::value_kind;
use rustc_hash::FxHashMap;

/// Reads a text profile one function record at a time. The reader borrows the text.
///
/// The reader needs memory for the temporal traces and for the names of value targets, each name once. It reserves
/// memory for the counters of a record by the length of the remaining text, never by the number that the text states.
///
/// This reader avoids faults of LLVM 22:
/// - A record without a bitmap does not get the bitmap of the record before it.
/// - Bitmaps may be longer than 255 bytes.
/// - A huge number of counters is an error and not an abort.
/// - A name that begins with `$` (Swift) is not mistaken for a bitmap.
/// - A zero byte inside the text is an error in its record. LLVM silently ends the file there.
#[derive(Clone, Debug)]
pub struct TextReader<'data> {
    lexer: Lexer<'data>,
    /// Records before the position of the lexer that were not asked for yet.
    ahead: Ahead<'data>,
    kind: InstrKind,
    traces: TemporalTraces,
    symbols: SymbolTable,
    vtable_names: SymbolTable,
    /// The hashes of the target names that were already read. They are kept because the name of a hot target occurs at
    /// many value sites.
    hashed: FxHashMap<&'data [u8], NameRef>,
    /// Whether a valid header line or record was read. If so, the text is an instrumentation profile.
    is_profile: bool,
    ended: bool,
}

impl<'data> TextReader<'data> {
    /// Opens a text profile. Reads the header lines and the block of temporal traces, if there is one.
    ///
    /// # Errors
    /// [`ErrorKind::BadHeader`] for an unknown header line; [`ErrorKind::EndOfFile`] or [`ErrorKind::Malformed`] if the
    /// block of traces is cut off or malformed.
    pub fn parse(data: &'data [u8]) -> Result<Self> {
        let mut reader = TextReader {
            lexer: Lexer::new(data),
            ahead: Ahead::default(),
            kind: InstrKind::UNKNOWN,
            traces: TemporalTraces::default(),
            symbols: SymbolTable::new(),
            vtable_names: SymbolTable::new(),
            hashed: FxHashMap::default(),
            is_profile: false,
            ended: false,
        };
        reader.read_header()?;
        Ok(reader)
    }

    /// Reads no record ahead.
    #[cfg(test)]
    pub(super) fn one_by_one(mut self) -> Self {
        self.ahead.most = 0;
        self
    }

    /// The temporal traces, which the text has after its header lines.
    pub fn traces(&self) -> &TemporalTraces {
        &self.traces
    }

    /// The names of virtual tables in the value data that were read so far, in the order of the text. As in LLVM 22,
    /// the list includes a name whose count is malformed.
    pub fn vtable_names(&self) -> &SymbolTable {
        &self.vtable_names
    }

    fn read_header(&mut self) -> Result<()> {
        while let Some([b':', directive @ ..]) = self.lexer.peek() {
            let start = self.lexer.position();
            let is = |word: &str| directive.eq_ignore_ascii_case(word.as_bytes());
            self.lexer.line();
            self.is_profile = true;
            if is("fe") {
                self.kind |= InstrKind::FRONT_END;
            } else if is("ir") {
                self.kind |= InstrKind::IR;
            } else if is("csir") {
                self.kind |= InstrKind::IR | InstrKind::CONTEXT_SENSITIVE;
            } else if is("entry_first") {
                self.kind |= InstrKind::ENTRY_FIRST;
            } else if is("not_entry_first") {
                self.kind = self.kind.without(InstrKind::ENTRY_FIRST);
            } else if is("single_byte_coverage") {
                self.kind |= InstrKind::SINGLE_BYTE_COVERAGE;
            } else if is("instrument_loop_entries") {
                self.kind |= InstrKind::LOOP_ENTRIES;
            } else if is("temporal_prof_traces") {
                self.kind |= InstrKind::TEMPORAL;
                self.read_traces()
                    .map_err(|error| error.within(Structure::TemporalTraces))?;
            } else {
                return Err(self
                    .lexer
                    .error_at(ErrorKind::BadHeader, "the directive is not known", start, 1)
                    .within(Structure::Header)
                    .expected(
                        ":ir, :fe, :csir, :entry_first, :not_entry_first, :single_byte_coverage, \
                         :temporal_prof_traces or :instrument_loop_entries",
                    )
                    .with_hint(
                        "a directive must be alone on its line, without spaces; a newer LLVM may have directives that profkit does not support",
                    ));
            }
        }
        Ok(())
    }

    fn read_traces(&mut self) -> Result<()> {
        let count = self.header_number("the number of traces", u64::from(u32::MAX))?;
        self.traces.stream_size = self.header_number("the trace stream size", u64::MAX)?;
        for _ in 0..count {
            let weight = self.header_number("the weight of a trace", u64::MAX)?;
            let Some(line) = self.lexer.line() else {
                return Err(self.end_of_header("the names of a trace"));
            };
            let mut functions = Vec::new();
            // An item without any character is skipped: two adjacent commas give no name. An item of spaces is an empty
            // name.
            for piece in line.split(|&byte| byte == b',') {
                if !piece.is_empty() {
                    functions.push(self.symbols.insert(trim(piece)));
                }
            }
            self.traces.traces.push(TemporalTrace { weight, functions });
        }
        Ok(())
    }

    fn header_number(&mut self, what: &'static str, max: u64) -> Result<u64> {
        let start = self.lexer.position();
        let Some(line) = self.lexer.line() else {
            return Err(self.end_of_header(what));
        };
        prefixed_integer(line)
            .filter(|&number| number <= max)
            .ok_or_else(|| {
                let message = "a number of the trace block is not a valid integer";
                self.lexer
                    .error_at(ErrorKind::Malformed, message, start, 0)
                    .expected(format_args!("{what} (at most {max})"))
            })
    }

    #[cold]
    fn end_of_header(&mut self, what: &'static str) -> Error {
        self.lexer
            .error(ErrorKind::EndOfFile, "the text ends inside its header", 0)
            .expected(what)
            .with_hint("the file is cut off: write it again")
    }

    fn read_body(&mut self, record: &mut Record) -> Result<()> {
        let start = self.lexer.position();
        let name = self.lexer.line().unwrap_or_default();
        record.name.extend_from_slice(name);
        self.read_named(record, name, start).map_err(|error| {
            // If the file is not a profile, the error must not say that the fault is in a record.
            error.within(if self.is_profile {
                Structure::RecordOf(quote(name))
            } else {
                Structure::FirstBytes
            })
        })
    }

    fn read_named(&mut self, record: &mut Record, name: &[u8], start: usize) -> Result<()> {
        if let Some(column) = memchr::memchr(0, name) {
            return Err(zero_byte(&mut self.lexer, start, column));
        }
        record.name_ref = NameRef::of(name);

        let message = "function hash is not a valid integer";
        let hash = self.prefixed(message, "the function's hash", u64::MAX);
        record.func_hash = FuncHash(match hash {
            Ok(hash) => hash,
            Err(error) if self.is_profile => return Err(error),
            Err(error) => return Err(no_profile(error)),
        });
        self.is_profile = true;

        let place = self.lexer.position();
        let count = match self.lexer.decimal() {
            Decimal::Value(0) => {
                let message = "number of counters is zero";
                return Err(self
                    .lexer
                    .error_at(ErrorKind::Malformed, message, place, 0)
                    .expected("at least 1")
                    .llvm_detail(message));
            }
            Decimal::Value(count) => count,
            other => {
                let message = "number of counters is not a valid integer";
                return Err(self.no_number(other, message, "a decimal number of counters"));
            }
        };
        // Each counter takes at least two bytes of the text: a digit and a line end.
        let possible = self.lexer.remaining() / 2 + 1;
        let reserved = usize::try_from(count).map_or(possible, |count| count.min(possible));
        record.counts.reserve_exact(reserved);
        for index in 0..count {
            match self.lexer.decimal() {
                Decimal::Value(value) => record.counts.push(value),
                other => {
                    let error =
                        self.no_number(other, "count is invalid", "a decimal counter below 2^64");
                    return Err(error.within(Structure::Counter(index)));
                }
            }
        }
        self.read_after_counters(record)
    }

    fn read_after_counters(&mut self, record: &mut Record) -> Result<()> {
        if let Some([b'$', number @ ..]) = self.lexer.peek()
            && !self.is_name_with_dollar(number)
        {
            self.read_bitmap(record, number)?;
        }
        self.read_values(record)
    }

    /// Takes the next record of those that were read ahead; `None` if there is none. Returns the offset of its first
    /// line.
    #[inline]
    fn take_ahead(&mut self, record: &mut Record) -> Option<(usize, Result<()>)> {
        let (plain, counts) = self.ahead.next()?;
        record.name.extend_from_slice(plain.name);
        record.name_ref = plain.name_ref;
        record.func_hash = FuncHash(plain.func_hash);
        record.counts.extend_from_slice(counts);
        let rest = if plain.goes_on {
            let rest = self.read_after_counters(record);
            rest.map_err(|error| error.within(Structure::RecordOf(quote(plain.name))))
        } else {
            Ok(())
        };
        Some((plain.start, rest))
    }

    /// Whether a line that begins with `$` is the name of the next record and not the start of a bitmap. `rest` is the
    /// line after the `$`. Names of Swift functions begin with `$`. LLVM 22 does not check this, so it cannot read the
    /// text that it writes for a profile with such names.
    fn is_name_with_dollar(&mut self, rest: &[u8]) -> bool {
        // In a mangled Swift name, a letter follows the `$`. If a digit or nothing follows the `$`, the line is not a
        // name: it states the number of bitmap bytes, even if the number is malformed.
        if trim(rest).first().is_none_or(u8::is_ascii_digit) {
            return false;
        }
        let start = self.lexer.position();
        let record = self.record_begins_here();
        self.lexer.seek(start);
        record
    }

    fn read_bitmap(&mut self, record: &mut Record, number: &[u8]) -> Result<()> {
        let Some(count) = prefixed_integer(trim(number)) else {
            let message = "number of bitmap bytes is not a valid integer";
            return Err(self
                .lexer
                .error(ErrorKind::Malformed, message, 1)
                .expected("a number after the $")
                .llvm_detail(message));
        };
        self.lexer.line();
        for index in 0..count {
            let message = "bitmap byte is not a valid integer";
            let byte = self
                .prefixed(message, "a byte (0 to 255)", u64::from(u8::MAX))
                .map_err(|error| error.within(Structure::BitmapByte(index)))?;
            // The conversion cannot fail, because the number is at most 255.
            record.bitmap.push(u8::try_from(byte).unwrap_or(u8::MAX));
        }
        Ok(())
    }

    /// Reads the block of value data, if there is one. A block begins with a line that consists of a number of at most
    /// 32 bits. LLVM does not accept such a line as a function name.
    fn read_values(&mut self, record: &mut Record) -> Result<()> {
        let start = self.lexer.position();
        let kinds = match self.lexer.decimal() {
            Decimal::Value(kinds) if kinds <= u64::from(u32::MAX) => kinds,
            // Like LLVM, take a number that does not fit 32 bits for a function name.
            Decimal::Value(_) => {
                self.lexer.seek(start);
                return Ok(());
            }
            Decimal::Bad | Decimal::End => return Ok(()),
        };
        if kinds == 0 || kinds > value_kind::COUNT as u64 {
            let message = "number of value kinds is invalid";
            return Err(self
                .lexer
                .error_at(ErrorKind::Malformed, message, start, 0)
                .expected("1 to 3")
                .with_hint("a number after the counters starts the value data: the name of a function cannot be a number")
                .llvm_detail(message));
        }
        for _ in 0..kinds {
            self.read_kind(record)?;
        }
        Ok(())
    }

    fn read_kind(&mut self, record: &mut Record) -> Result<()> {
        let start = self.lexer.position();
        let kind = self.value_number("a value kind (0, 1 or 2)")?;
        let Some(values) = record.values.kind_mut(kind) else {
            let message = "value kind is invalid";
            return Err(self
                .lexer
                .error_at(ErrorKind::Malformed, message, start, 0)
                .expected(
                    "0 (indirect call targets), 1 (memory intrinsic sizes) or 2 (virtual tables)",
                )
                .llvm_detail(message));
        };
        let names = kind != value_kind::MEM_OP_SIZE;
        let sites = self.value_number("the number of value sites")?;
        for site in 0..sites {
            let targets = self.value_number("the number of values at a site")?;
            for index in 0..targets {
                let entry = if names {
                    self.read_target(kind)
                } else {
                    self.read_size()
                };
                let entry = entry.map_err(|error| {
                    error.within(Structure::Value((index as u64, site as u64, kind.into())))
                })?;
                values.push_value(entry);
            }
            values.end_site();
        }
        Ok(())
    }

    fn read_target(&mut self, kind: u32) -> Result<ValueEntry> {
        let (start, name, count) = self.split_entry("NAME:COUNT")?;
        if name.is_empty() {
            let message = "symbol name is empty";
            return Err(self
                .lexer
                .error_at(ErrorKind::Malformed, message, start, 0)
                .expected("NAME:COUNT")
                .llvm_detail(message));
        }
        let NameRef(value) = match name {
            EXTERNAL_SYMBOL => NameRef(0),
            name => self.target_name(kind, name, start)?,
        };
        let count = self.decimal_part(start, name.len() + 1, count, "NAME:COUNT")?;
        Ok(ValueEntry { value, count })
    }

    /// Adds the name of a value's target to the names of the text, and returns its hash. `start` is the offset of the
    /// name.
    fn target_name(&mut self, kind: u32, name: &'data [u8], start: usize) -> Result<NameRef> {
        let name_ref = match self.hashed.get(name) {
            Some(&name_ref) => name_ref,
            None => {
                if let Some(column) = memchr::memchr(0, name) {
                    return Err(zero_byte(&mut self.lexer, start, column));
                }
                let name_ref = self.symbols.insert(name);
                self.hashed.insert(name, name_ref);
                name_ref
            }
        };
        if kind == value_kind::VTABLE_TARGET {
            self.vtable_names.insert_hashed(name_ref, name);
        }
        Ok(name_ref)
    }

    fn read_size(&mut self) -> Result<ValueEntry> {
        let (start, size, count) = self.split_entry("SIZE:COUNT")?;
        let value = self.decimal_part(start, 0, size, "SIZE:COUNT")?;
        let count = self.decimal_part(start, size.len() + 1, count, "SIZE:COUNT")?;
        Ok(ValueEntry { value, count })
    }

    /// Reads a line of the form `NAME:COUNT`. Returns the offset of the line, and the texts before and after its last
    /// colon. An error states `expected` as the expected line.
    fn split_entry(&mut self, expected: &'static str) -> Result<(usize, &'data [u8], &'data [u8])> {
        let start = self.lexer.position();
        let Some(line) = self.lexer.line() else {
            return Err(self.end_of_text(expected));
        };
        match memchr::memrchr(b':', line) {
            Some(colon) => {
                let count = line.get(colon + 1..).unwrap_or_default();
                Ok((start, line.get(..colon).unwrap_or_default(), count))
            }
            None => Err(self
                .lexer
                .error_at(
                    ErrorKind::Malformed,
                    "a value has no count",
                    start,
                    line.len(),
                )
                .expected(expected)),
        }
    }

    fn decimal_part(
        &mut self,
        start: usize,
        column: usize,
        digits: &[u8],
        expected: &'static str,
    ) -> Result<u64> {
        integer(digits, 10).ok_or_else(|| {
            let message = "part of a value is not a decimal number below 2^64";
            self.lexer
                .error_at(ErrorKind::Malformed, message, start, column)
                .expected(expected)
        })
    }

    /// Reads a decimal number that fits 32 bits in a block of value data. An error states `expected` as the expected
    /// number.
    fn value_number(&mut self, expected: &'static str) -> Result<u32> {
        let start = self.lexer.position();
        let number = match self.lexer.decimal() {
            Decimal::Value(number) => u32::try_from(number).ok(),
            Decimal::Bad => None,
            Decimal::End => return Err(self.end_of_text(expected)),
        };
        number.ok_or_else(|| {
            let message = "a number of the value block is not a valid integer";
            self.lexer
                .error_at(ErrorKind::Malformed, message, start, 0)
                .expected(expected)
        })
    }

    /// Reads a line with a number of at most `max`, which may have a prefix such as `0x`. If the line is not such a
    /// number, the error has the text `message` and states `expected` as the expected number.
    #[inline]
    fn prefixed(&mut self, message: &'static str, expected: &'static str, max: u64) -> Result<u64> {
        match self.lexer.peek() {
            Some(line) => match prefixed_integer(line).filter(|&number| number <= max) {
                Some(number) => {
                    self.lexer.line();
                    Ok(number)
                }
                None => Err(self.no_number(Decimal::Bad, message, expected)),
            },
            None => Err(self.end_of_text(expected)),
        }
    }

    #[cold]
    fn no_number(
        &mut self,
        found: Decimal,
        message: &'static str,
        expected: &'static str,
    ) -> Error {
        if found == Decimal::End {
            return self.end_of_text(expected);
        }
        self.lexer
            .error(ErrorKind::Malformed, message, 0)
            .expected(expected)
            .llvm_detail(message)
    }

    #[cold]
    fn end_of_text(&mut self, expected: &'static str) -> Error {
        self.lexer
            .error(ErrorKind::Truncated, "the text ends inside a record", 0)
            .expected(expected)
            .with_hint(
                "the file is cut off in its last record; all records before that one are complete",
            )
    }

    /// Moves to the start of the next record after an error, if it can be found. A record starts after a blank line.
    /// Its first three lines are a function name, a function hash and a number of counters. If the first line is a
    /// number, `$N` or `NAME:COUNT`, it is not taken for a function name, because such lines also occur inside records.
    fn resume_after(&mut self, start: usize) {
        let mut from = start;
        while let Some(block) = self.lexer.next_block(from) {
            self.lexer.seek(block);
            if self.record_begins_here() {
                self.lexer.seek(block);
                return;
            }
            from = block;
        }
        self.ended = true;
    }

    fn record_begins_here(&mut self) -> bool {
        let Some(name) = self.lexer.line() else {
            return false;
        };
        let value_line = memchr::memrchr(b':', name)
            .and_then(|colon| integer(name.get(colon + 1..)?, 10))
            .is_some();
        let bitmap_line =
            matches!(name, [b'$', number @ ..] if prefixed_integer(trim(number)).is_some());
        if prefixed_integer(name).is_some() || value_line || bitmap_line {
            return false;
        }
        let hash = self.lexer.line().and_then(prefixed_integer);
        let counters = self.lexer.decimal();
        hash.is_some() && matches!(counters, Decimal::Value(1..))
    }
}

impl InstrSource for TextReader<'_> {
    fn kind(&self) -> InstrKind {
        self.kind
    }

    fn version_word(&self) -> u64 {
        0
    }

    fn read_record(&mut self, record: &mut Record) -> Result<bool> {
        record.clear();
        let mut taken = self.take_ahead(record);
        if taken.is_none() {
            let start = self.lexer.position();
            if self.ended || self.lexer.remaining() == 0 {
                self.ended = true;
                return Ok(false);
            }
            self.ahead.fill(&mut self.lexer);
            taken = self.take_ahead(record);
            self.is_profile |= taken.is_some();
            if taken.is_none() {
                taken = Some((start, self.read_body(record)));
            }
        }
        let Some((start, read)) = taken else {
            return Ok(false);
        };
        match read {
            Ok(()) => Ok(true),
            Err(error) => {
                self.resume_after(start);
                Err(error)
            }
        }
    }

    fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    fn binary_ids(&self) -> Result<Vec<BuildId>> {
        Ok(Vec::new())
    }

    fn temporal_traces(&mut self) -> Result<TemporalTraces> {
        Ok(self.traces.clone())
    }
}

/// Returns the error for a text whose first record has no function hash. The message says that the text is not a
/// profile, because such a text is seldom a profile that was cut off. The error kind and detail text are LLVM's.
#[cold]
fn no_profile(error: Error) -> Error {
    error
        .with_message("this text is not an instrumentation profile, because no function hash follows its first line")
        .with_hint("a record is a function's name, its hash, the number of its counters and the counters, one per line")
}

#[cold]
fn zero_byte(lexer: &mut Lexer<'_>, start: usize, column: usize) -> Error {
    lexer
        .error_at(
            ErrorKind::Malformed,
            "a name contains a zero byte",
            start,
            column,
        )
        .expected("text")
        .with_hint(
            "the file is damaged or not text; LLVM would read the file only up to the zero byte",
        )
}

/// Removes white space at both ends. White space is what C's `isspace` accepts.
fn trim(text: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | 0x09..=0x0d);
    let start = text.iter().take_while(|byte| is_space(byte)).count();
    let text = text.get(start..).unwrap_or_default();
    let end = text.iter().rev().take_while(|byte| is_space(byte)).count();
    text.get(..text.len() - end).unwrap_or_default()
}
