//! Recognises files that profkit cannot read as a profile, but that users often give in place of one.
use profkit_abi::{indexed, raw};

/// A kind of file that profkit cannot read as a profile. Some of these files are profiles that another program has
/// changed, for example compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForeignFile {
    /// A file that was compressed by gzip (RFC 1952).
    Gzip,
    /// A file that was compressed by zstd (RFC 8878).
    Zstd,
    /// A file that was compressed by xz.
    Xz,
    /// A file that was compressed by bzip2.
    Bzip2,
    /// A file that was compressed by lz4.
    Lz4,
    /// A zip archive.
    Zip,
    /// A tar archive.
    Tar,
    /// A 7-Zip archive.
    SevenZip,
    /// LLVM bitcode. It is code and not a profile.
    Bitcode,
    /// A contextual profile of LLVM 20 and later (`.ctxprofdata`).
    ContextualProfile,
    /// A coverage report of lcov (`.info`).
    Lcov,
    /// A profile of BOLT (`.fdata`).
    BoltData,
    /// A profile of BOLT as YAML.
    BoltYaml,
    /// A JSON file.
    Json,
    /// A page of HTML. Such a file is most often an error page that was downloaded in place of a profile.
    Html,
    /// An XML file.
    Xml,
    /// The memory of a crashed program (an ELF core file).
    CoreDump,
    /// A text whose first line is the path of a profile.
    ProfileList,
    /// A pointer file, which git-LFS stores in place of a large file.
    GitLfsPointer,
    /// A raw or indexed profile in which every line feed became carriage return and line feed, because a program
    /// treated it as text.
    ChangedLineEndings,
    /// A text in UTF-16.
    Utf16,
    /// A text that begins with the byte order mark of UTF-8.
    Utf8Mark,
}

impl ForeignFile {
    /// Returns a name for the kind of file, with an article, for example "a gzip file".
    pub fn description(self) -> &'static str {
        match self {
            ForeignFile::Gzip => "a gzip file",
            ForeignFile::Zstd => "a zstd file",
            ForeignFile::Xz => "an xz file",
            ForeignFile::Bzip2 => "a bzip2 file",
            ForeignFile::Lz4 => "an lz4 file",
            ForeignFile::Zip => "a zip archive",
            ForeignFile::Tar => "a tar archive",
            ForeignFile::SevenZip => "a 7-Zip archive",
            ForeignFile::Bitcode => "LLVM bitcode",
            ForeignFile::ContextualProfile => "a contextual profile of LLVM",
            ForeignFile::Lcov => "a coverage report of lcov",
            ForeignFile::BoltData => "a profile of BOLT",
            ForeignFile::BoltYaml => "a profile of BOLT as YAML",
            ForeignFile::Json => "JSON",
            ForeignFile::Html => "an HTML page",
            ForeignFile::Xml => "XML",
            ForeignFile::CoreDump => "a core dump",
            ForeignFile::ProfileList => "a list of profiles",
            ForeignFile::GitLfsPointer => "a git-LFS pointer",
            ForeignFile::ChangedLineEndings => {
                "a profile that was damaged by a conversion of line endings"
            }
            ForeignFile::Utf16 => "text in UTF-16",
            ForeignFile::Utf8Mark => "text with a byte order mark",
        }
    }

    /// Returns advice for a user who gave a file of this kind instead of a profile.
    pub fn advice(self) -> &'static str {
        const REPORT: &str = "if this is a report, give the profile that it was made from: a report cannot become a profile again";
        match self {
            ForeignFile::Gzip => "expand it first: gzip -d FILE",
            ForeignFile::Zstd => "expand it first: zstd -d FILE",
            ForeignFile::Xz => "expand it first: xz -d FILE",
            ForeignFile::Bzip2 => "expand it first: bzip2 -d FILE",
            ForeignFile::Lz4 => "expand it first: lz4 -d FILE",
            ForeignFile::Zip => {
                "unpack it, or give it a name that ends in .zip: a merge then reads its members"
            }
            ForeignFile::Tar => {
                "unpack it, or give it a name that ends in .tar: a merge then reads its members"
            }
            ForeignFile::SevenZip => "unpack it first: 7z x FILE",
            ForeignFile::Bitcode => {
                "compile and run the program, and give the profile that it writes"
            }
            ForeignFile::ContextualProfile => {
                "llvm-ctxprof-util of LLVM 20 and later reads contextual profiles"
            }
            ForeignFile::Lcov => {
                "give the profile that the report was made from: a report cannot become a profile again"
            }
            ForeignFile::Json | ForeignFile::Xml => REPORT,
            ForeignFile::BoltData | ForeignFile::BoltYaml => {
                "llvm-bolt and merge-fdata read profiles of BOLT"
            }
            ForeignFile::Html => {
                "most likely it is the error page of a download: look at it, then download the profile again"
            }
            ForeignFile::CoreDump => {
                "a core dump holds the memory of a crashed program: give the profile that the program wrote"
            }
            ForeignFile::ProfileList => {
                "give the file as a list of inputs (merge -f FILE), not as an input"
            }
            ForeignFile::GitLfsPointer => {
                "fetch the file to which the pointer refers: git lfs pull"
            }
            ForeignFile::ChangedLineEndings => {
                "a program converted the file as text (git with autocrlf, FTP in ASCII mode): copy the original again in binary mode"
            }
            ForeignFile::Utf16 => "convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW",
            ForeignFile::Utf8Mark => "remove the first three bytes: tail -c +4 FILE > NEW",
        }
    }

    /// Returns the kind of a file by its magic number; `None` if no kind has the magic number. Text files are
    /// recognised by [`of_text`](Self::of_text).
    pub(crate) fn of_binary(data: &[u8]) -> Option<Self> {
        const MAGICS: &[(&[u8], ForeignFile)] = &[
            (&[0x1f, 0x8b, 8], ForeignFile::Gzip),
            (&[0x28, 0xb5, 0x2f, 0xfd], ForeignFile::Zstd),
            (&[0xfd, b'7', b'z', b'X', b'Z', 0], ForeignFile::Xz),
            (&[0x04, 0x22, 0x4d, 0x18], ForeignFile::Lz4),
            (b"PK\x03\x04", ForeignFile::Zip),
            (b"PK\x05\x06", ForeignFile::Zip),
            (b"7z\xbc\xaf\x27\x1c", ForeignFile::SevenZip),
            (b"BC\xc0\xde", ForeignFile::Bitcode),
            (&[0xde, 0xc0, 0x17, 0x0b], ForeignFile::Bitcode),
            (b"CTXP", ForeignFile::ContextualProfile),
            (&[0xef, 0xbb, 0xbf], ForeignFile::Utf8Mark),
            (&[0xff, 0xfe], ForeignFile::Utf16),
            (&[0xfe, 0xff], ForeignFile::Utf16),
        ];
        if let Some(&(_, kind)) = MAGICS.iter().find(|(magic, _)| data.starts_with(magic)) {
            return Some(kind);
        }
        // In a bzip2 file, the compression level and the digits of pi follow the magic number "BZh". The digits are
        // checked, because a text could also begin with the magic number.
        if data.starts_with(b"BZh")
            && data.get(4..10) == Some(&[0x31, 0x41, 0x59, 0x26, 0x53, 0x59])
        {
            return Some(ForeignFile::Bzip2);
        }
        // The magic number of tar is in the first header, after the name, owner, size and times.
        if data.get(257..262) == Some(b"ustar") {
            return Some(ForeignFile::Tar);
        }
        // Bytes 16 and 17 of an ELF file are its type (the field e_type), in either byte order. The number 4 means a
        // core file (ET_CORE).
        if data.starts_with(b"\x7fELF") && matches!(data.get(16..18), Some([4, 0] | [0, 4])) {
            return Some(ForeignFile::CoreDump);
        }
        has_changed_line_endings(data).then_some(ForeignFile::ChangedLineEndings)
    }

    /// Returns the kind of a text that is not a profile; `None` if the text may be a profile.
    pub(crate) fn of_text(data: &[u8]) -> Option<Self> {
        let text = data.trim_ascii_start();
        let line = text.split(|&byte| byte == b'\n').next()?.trim_ascii_end();
        let begins = |prefix: &[u8]| {
            line.get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        if begins(b"version https://git-lfs") {
            return Some(ForeignFile::GitLfsPointer);
        }
        if begins(b"<!doctype html") || begins(b"<html") {
            return Some(ForeignFile::Html);
        }
        if begins(b"<?xml") {
            return Some(ForeignFile::Xml);
        }
        if is_json(text) {
            return Some(ForeignFile::Json);
        }
        let names_a_source = memchr::memmem::find(&text[..text.len().min(400)], b"\nSF:").is_some();
        if line.starts_with(b"SF:/") || line.starts_with(b"TN:") && names_a_source {
            return Some(ForeignFile::Lcov);
        }
        if line == b"---"
            && memchr::memmem::find(&text[..text.len().min(400)], b"profile-version:").is_some()
        {
            return Some(ForeignFile::BoltYaml);
        }
        if line == b"boltedcollection" || line.starts_with(b"no_lbr") || is_branch_of_bolt(line) {
            return Some(ForeignFile::BoltData);
        }
        let ends = |end: &[u8]| line.len() > end.len() && line.ends_with(end);
        let is_path = [
            &b".profraw"[..],
            b".profdata",
            b".proftext",
            b".memprofraw",
            b".afdo",
        ];
        is_path
            .iter()
            .any(|end| ends(end))
            .then_some(ForeignFile::ProfileList)
    }
}

/// Whether the data are an indexed or raw profile of version 10 in which every line feed became a carriage return and a
/// line feed. Only version 10 can be recognised: its version number is stored as the byte 0x0a, which is a line feed,
/// so the conversion changes the version number to 0x0a0d (2573).
fn has_changed_line_endings(data: &[u8]) -> bool {
    let Some((head, rest)) = data.split_first_chunk::<8>() else {
        return false;
    };
    let (little, big) = (u64::from_le_bytes(*head), u64::from_be_bytes(*head));
    let is_profile = little == indexed::MAGIC
        || [raw::MAGIC_64, raw::MAGIC_32]
            .iter()
            .any(|&magic| little == magic || big == magic);
    is_profile && (rest.starts_with(b"\r\n") || rest.starts_with(b"\0\0\0\0\0\0\0\r\n"))
}

/// Whether a text is JSON. JSON begins with a brace or a bracket, and only certain characters may follow. A function
/// name in a text profile may also begin with a brace or a bracket, but a line feed follows the name.
fn is_json(text: &[u8]) -> bool {
    let Some((first, rest)) = text.split_first() else {
        return false;
    };
    let next = rest.trim_ascii_start().first();
    match first {
        b'{' => matches!(next, Some(b'"' | b'}')),
        b'[' => matches!(next, Some(b'{' | b'[' | b'"' | b']' | b'0'..=b'9' | b'-')),
        _ => false,
    }
}

/// Whether a line is a branch as perf2bolt writes it. Such a line has eight fields: the kind, name and offset of the
/// source; the kind, name and offset of the target; the number of mispredictions; and the count.
fn is_branch_of_bolt(line: &[u8]) -> bool {
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let [from_kind, _, from, to_kind, _, to, missed, count] = words[..] else {
        return false;
    };
    let kind = |word: &[u8]| matches!(word, b"0" | b"1" | b"2");
    let all = |word: &[u8], test: fn(&u8) -> bool| !word.is_empty() && word.iter().all(test);
    kind(from_kind)
        && kind(to_kind)
        && all(from, u8::is_ascii_hexdigit)
        && all(to, u8::is_ascii_hexdigit)
        && all(missed, u8::is_ascii_digit)
        && all(count, u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use crate::detect::{FileKind, detect};

    use super::*;

    fn of(data: &[u8]) -> Option<ForeignFile> {
        match detect(data) {
            FileKind::Foreign(kind) => Some(kind),
            _ => None,
        }
    }

    #[test]
    fn every_foreign_kind_is_known_by_its_content() {
        let mut tar = [0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let mut core = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0";
        for (data, kind) in [
            (&b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..], ForeignFile::Gzip),
            (b"\x28\xb5\x2f\xfd\x04\0\0\0\0\0", ForeignFile::Zstd),
            (b"\xfd7zXZ\0\0\x04\xe6\xd6", ForeignFile::Xz),
            (b"BZh91AY&SY\0\0", ForeignFile::Bzip2),
            (b"\x04\x22\x4d\x18\x60\x40\x82", ForeignFile::Lz4),
            (b"PK\x03\x04\x14\0\0\0", ForeignFile::Zip),
            (&tar, ForeignFile::Tar),
            (b"7z\xbc\xaf\x27\x1c\0\x04", ForeignFile::SevenZip),
            (b"BC\xc0\xde\x35\x14\0\0", ForeignFile::Bitcode),
            (b"CTXP\x01\x0c\0\0", ForeignFile::ContextualProfile),
            (b"TN:\nSF:/src/a.c\nDA:1,2\n", ForeignFile::Lcov),
            (b"1 main 2f 1 work 0 0 1024\n", ForeignFile::BoltData),
            (b"boltedcollection\n", ForeignFile::BoltData),
            (
                b"---\nheader:\n  profile-version: 1\n",
                ForeignFile::BoltYaml,
            ),
            (b"{\"data\": []}", ForeignFile::Json),
            (b"[\n  {\"a\": 1}]", ForeignFile::Json),
            (b"<!DOCTYPE html>\n<html>", ForeignFile::Html),
            (b"<?xml version=\"1.0\"?>\n<coverage/>", ForeignFile::Xml),
            (&core, ForeignFile::CoreDump),
            (b"out/a.profraw\nout/b.profraw\n", ForeignFile::ProfileList),
            (
                b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
                ForeignFile::GitLfsPointer,
            ),
            (
                b"\x81rforpl\xff\r\n\0\0\0\0\0\0\0",
                ForeignFile::ChangedLineEndings,
            ),
            (
                b"\xfflprofr\x81\0\0\0\0\0\0\0\r\n",
                ForeignFile::ChangedLineEndings,
            ),
            (
                b"\xfflprofi\x81\r\n\0\0\0\0\0\0\0",
                ForeignFile::ChangedLineEndings,
            ),
            (b"\xff\xfem\0a\0i\0n\0", ForeignFile::Utf16),
            (b"\xef\xbb\xbfmain\n1\n1\n1\n", ForeignFile::Utf8Mark),
        ] {
            assert_eq!(of(data), Some(kind), "{}", kind.description());
        }
        core[16] = 3;
        assert_eq!(detect(&core), FileKind::ObjectFile);
    }

    #[test]
    fn profiles_are_not_taken_for_something_else() {
        for data in [
            &b"main\n1\n1\n5\n"[..],
            b"# a comment\n:ir\nmain\n1\n1\n5\n",
            b"{lambda}\n1\n1\n5\n",
            b"[abi:cxx11]\n1\n1\n5\n",
            b"TN::run\n1\n1\n5\n",
            b"1\n1\n1\n5\n",
            b"\x81rforpl\xff\x0a\0\0\0\0\0\0\0",
        ] {
            assert_eq!(of(data), None, "{}", String::from_utf8_lossy(data));
        }
    }
}
