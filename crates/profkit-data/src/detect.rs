//! What a file is, by content: never by its name.
use profkit_abi::{indexed, raw};

/// A kind of profile, found from the first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// No bytes at all.
    Empty,
    /// Raw instrumentation profile (.profraw).
    InstrRaw,
    /// Indexed instrumentation profile (.profdata).
    InstrIndexed,
    /// Text that may be an instrumentation profile (.proftext); only parsing it can tell.
    Text,
    /// Raw MemProf profile (.memprofraw).
    MemProfRaw,
    /// Binary sample profile, of any encoding that starts with the SPROF42 magic.
    SampleBinary,
    /// GCC's AutoFDO profile.
    SampleGcov,
    /// MIP raw file, profile, or map of version 8; [`mip::preamble`](crate::mip::preamble) tells which.
    Mip,
    /// MIP map of version 9, which has no magic.
    MipMap,
    /// An ELF, Mach-O or PE file: a program, not a profile.
    ObjectFile,
    /// None of the above.
    Unknown,
}

/// Says what a file is from its first bytes, in LLVM's order of tests (`InstrProfReader::create`): indexed, raw 64,
/// raw 32, text; with the kinds that LLVM leaves to other options before text.
pub fn detect(data: &[u8]) -> FileKind {
    let Some(head) = data.first_chunk::<8>() else {
        return match data {
            [] => FileKind::Empty,
            _ if is_text(data) => FileKind::Text,
            _ => FileKind::Unknown,
        };
    };
    let (little, big) = (u64::from_le_bytes(*head), u64::from_be_bytes(*head));
    if little == indexed::MAGIC {
        return FileKind::InstrIndexed;
    }
    if [little, big]
        .iter()
        .any(|&magic| magic == raw::MAGIC_64 || magic == raw::MAGIC_32)
    {
        return FileKind::InstrRaw;
    }
    if crate::mip::has_magic(data) {
        return FileKind::Mip;
    }
    if little == MEMPROF_RAW_MAGIC {
        return FileKind::MemProfRaw;
    }
    let tail = head.get(2..).unwrap_or_default();
    if head[1] & 0xfe == SAMPLE_MAGIC_TAIL[0] & 0xfe
        && Some(tail) == SAMPLE_MAGIC_TAIL.get(1..7)
        && data.get(8) == SAMPLE_MAGIC_TAIL.last()
    {
        return FileKind::SampleBinary;
    }
    if crate::sample::gcov::has_magic(data) {
        return FileKind::SampleGcov;
    }
    if head.starts_with(b"\x7fELF")
        || head.starts_with(b"MZ")
        || matches!(
            u32::from_le_bytes([head[0], head[1], head[2], head[3]]),
            0xfeed_face | 0xfeed_facf | 0xbeba_feca
        )
    {
        return FileKind::ObjectFile;
    }
    if is_text(data) {
        FileKind::Text
    } else if crate::mip::is_map(data) {
        FileKind::MipMap
    } else {
        FileKind::Unknown
    }
}

/// LLVM's test for text: the first (at most) eight bytes are all printable ASCII or white space
/// (`TextInstrProfReader::hasFormat`).
pub fn is_text(data: &[u8]) -> bool {
    data.iter()
        .take(8)
        .all(|&byte| (0x20..0x7f).contains(&byte) || (0x09..=0x0d).contains(&byte))
}

/// Whether a text is a sample profile rather than an instrumentation profile: the first line that is no comment is
/// `NAME:TOTAL:HEAD`, and what follows is not the hash of a function that is called so.
pub fn is_sample_text(data: &[u8]) -> bool {
    let mut lines = data
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"));
    let number = |field: &[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    let Some(first) = lines.next() else {
        return false;
    };
    let mut fields = first.trim_ascii_end().rsplitn(3, |&byte| byte == b':');
    let counts = [fields.next(), fields.next()];
    let named = fields.next().is_some_and(|name| !name.is_empty());
    named
        && counts.iter().all(|field| field.is_some_and(number))
        && !lines.next().is_some_and(|line| number(line.trim_ascii()))
}

const MEMPROF_RAW_MAGIC: u64 = 0xff6d_7072_6f66_7281;
/// The ULEB128 form of "SPROF42" + format byte, after its first byte; the second byte differs by one bit that the
/// format byte spills into.
const SAMPLE_MAGIC_TAIL: [u8; 8] = [0xe5, 0xd0, 0xb1, 0xf4, 0xc9, 0x94, 0xa8, 0x53];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_profiles_of_every_binary_encoding_are_found() {
        for magic in [b"\xff\xe5", b"\x82\xe4", b"\x84\xe4"] {
            let file = [magic.as_slice(), b"\xd0\xb1\xf4\xc9\x94\xa8\x53\x67"].concat();
            assert_eq!(detect(&file), FileKind::SampleBinary);
        }
        assert_eq!(detect(b"adcg*704\0\0\0\0"), FileKind::SampleGcov);
        assert_eq!(detect(b"adcg\x02\0\0\0\0\0\0\0"), FileKind::SampleGcov);
        assert_eq!(detect(b"gcda\0\0\0\x03\0\0\0\0"), FileKind::SampleGcov);
        // Coverage data of GCC 12, whose first bytes LLVM's test takes for text.
        assert_eq!(detect(b"adcg*22B\0\0\0\0"), FileKind::Text);
    }

    #[test]
    fn sample_text_is_told_from_a_function_with_such_a_name() {
        assert!(is_sample_text(b"# by hand\nmain:100:5\n 1: 3\n"));
        assert!(is_sample_text(b"_ZN3foo:1:0"));
        assert!(!is_sample_text(b"main:100:5\n1234\n1\n7\n"));
        assert!(!is_sample_text(b"a.c:main\n1234\n1\n7\n"));
        assert!(!is_sample_text(b":ir\nmain\n1234\n1\n7\n"));
        assert!(!is_sample_text(b":1:2\n 1: 3"));
        assert!(!is_sample_text(b""));
    }
}
