//! Compares the table of releases with the installed tools.
use profkit_data::releases::Release;
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
        let llvm = require_or_skip!(writer);
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
