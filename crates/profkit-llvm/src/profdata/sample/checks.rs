//! Finds the first problem that LLVM's reader reports for a damaged binary sample profile. profkit's reader makes its
//! checks in a different order, so it may find a different problem first. This module walks through the file and makes
//! LLVM's checks in LLVM's order (`SampleProfileReaderBinary`, `SampleProfileReaderExtBinaryBase`). The walk yields no
//! samples. It is needed only for files in which profkit's reader found damage.
use flate2::{Decompress, FlushDecompress, Status};
use profkit_abi::sample::{VERSION, flag, section};
use profkit_data::limits::SAMPLE_INLINE_DEPTH;
use profkit_data::sample::{ProfileKind, SampleEncoding, llvm_encoding};
use std::borrow::Cow;

/// The largest size in bytes of a decompressed section for which the walk reserves memory.
const LARGEST_SECTION: u64 = 1 << 30;

/// The number of zero bytes that are assumed to follow a file in LLVM's memory.
const PAGE: usize = 4096;

/// A problem in a file. `text` is LLVM's text for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    pub text: &'static str,
    /// Whether LLVM stops in every failure mode. This is so if the problem is found while a number or name is read.
    pub stops: bool,
}

const TRUNCATED: Check = Check {
    text: "Truncated profile data",
    stops: true,
};
const MALFORMED: Check = Check {
    text: "Malformed sample profile data",
    stops: true,
};
const OUT_OF_TABLE: Check = soft("Truncated function name table");

/// Makes a problem that stops LLVM only in the default failure mode.
pub const fn soft(text: &'static str) -> Check {
    Check { text, stops: false }
}

type Checked<T = ()> = Result<T, Check>;

/// Returns the first problem that LLVM's reader finds. `None` if LLVM reads the file without a problem, or if the file
/// has an encoding without such problems.
pub fn first_fault(data: &[u8]) -> Option<Check> {
    let mut walk = Walk::new(data);
    match llvm_encoding(data) {
        Some(SampleEncoding::Binary) => walk.binary().err(),
        Some(SampleEncoding::ExtBinary) => walk.sections().err(),
        _ => None,
    }
}

/// Returns the problem because of which LLVM does not open a file. `None` if LLVM opens the file; it may find further
/// problems when it reads the functions.
pub fn header_fault(data: &[u8]) -> Option<Check> {
    let mut walk = Walk::new(data);
    match llvm_encoding(data) {
        None => Some(soft("Unrecognized sample profile encoding format")),
        Some(SampleEncoding::Binary) => walk.binary_header().err(),
        Some(SampleEncoding::ExtBinary) => walk.section_table().err(),
        Some(_) => None,
    }
}

/// Returns the profile kind in LLVM's global variables after LLVM has read a file, up to the first problem. `before` is
/// the kind in these variables before LLVM reads the file. The variables belong to the whole tool. So even a file that
/// is dropped because of a problem changes the kind of the result.
pub fn kind_after(data: &[u8], before: ProfileKind) -> ProfileKind {
    let mut walk = Walk::new(data);
    // The result is ignored, because the merge reports the problem.
    let _ = walk.sections();
    let state = walk.state;
    let mut kind = before;
    for (flag, is_set) in [
        (ProfileKind::CONTEXT_SENSITIVE, state.is_cs),
        (ProfileKind::FS_DISCRIMINATORS, state.is_fs),
        (ProfileKind::PRE_INLINED, state.is_pre_inlined),
    ] {
        if is_set {
            kind |= flag;
        }
    }
    match state.probes {
        Some(true) => kind | ProfileKind::PROBE_BASED,
        Some(false) => kind.without(ProfileKind::PROBE_BASED),
        None => kind,
    }
}

/// What the walk has learned from the earlier sections of the file.
#[derive(Clone, Copy, Default)]
struct State {
    names: u64,
    contexts: u64,
    is_cs: bool,
    is_fs: bool,
    is_pre_inlined: bool,
    vtables: bool,
    /// Whether functions have checksums of pseudo probes; `None` before the first section of metadata.
    probes: Option<bool>,
}

struct Walk<'data> {
    /// The file or a decompressed section. LLVM first decodes a number, and only then checks whether the number lies in
    /// the section. So decoding may read bytes after `end`.
    bytes: &'data [u8],
    at: usize,
    end: usize,
    state: State,
}

impl<'data> Walk<'data> {
    fn new(bytes: &'data [u8]) -> Self {
        Walk {
            bytes,
            at: 0,
            end: bytes.len(),
            state: State::default(),
        }
    }

    fn is_done(&self) -> bool {
        self.at >= self.end
    }

    fn number(&mut self) -> Checked<u64> {
        self.number_up_to(u64::MAX)
    }

    fn small(&mut self) -> Checked<u64> {
        self.number_up_to(u64::from(u32::MAX))
    }

    fn number_up_to(&mut self, largest: u64) -> Checked<u64> {
        let (mut value, mut shift, mut at) = (0u64, 0u32, self.at);
        loop {
            // Zero bytes are assumed to follow the file.
            let byte = self.bytes.get(at).copied().unwrap_or(0);
            let low = u64::from(byte & 0x7f);
            if shift >= 63 && (low > 1 || shift > 63 && low != 0) {
                // If a number is too large for its type, LLVM uses 0 and continues at the number's last byte.
                value = 0;
                break;
            }
            value |= low.checked_shl(shift).unwrap_or(0);
            shift = shift.saturating_add(7);
            at += 1;
            if byte < 0x80 {
                break;
            }
        }
        if value > largest {
            return Err(MALFORMED);
        }
        if at > self.end {
            return Err(TRUNCATED);
        }
        self.at = at;
        Ok(value)
    }

    fn word(&mut self) -> Checked<u64> {
        let bytes = self.bytes.get(self.at..self.end).unwrap_or_default();
        let (word, _) = bytes.split_first_chunk::<8>().ok_or(TRUNCATED)?;
        self.at += 8;
        Ok(u64::from_le_bytes(*word))
    }

    /// Reads and checks the index of a function's name.
    fn name(&mut self) -> Checked {
        let index = self.number()?;
        (index < self.state.names).then_some(()).ok_or(OUT_OF_TABLE)
    }

    /// Reads and checks the index of a top-level function. It is the index of a name, or of a calling context in
    /// profiles with contexts.
    fn function(&mut self) -> Checked {
        if !self.state.is_cs {
            return self.name();
        }
        let index = self.number()?;
        let known = index < self.state.contexts;
        known.then_some(()).ok_or(OUT_OF_TABLE)
    }

    fn line(&mut self) -> Checked {
        // LLVM checks only the low 32 bits of the number.
        let legal = self.number()? & 0xffff_0000 == 0;
        let fault = soft("Illegal line offset in sample profile data");
        legal.then_some(()).ok_or(fault)
    }

    fn magic(&mut self) -> Checked {
        self.number()?;
        let known = self.number()? == VERSION;
        let fault = soft("Unsupported sample profile format version");
        known.then_some(()).ok_or(fault)
    }

    fn binary_header(&mut self) -> Checked {
        self.magic()?;
        self.summary()?;
        self.text_names()
    }

    fn binary(&mut self) -> Checked {
        self.binary_header()?;
        self.functions()
    }

    /// Reads the section table. Each entry consists of the kind, the flags, the offset and the size of a section.
    fn section_table(&mut self) -> Checked<Vec<[u64; 4]>> {
        self.magic()?;
        let mut table = Vec::new();
        for _ in 0..self.word()? {
            let kind = self.word()? & u64::from(u32::MAX);
            table.push([kind, self.word()?, self.word()?, self.word()?]);
        }
        Ok(table)
    }

    fn sections(&mut self) -> Checked {
        let table = self.section_table()?;
        for [kind, flags, offset, size] in table.into_iter().filter(|entry| entry[3] != 0) {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            self.at = start;
            // LLVM may read beyond the file; the bytes there depend on its memory. The walk assumes one page of zero
            // bytes.
            self.end = start.saturating_add(size).min(self.bytes.len() + PAGE);
            let bytes = if flags & flag::COMPRESSED == 0 {
                Cow::Borrowed(self.bytes)
            } else {
                Cow::Owned(self.inflated()?)
            };
            let is_whole = matches!(bytes, Cow::Borrowed(_));
            let mut part = Walk {
                at: if is_whole { self.at } else { 0 },
                end: if is_whole { self.end } else { bytes.len() },
                bytes: &bytes,
                state: self.state,
            };
            let read = part.section(kind, flags);
            let is_used_up = part.at == part.end;
            self.state = part.state;
            read?;
            if !is_used_up {
                return Err(soft(MALFORMED.text));
            }
        }
        Ok(())
    }

    fn inflated(&mut self) -> Checked<Vec<u8>> {
        let fault = soft("Uncompress failure");
        let size = self.number()?;
        let compressed = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let input = rest.get(..compressed).unwrap_or(rest);
        let size = usize::try_from(size.min(LARGEST_SECTION)).unwrap_or(0);
        let mut out = Vec::with_capacity(size.min(input.len().saturating_mul(1100)));
        let ended = Decompress::new(true).decompress_vec(input, &mut out, FlushDecompress::Finish);
        if !matches!(ended, Ok(Status::StreamEnd)) || out.len() > size {
            return Err(fault);
        }
        out.resize(size, 0);
        Ok(out)
    }

    fn section(&mut self, kind: u64, flags: u64) -> Checked {
        let has = |wanted: u64| flags & wanted == wanted;
        match kind {
            section::SUMMARY => {
                self.summary()?;
                self.state.is_cs |= has(flag::CONTEXT_SENSITIVE);
                self.state.is_fs |= has(flag::FS_DISCRIMINATORS);
                self.state.is_pre_inlined |= has(flag::PRE_INLINED);
                self.state.vtables |= has(flag::VTABLES);
                Ok(())
            }
            section::NAMES if has(flag::FIXED_MD5_NAMES) => {
                let count = self.number()?;
                let size = usize::try_from(count.saturating_mul(8)).unwrap_or(usize::MAX);
                let end = self.at.saturating_add(size);
                if end > self.end {
                    return Err(soft(TRUNCATED.text));
                }
                self.at = end;
                self.state.names = count;
                Ok(())
            }
            section::NAMES if has(flag::MD5_NAMES) => {
                let count = self.number()?;
                self.state.names = count;
                (0..count).try_for_each(|_| self.number().map(drop))
            }
            section::NAMES => self.text_names(),
            section::CONTEXTS => self.contexts(),
            section::SAMPLES => self.functions(),
            section::METADATA => {
                self.state.probes = Some(has(flag::PROBE_BASED));
                while !self.is_done() {
                    self.function()?;
                    self.metadata(has(flag::ATTRIBUTES), 0)?;
                }
                Ok(())
            }
            section::SYMBOLS => {
                let ends = self.bytes.get(self.at..self.end);
                let ends = ends.is_some_and(|list| list.last() == Some(&0));
                self.at = self.end;
                ends.then_some(()).ok_or(soft(MALFORMED.text))
            }
            // Sections with tables of offsets and sections of unknown kinds are skipped.
            _ => {
                self.at = self.end;
                Ok(())
            }
        }
    }

    fn summary(&mut self) -> Checked {
        for _ in 0..5 {
            self.number()?;
        }
        let cutoffs = self.number()?;
        (0..cutoffs).try_for_each(|_| (0..3).try_for_each(|_| self.number().map(drop)))
    }

    fn text_names(&mut self) -> Checked {
        let count = self.number()?;
        for _ in 0..count {
            let rest = self.bytes.get(self.at..self.end).unwrap_or_default();
            let length = memchr::memchr(0, rest).ok_or(TRUNCATED)?;
            self.at += length + 1;
        }
        self.state.names = count;
        Ok(())
    }

    fn contexts(&mut self) -> Checked {
        let count = self.number()?;
        for _ in 0..count {
            for _ in 0..self.small()? {
                self.name()?;
                self.line()?;
                self.number()?;
            }
        }
        self.state.contexts = count;
        Ok(())
    }

    fn functions(&mut self) -> Checked {
        while !self.is_done() {
            self.number()?;
            self.function()?;
            self.body(0)?;
        }
        Ok(())
    }

    fn body(&mut self, depth: usize) -> Checked {
        if depth > SAMPLE_INLINE_DEPTH {
            return Err(soft(MALFORMED.text));
        }
        self.number()?;
        for _ in 0..self.small()? {
            self.line()?;
            self.number()?;
            self.number()?;
            for _ in 0..self.small()? {
                self.name()?;
                self.number()?;
            }
        }
        for _ in 0..self.small()? {
            self.number()?;
            self.number()?;
            self.name()?;
            self.body(depth + 1)?;
        }
        if !self.state.vtables {
            return Ok(());
        }
        for _ in 0..self.small()? {
            self.line()?;
            self.number()?;
            for _ in 0..self.small()? {
                self.name()?;
                self.number()?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, attributes: bool, depth: usize) -> Checked {
        if depth > SAMPLE_INLINE_DEPTH {
            return Err(soft(MALFORMED.text));
        }
        if self.is_done() {
            return Ok(());
        }
        if self.state.probes == Some(true) {
            self.number()?;
        }
        if attributes {
            self.small()?;
        }
        if self.state.is_cs {
            return Ok(());
        }
        for _ in 0..self.small()? {
            self.number()?;
            self.number()?;
            self.function()?;
            self.metadata(attributes, depth + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> Vec<u8> {
        let folder = profkit_testkit::repo_root().join("tests/fixtures/sample");
        std::fs::read(folder.join(name)).expect("the fixture is in the repository")
    }

    /// Changes bytes of a fixture, and returns LLVM's text for the first problem. llvm-profdata-22 prints the same
    /// texts.
    fn after(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Option<&'static str> {
        let mut bytes = fixture(name);
        change(&mut bytes);
        first_fault(&bytes).map(|check| check.text)
    }

    #[test]
    fn intact_files_have_no_fault() {
        for name in [
            "llvm-22-nested-ext.sampleprof",
            "llvm-22-nested-ext-md5.sampleprof",
            "llvm-22-nested-ext-compressed.sampleprof",
            "llvm-22-nested-ext-split.sampleprof",
            "llvm-22-contexts-ext.sampleprof",
            "llvm-22-probes-ext.sampleprof",
            "llvm-22-nested-binary.sampleprof",
        ] {
            assert_eq!(first_fault(&fixture(name)), None, "{name}");
        }
    }

    #[test]
    fn damage_has_the_fault_that_llvm_finds_first() {
        const NESTED: &str = "llvm-22-nested-ext.sampleprof";
        // The section table begins at offset 18, and each entry has 32 bytes. The name table is the second section.
        let size_of_names = 18 + 32 + 24;
        let found = [
            after(NESTED, |bytes| bytes[9] = 1),
            after(NESTED, |bytes| bytes.truncate(40)),
            // In one file, the section has a byte after the last name. In the other, the last byte of the last name is
            // missing.
            after(NESTED, |bytes| bytes[size_of_names] += 1),
            after(NESTED, |bytes| bytes[size_of_names] -= 1),
            after("llvm-22-nested-ext-compressed.sampleprof", |bytes| {
                let middle = bytes.len() - 60;
                bytes[middle] ^= 0xff;
            }),
            after("llvm-22-nested-binary.sampleprof", |bytes| {
                bytes.pop();
            }),
        ];
        assert_eq!(
            found,
            [
                Some("Unsupported sample profile format version"),
                Some("Truncated profile data"),
                Some("Malformed sample profile data"),
                Some("Truncated profile data"),
                Some("Uncompress failure"),
                Some("Truncated profile data"),
            ]
        );
    }
}
