//! Finds out what kind of file some bytes are. Only the content decides; the name of the file is not used.
use crate::foreign::ForeignFile;
use profkit_abi::{indexed, raw};

/// A kind of file. There is a kind for every profile that this crate reads, and for other files that users often give
/// by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// A file without any bytes.
    Empty,
    /// A raw instrumentation profile (`.profraw`).
    InstrRaw,
    /// An indexed instrumentation profile (`.profdata`). It may contain a heap profile too.
    InstrIndexed,
    /// Text of no other known kind. It may be an instrumentation profile (`.proftext`); only reading the text can show
    /// whether it is one.
    InstrText,
    /// A sample profile as text.
    SampleText,
    /// A sample profile in the binary encoding.
    SampleBinary,
    /// A sample profile in the compact binary encoding of LLVM 7 to 16.
    SampleCompactBinary,
    /// A sample profile in the extensible binary encoding.
    SampleExtBinary,
    /// GCC's sample profile (`.afdo`), in a known version.
    SampleGcov,
    /// A file that has the magic number of binary sample profiles but an unknown encoding.
    SampleUnknown,
    /// A raw heap profile: the memory dumps of one process (`.memprofraw`).
    MemProfRaw,
    /// A heap profile as YAML.
    MemProfYaml,
    /// A part of a merge (`.pkpart`), of profiles of this family: a sum that can be added to others.
    Part(Family),
    /// A MIP raw file (`.mipraw`): the records that runs of a program wrote.
    MipRaw,
    /// A file of MIP return-address samples (`.mipret`).
    MipReturnAddresses,
    /// A MIP map (`.mipmap`): the functions of an executable or a shared library. Maps of version 9 have no magic
    /// number.
    MipMap,
    /// A MIP profile (`.mip`).
    MipProfile,
    /// A MIP profile as YAML.
    MipYaml,
    /// A file that has the magic number of MIP but whose header is damaged or of an unknown version.
    MipUnknown,
    /// An ELF, Mach-O, COFF or PE file: a program instead of a profile.
    ObjectFile,
    /// An archive of object files.
    Archive,
    /// A recording of Linux perf (`perf.data`).
    PerfData,
    /// A coverage file of GCC (`.gcno`, `.gcda`).
    GccCoverage,
    /// A file of a different kind, which profkit recognises but cannot read as a profile ([`ForeignFile`]), for example
    /// a gzip file.
    Foreign(ForeignFile),
    /// The file is of no kind that profkit recognises.
    Unknown,
}

/// A family of profiles. All profiles of a family measure the same thing. Profiles of different families are never
/// merged with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Instrumentation profiles: the values of counters that a compiler added to the program.
    Instr,
    /// Sample profiles: samples of a running program.
    Sample,
    /// Heap profiles: the memory allocations of a program.
    MemProf,
    /// MIP profiles: which functions and blocks ran, and the order of first calls.
    Mip,
}

impl Family {
    /// All families, in the order of their numbers in parts of merges.
    pub const ALL: [Self; 4] = [Self::Instr, Self::Sample, Self::MemProf, Self::Mip];

    /// Returns a name for a profile of this family, for example "sample profile".
    pub fn profile(self) -> &'static str {
        match self {
            Family::Instr => "instrumentation profile",
            Family::Sample => "sample profile",
            Family::MemProf => "heap profile",
            Family::Mip => "MIP profile",
        }
    }
}

impl FileKind {
    /// Returns the family of a profile; `None` if the file is not a profile. Indexed files belong to the
    /// instrumentation family, even if they contain only a heap profile.
    pub fn family(self) -> Option<Family> {
        use FileKind::*;
        match self {
            InstrRaw | InstrIndexed | InstrText => Some(Family::Instr),
            SampleText | SampleBinary | SampleCompactBinary | SampleExtBinary | SampleGcov
            | SampleUnknown => Some(Family::Sample),
            MemProfRaw | MemProfYaml => Some(Family::MemProf),
            MipRaw | MipReturnAddresses | MipMap | MipProfile | MipYaml | MipUnknown => {
                Some(Family::Mip)
            }
            Part(family) => Some(family),
            Empty | ObjectFile | Archive | PerfData | GccCoverage | Foreign(_) | Unknown => None,
        }
    }

    /// Whether the file is a sample profile.
    pub fn is_sample(self) -> bool {
        self.family() == Some(Family::Sample)
    }

    /// Whether the file is a heap profile: a raw one, or one as YAML. An indexed profile that contains a heap profile
    /// does not count.
    pub fn is_memprof(self) -> bool {
        self.family() == Some(Family::MemProf)
    }

    /// Whether the file is a MIP file.
    pub fn is_mip(self) -> bool {
        self.family() == Some(Family::Mip)
    }

    /// Whether a file of this kind is text.
    pub fn is_text(self) -> bool {
        use FileKind::*;
        matches!(self, InstrText | SampleText | MemProfYaml | MipYaml)
    }

    /// Returns a name for the kind of file, with an article, for example "a raw instrumentation profile".
    pub fn description(self) -> &'static str {
        match self {
            FileKind::Empty => "an empty file",
            FileKind::InstrRaw => "a raw instrumentation profile",
            FileKind::InstrIndexed => "an indexed profile",
            FileKind::InstrText => "text",
            FileKind::SampleText => "a sample profile as text",
            FileKind::SampleBinary => "a binary sample profile",
            FileKind::SampleCompactBinary => "a compact binary sample profile",
            FileKind::SampleExtBinary => "an extensible binary sample profile",
            FileKind::SampleGcov => "a GCC AutoFDO profile",
            FileKind::SampleUnknown => "a sample profile in an unknown encoding",
            FileKind::MemProfRaw => "a raw MemProf profile",
            FileKind::MemProfYaml => "a MemProf profile as YAML",
            FileKind::Part(_) => "a part of a merge",
            FileKind::MipRaw => "a MIP raw file",
            FileKind::MipReturnAddresses => "a MIP file of return-address samples",
            FileKind::MipMap => "a MIP map",
            FileKind::MipProfile => "a MIP profile",
            FileKind::MipYaml => "a MIP profile as YAML",
            FileKind::MipUnknown => "a MIP file",
            FileKind::ObjectFile => "a program or object file",
            FileKind::Archive => "an archive of object files",
            FileKind::PerfData => "a recording of Linux perf",
            FileKind::GccCoverage => "a coverage file of GCC",
            FileKind::Foreign(kind) => kind.description(),
            FileKind::Unknown => "a file of an unknown kind",
        }
    }

    /// Returns advice for a user who gave a file of this kind instead of a profile. Returns `None` for profiles, and
    /// for kinds of files for which there is no advice.
    pub fn advice(self) -> Option<&'static str> {
        match self {
            FileKind::ObjectFile => Some("run the program, and give the profile that it writes"),
            FileKind::Archive => Some(
                "give the profiles that programs wrote, not the libraries that programs are linked with",
            ),
            FileKind::PerfData => Some(
                "`profkit show` says what is in it; `profkit sample` makes a sample profile of it",
            ),
            FileKind::GccCoverage => Some("gcov reads coverage files of GCC"),
            FileKind::Foreign(kind) => Some(kind.advice()),
            _ => None,
        }
    }
}

/// Finds the kind of a file from its bytes. The first eight bytes decide for most binary kinds. A text is read up to
/// the first lines that are not comments, and YAML is read up to its first keys. `data` may be only the beginning of a
/// file. If the beginning is too short to decide, the result is [`Unknown`](FileKind::Unknown), or
/// [`InstrText`](FileKind::InstrText) for text.
///
/// The cargo features do not matter, with two exceptions. Without `mip`, all files with MIP's magic number are
/// [`MipUnknown`](FileKind::MipUnknown), and maps without a magic number are not recognised. Without `sample`, GCC's
/// sample profiles are [`GccCoverage`](FileKind::GccCoverage), because GCC's coverage files have the same magic number.
///
/// ```
/// use profkit_data::detect::{FileKind, detect};
///
/// assert_eq!(detect(b"main:100:5\n 1: 3\n"), FileKind::SampleText);
/// assert_eq!(detect(b"main\n1234\n1\n7\n"), FileKind::InstrText);
/// assert_eq!(detect(b"PERFILE2\0\0\0\0"), FileKind::PerfData);
/// ```
pub fn detect(data: &[u8]) -> FileKind {
    if data.is_empty() {
        return FileKind::Empty;
    }
    if let Some(kind) = ForeignFile::of_binary(data) {
        return FileKind::Foreign(kind);
    }
    if let Some(kind) = data
        .first_chunk::<8>()
        .and_then(|head| by_magic(data, *head))
    {
        return kind;
    }
    if data.starts_with(b"\x7fELF") {
        return FileKind::ObjectFile;
    }
    if is_text(data) {
        return text_kind(data);
    }
    #[cfg(feature = "mip")]
    if crate::mip::is_map(data) {
        return FileKind::MipMap;
    }
    if is_coff(data) {
        FileKind::ObjectFile
    } else {
        FileKind::Unknown
    }
}

fn by_magic(data: &[u8], head: [u8; 8]) -> Option<FileKind> {
    let (little, big) = (u64::from_le_bytes(head), u64::from_be_bytes(head));
    if little == indexed::MAGIC {
        return Some(FileKind::InstrIndexed);
    }
    let is_raw = |magic| magic == raw::MAGIC_64 || magic == raw::MAGIC_32;
    if is_raw(little) || is_raw(big) {
        return Some(FileKind::InstrRaw);
    }
    if data.starts_with(&profkit_abi::mip::MAGIC.to_le_bytes()) {
        return Some(mip_kind(data));
    }
    if little == MEMPROF_RAW_MAGIC {
        return Some(FileKind::MemProfRaw);
    }
    if head == PART_MAGIC {
        let family = data.get(PART_FAMILY_AT);
        let family = family.and_then(|&code| Family::ALL.get(usize::from(code)));
        return Some(FileKind::Part(family.copied().unwrap_or(Family::Instr)));
    }
    if let Some(encoding) = sample_encoding(data) {
        return Some(match encoding {
            profkit_abi::sample::BINARY => FileKind::SampleBinary,
            profkit_abi::sample::COMPACT_BINARY => FileKind::SampleCompactBinary,
            profkit_abi::sample::EXT_BINARY => FileKind::SampleExtBinary,
            _ => FileKind::SampleUnknown,
        });
    }
    if let b"adcg" | b"gcda" | b"oncg" | b"gcno" = &head[..4]
        && !has_line_break_or_colon(data)
    {
        #[cfg(feature = "sample")]
        if crate::sample::gcov::has_magic(data) {
            return Some(FileKind::SampleGcov);
        }
        return Some(FileKind::GccCoverage);
    }
    match &head {
        b"PERFILE2" | b"2ELIFREP" | b"PERFFILE" => return Some(FileKind::PerfData),
        b"!<arch>\n" | b"!<thin>\n" => return Some(FileKind::Archive),
        _ => {}
    }
    let is_mach_o = matches!(
        u32::from_be_bytes([head[0], head[1], head[2], head[3]]),
        0xfeed_face | 0xfeed_facf | 0xcefa_edfe | 0xcffa_edfe | 0xcafe_babe | 0xcafe_babf
    );
    // "MZ" is the magic number of PE files, but it may also be the start of a function name in a text profile.
    let is_pe = head.starts_with(b"MZ") && !is_text(data);
    (is_mach_o || is_pe).then_some(FileKind::ObjectFile)
}

/// Whether a file that seems to begin with a magic number of four letters is in fact a text that begins with a name.
/// This is so if one of the next four bytes is a line break or a colon, which end the name in text profiles.
fn has_line_break_or_colon(data: &[u8]) -> bool {
    data.get(4..8)
        .is_some_and(|word| word.iter().any(|byte| matches!(byte, b'\n' | b':')))
}

#[cfg(feature = "mip")]
fn mip_kind(data: &[u8]) -> FileKind {
    use crate::mip::MipKind;
    match crate::mip::preamble(data).map(|preamble| preamble.kind) {
        Ok(MipKind::Raw) => FileKind::MipRaw,
        Ok(MipKind::ReturnAddresses) => FileKind::MipReturnAddresses,
        Ok(MipKind::Map) => FileKind::MipMap,
        Ok(MipKind::Profile) => FileKind::MipProfile,
        Err(_) => FileKind::MipUnknown,
    }
}

#[cfg(not(feature = "mip"))]
fn mip_kind(_: &[u8]) -> FileKind {
    FileKind::MipUnknown
}

/// Returns the encoding of a binary sample profile: the lowest byte of the ULEB128 number at the start of the file.
/// Returns `None` if the file does not begin with the magic number of binary sample profiles.
fn sample_encoding(data: &[u8]) -> Option<u8> {
    let head = data.first_chunk::<9>()?;
    let same = head[1] & 0xfe == SAMPLE_MAGIC_TAIL[0] & 0xfe && head[2..] == SAMPLE_MAGIC_TAIL[1..];
    (same && head[0] & 0x80 != 0).then_some(head[0] & 0x7f | head[1] << 7)
}

/// Whether the file is a COFF object file. COFF has no magic number, so three fields are checked: the machine must be
/// known, there must be at least one section, and there must be no optional header, which only programs have.
fn is_coff(data: &[u8]) -> bool {
    const MACHINES: [u16; 4] = [0x014c, 0x01c4, 0x8664, 0xaa64];
    let Some(head) = data.first_chunk::<20>() else {
        return false;
    };
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    MACHINES.contains(&half(0)) && (1..0xff00).contains(&half(2)) && half(16) == 0
}

fn text_kind(data: &[u8]) -> FileKind {
    let yaml = data.starts_with(b"---");
    if yaml
        && MEMPROF_KEYS
            .iter()
            .any(|key| memchr::memmem::find(data, key).is_some())
    {
        FileKind::MemProfYaml
    } else if is_mip_yaml(data) {
        FileKind::MipYaml
    } else if is_sample_text(data) {
        FileKind::SampleText
    } else {
        ForeignFile::of_text(data).map_or(FileKind::InstrText, FileKind::Foreign)
    }
}

/// Whether a text is YAML as LLVM writes it, with `Header` as its first key. MIP profiles as YAML begin like this.
fn is_mip_yaml(data: &[u8]) -> bool {
    let mut lines = data
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    match lines.next() {
        Some(b"---") => lines.next() == Some(b"Header:"),
        first => {
            first == Some(b"Header:") && lines.next().is_some_and(|line| line.starts_with(b" "))
        }
    }
}

/// Whether the data are text by LLVM's test (`TextInstrProfReader::hasFormat`): the first eight bytes, or all bytes of
/// a shorter file, are printable ASCII or white space.
pub fn is_text(data: &[u8]) -> bool {
    data.iter()
        .take(8)
        .all(|&byte| (0x20..0x7f).contains(&byte) || (0x09..=0x0d).contains(&byte))
}

/// Whether a text is a sample profile. The first line that is not a comment must be `NAME:TOTAL:HEAD`, perhaps with blanks
/// around the numbers: such a text is no profile, but the reader of sample profiles says why. The next line must not be a single number, because the text is then an instrumentation profile: the first line is the name of a
/// function and the number is its function hash.
fn is_sample_text(data: &[u8]) -> bool {
    let mut lines = data
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"));
    let number = |field: &[u8]| {
        let field = field.trim_ascii();
        !field.is_empty() && field.iter().all(u8::is_ascii_digit)
    };
    let Some(first) = lines.next() else {
        return false;
    };
    let mut fields = first.trim_ascii_end().rsplitn(3, |&byte| byte == b':');
    let counts = [fields.next(), fields.next()];
    let named = fields.next().is_some_and(|name| !name.is_empty());
    named
        && counts.iter().all(|field| field.is_some_and(number))
        && !lines.next().is_some_and(number)
}

/// The first eight bytes of a part of a merge.
pub const PART_MAGIC: [u8; 8] = *b"\xffpkpart\x81";
/// The offset of the byte in a part of a merge that holds the family: an index into [`Family::ALL`].
pub const PART_FAMILY_AT: usize = 12;
const MEMPROF_RAW_MAGIC: u64 = 0xff6d_7072_6f66_7281;
/// The top-level keys of LLVM's MemProf YAML, each with the line feed before it.
const MEMPROF_KEYS: [&[u8]; 2] = [b"\nHeapProfileRecords:", b"\nDataAccessProfiles:"];
/// The bytes of the ULEB128 number at the start of every binary sample profile, except the first byte. The number has
/// the text "SPROF42" in its high bytes and the encoding of the profile in its low byte. The first byte of the ULEB128
/// number holds only 7 bits, so the highest bit of the encoding is the lowest bit of this array's first byte. This bit
/// is not compared.
const SAMPLE_MAGIC_TAIL: [u8; 8] = [0xe5, 0xd0, 0xb1, 0xf4, 0xc9, 0x94, 0xa8, 0x53];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(feature = "sample")]
    fn sample_profiles_of_every_binary_encoding_are_found() {
        for (magic, kind) in [
            (b"\xff\xe5", FileKind::SampleBinary),
            (b"\x82\xe4", FileKind::SampleCompactBinary),
            (b"\x84\xe4", FileKind::SampleExtBinary),
            (b"\x85\xe4", FileKind::SampleUnknown),
        ] {
            let file = [magic.as_slice(), b"\xd0\xb1\xf4\xc9\x94\xa8\x53\x67"].concat();
            assert_eq!(detect(&file), kind);
        }
        assert_eq!(detect(b"adcg*704\0\0\0\0"), FileKind::SampleGcov);
        assert_eq!(detect(b"adcg\x02\0\0\0\0\0\0\0"), FileKind::SampleGcov);
        assert_eq!(detect(b"gcda\0\0\0\x03\0\0\0\0"), FileKind::SampleGcov);
        // A coverage file of GCC 12. LLVM's test for text accepts the first eight bytes of this file.
        assert_eq!(detect(b"adcg*22B\0\0\0\0"), FileKind::GccCoverage);
        assert_eq!(detect(b"oncg*22B\0\0\0\0"), FileKind::GccCoverage);
    }

    #[test]
    fn sample_text_is_recognised_and_a_function_with_such_a_name_is_not() {
        assert!(is_sample_text(b"# by hand\nmain:100:5\n 1: 3\n"));
        assert!(is_sample_text(b"_ZN3foo:1:0"));
        assert!(!is_sample_text(b"main:100:5\n1234\n1\n7\n"));
        assert!(!is_sample_text(b"a.c:main\n1234\n1\n7\n"));
        assert!(!is_sample_text(b":ir\nmain\n1234\n1\n7\n"));
        assert!(!is_sample_text(b":1:2\n 1: 3"));
        assert!(!is_sample_text(b""));
    }

    #[test]
    fn kinds_of_text() {
        let memprof = b"---\nHeapProfileRecords:\n  - GUID: 1\n";
        assert_eq!(detect(memprof), FileKind::MemProfYaml);
        assert_eq!(detect(b"---\nHeader:\n  Runs: 1\n"), FileKind::MipYaml);
        assert_eq!(
            detect(b"Header:\n  File Type: [ .mip ]\n"),
            FileKind::MipYaml
        );
        // This text is not YAML but a text profile: a function named `Header:`, followed by its function hash.
        assert_eq!(detect(b"Header:\n1\n1\n1\n"), FileKind::InstrText);
        assert_eq!(detect(b"gcda:\n1\n1\n1\n"), FileKind::InstrText);
        assert_eq!(detect(b"gcno\n12345\n1\n1\n"), FileKind::InstrText);
        assert_eq!(detect(b"MZ_main\n1\n1\n1\n"), FileKind::InstrText);
        assert_eq!(detect(b"f\n1\n"), FileKind::InstrText);
    }

    #[test]
    fn what_is_often_given_for_a_profile() {
        assert_eq!(detect(b""), FileKind::Empty);
        assert_eq!(detect(b"PERFILE2h\0\0\0"), FileKind::PerfData);
        assert_eq!(detect(b"!<arch>\nfoo.o/"), FileKind::Archive);
        assert_eq!(detect(b"\x7fELF\x02\x01\x01\0"), FileKind::ObjectFile);
        assert_eq!(detect(b"MZ\x90\0\x03\0\0\0"), FileKind::ObjectFile);
        assert_eq!(
            detect(b"\xcf\xfa\xed\xfe\x07\0\0\x01"),
            FileKind::ObjectFile
        );
        let coff = b"\x64\x86\x02\0\0\0\0\0\x80\0\0\0\x04\0\0\0\0\0\0\0";
        assert_eq!(detect(coff), FileKind::ObjectFile);
        assert_eq!(
            detect(b"\x01\x02\x03\x04\x05\x06\x07\x08"),
            FileKind::Unknown
        );
    }
}
