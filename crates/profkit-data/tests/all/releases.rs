//! Compares the table of releases with the installed tools.
use profkit_data::instr::text::{TextOptions, write};
use profkit_data::instr::{InstrProfile, InstrReader};
use profkit_data::releases::{Release, TextPart};
use profkit_testkit::matrix::{Compiler, Mode, Set};
use profkit_testkit::{Llvm, RELEASES, require_or_skip, skip, succeed};
use std::path::Path;
use std::process::{Command, Stdio};

fn word(file: &Path, index: usize) -> u64 {
    let data = std::fs::read(file).unwrap();
    u64::from_le_bytes(data[index * 8..][..8].try_into().unwrap())
}

fn reads(llvm: &Llvm, file: &Path) -> bool {
    let mut show = Command::new(llvm.profdata());
    show.arg("show").arg(file);
    let status = show.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.unwrap().success()
}

#[test]
fn indexed_versions_that_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("in.proftext");
    std::fs::write(&text, "main\n1\n1\n1\n").unwrap();
    for writer in RELEASES {
        let llvm = require_or_skip!(writer, continue);
        let file = folder.path().join(format!("{writer}.profdata"));
        let mut merge = Command::new(llvm.profdata());
        merge.arg("merge").arg(&text).arg("-o").arg(&file);
        succeed(&mut merge);
        let version = u32::try_from(word(&file, 1)).unwrap();
        let facts = |release: u32| {
            Release::new(u8::try_from(release).unwrap())
                .facts()
                .unwrap()
        };
        assert_eq!(version, facts(writer).indexed, "LLVM {writer}");
        for reader in Llvm::installed() {
            assert_eq!(
                reads(&reader, &file),
                facts(reader.release()).reads_indexed(version),
                "LLVM {} reading indexed version {version}",
                reader.release()
            );
        }
    }
}

#[test]
fn raw_versions_that_are_written_and_read() {
    for writer in RELEASES {
        let set = Set::new(Compiler::Clang(writer), Mode::Fe, "conditions");
        let raws = match set.build() {
            Ok(built) => built.raws,
            Err(reason) => {
                skip(&format!("{set}: {reason}"));
                continue;
            }
        };
        let version = u32::try_from(word(&raws[0], 1)).unwrap();
        let facts = |release: u32| {
            Release::new(u8::try_from(release).unwrap())
                .facts()
                .unwrap()
        };
        assert_eq!(version, facts(writer).raw, "LLVM {writer}");
        for reader in Llvm::installed() {
            assert_eq!(
                reads(&reader, &raws[0]),
                facts(reader.release()).reads_raw(version),
                "LLVM {} reading raw version {version}",
                reader.release()
            );
        }
    }
}

/// A text profile of IR instrumentation with this part.
fn text_with(part: TextPart) -> String {
    let (header, rest) = match part {
        TextPart::ContextSensitive => (":csir\n", ""),
        TextPart::EntryFirst => (":entry_first\n", ""),
        TextPart::Traces => (":temporal_prof_traces\n1\n1\n1\nmain,\n\n", ""),
        TextPart::SingleByteCoverage => (":single_byte_coverage\n", ""),
        TextPart::Bitmap => ("", "$1\n0x3\n"),
        TextPart::VTables => ("", "1\n2\n1\n1\n_ZTV1A:3\n"),
        TextPart::LoopEntries => (":instrument_loop_entries\n", ""),
        other => panic!("{other:?} has no text"),
    };
    format!(":ir\n{header}main\n1\n1\n1\n{rest}\n")
}

/// Each release reads the parts of text that the table names, and refuses the others; and what is written for it, it reads.
#[test]
fn parts_of_text_that_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.proftext");
    for release in RELEASES {
        let llvm = require_or_skip!(release, continue);
        for part in TextPart::ALL {
            let reads_text = |text: &[u8]| {
                std::fs::write(&file, text).unwrap();
                reads(&llvm, &file)
            };
            let text = text_with(part);
            let release = Release::new(u8::try_from(release).unwrap());
            assert_eq!(
                reads_text(text.as_bytes()),
                part.since() <= release,
                "LLVM {release} reading {part:?}"
            );
            let mut reader = InstrReader::open(text.as_bytes()).unwrap();
            let profile = InstrProfile::read(&mut reader).unwrap();
            let mut written = Vec::new();
            let losses = write(
                &profile,
                &TextOptions::new().for_llvm(release),
                &mut written,
            );
            let known = part.since() <= release;
            assert_eq!(
                losses.unwrap().is_empty(),
                known,
                "LLVM {release}, {part:?}"
            );
            assert!(reads_text(&written), "LLVM {release}, {part:?}");
        }
    }
}
