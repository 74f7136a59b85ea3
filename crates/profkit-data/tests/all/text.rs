//! Compares the text format with llvm-profdata: real profiles of every mode and release, and features that only
//! hand-written text has.
use profkit_data::instr::text::{TextOptions, TextReader};
use profkit_data::instr::{InstrProfile, InstrSource, Record};
use profkit_testkit::matrix::{self, Compiler, Unavailable};
use profkit_testkit::{Llvm, require_or_skip, skip, succeed};
use std::path::Path;
use std::process::Command;

fn llvm_text(llvm: &Llvm, inputs: &[&Path]) -> Vec<u8> {
    let mut merge = Command::new(llvm.profdata());
    merge.args(["merge", "--text", "-o", "-"]).args(inputs);
    let output = succeed(&mut merge);
    output.stdout
}

fn through_profkit(text: &[u8]) -> Vec<u8> {
    let profile = InstrProfile::read(&mut TextReader::parse(text).unwrap()).unwrap();
    let mut out = Vec::new();
    profkit_data::instr::text::write(&profile, &TextOptions::default(), &mut out).unwrap();
    out
}

#[test]
fn real_profiles_of_every_mode_and_release_come_out_as_llvm_22_writes_them() {
    let reference = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for set in matrix::sets() {
        let Compiler::Clang(release) = set.compiler else {
            continue;
        };
        let built = match set.build() {
            Ok(built) => built,
            Err(Unavailable::NotInstalled(what)) => {
                skip(&format!("{what} is not installed"));
                continue;
            }
            Err(Unavailable::Lacks(_)) => continue,
        };
        let own = require_or_skip!(release, continue);
        let raws: Vec<_> = built.raws.iter().map(AsRef::as_ref).collect();
        let text = llvm_text(&own, &raws);
        let file = folder.path().join("own.proftext");
        std::fs::write(&file, &text).unwrap();
        let expected = llvm_text(&reference, &[&file]);
        let ours = through_profkit(&text);
        assert!(
            ours == expected,
            "{set}: ours and LLVM 22's text differ:\n{}\n---\n{}",
            String::from_utf8_lossy(&ours),
            String::from_utf8_lossy(&expected)
        );
        assert!(ours == text, "{set}: LLVM {release}'s own text differs");
        compared += 1;
    }
    eprintln!("{compared} sets compared");
}

#[test]
fn text_by_hand_comes_out_as_llvm_22_writes_it() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.proftext");
    for text in [
        "",
        "#\n",
        ":fe\nm\n1\n1\n1\n",
        ":Ir\n:fe\n:entry_first\nm\n010\n1\n1\n",
        ":csir\n:entry_first\n:not_entry_first\n:instrument_loop_entries\nm\n0x1F\n1\n1\n",
        ":single_byte_coverage\nm\n0b11\n1\n1\n",
        ":temporal_prof_traces\n3\n0x3\n1\n m ,, \tn,unknown\n2\nn\n010\nm\nm\n1\n1\n1\n\nn\n1\n1\n1\n",
        ":temporal_prof_traces\n0\n0\nm\n1\n1\n1\n",
        "m\r\n1\r\n2\r\n# c\r\n0\r\n\r\n18446744073709551615\r\n",
        "m\n1\n1\n18446744073709551614\n",
        "m\n1\n1\n1\n$ 0x3\n0\n0x0f\n0377\n",
        "m\n1\n1\n1\n3\n0\n1\n3\nm:5\n** External Symbol **:4\nelsewhere:3\n1\n2\n1\n513:9\n0\n2\n1\n1\nm:1\n",
        "m\n1\n1\n1\n2\n2\n1\n0\n0\n1\n1\nm:2\n",
        "b\n1\n1\n1\n4294967296\n2\n1\n5\n",
        "aaaaaaaa\n1\n1\n1\né \u{1f980}\n1\n1\n1\n",
    ] {
        std::fs::write(&file, text).unwrap();
        let ours = through_profkit(text.as_bytes());
        // LLVM takes an empty file for an empty raw profile and writes nothing.
        let expected = llvm_text(&llvm, &[&file]);
        assert_eq!(
            String::from_utf8_lossy(&ours),
            String::from_utf8_lossy(&expected),
            "{text:?}"
        );
    }
}

/// Reading bad text must give an error whose kind and detail text together are the message that LLVM 22 prints.
#[test]
fn bad_text_is_refused_as_llvm_22_refuses_it() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.proftext");
    for text in [
        ":ir \nm\n1\n1\n1\n",
        ":\nm\n1\n1\n1\n",
        ":temporal_prof_traces\n",
        ":temporal_prof_traces\n1\n",
        ":temporal_prof_traces\n1\n1\n1\n",
        ":temporal_prof_traces\nx\n1\n",
        ":temporal_prof_traces\n4294967296\n1\n",
        "main\n",
        "main\n 1\n1\n1\n",
        "main\n08\n1\n1\n",
        "main\n0O7\n1\n1\n",
        "main\n1\n",
        "main\n1\n0x1\n1\n",
        "main\n1\n-1\n1\n",
        "main\n1\n0\n",
        "main\n1\n2\n1\n",
        "main\n1\n2\n1\n1 \n",
        "main\n1\n1\n18446744073709551616\n",
        "main\n1\n1\n1\n$\n",
        "main\n1\n1\n1\n$1\n256\n",
        "main\n1\n1\n1\n$2\n1\n",
        "main\n1\n1\n1\n0\n",
        "main\n1\n1\n1\n4\n",
        "main\n1\n1\n1\n1\n",
        "main\n1\n1\n1\n1\n3\n",
        "main\n1\n1\n1\n1\n0\nx\n",
        "main\n1\n1\n1\n1\n0\n4294967296\n",
        "main\n1\n1\n1\n1\n0\n1\n",
        "main\n1\n1\n1\n1\n0\n1\n1\n",
        "main\n1\n1\n1\n1\n0\n1\n1\nabc\n",
        "main\n1\n1\n1\n1\n0\n1\n1\n:5\n",
        "main\n1\n1\n1\n1\n0\n1\n1\n:x\n",
        "main\n1\n1\n1\n1\n0\n1\n1\nm:\n",
        "main\n1\n1\n1\n1\n1\n1\n1\n0x5:6\n",
        "main\n1\n1\n1\r",
        "  \nmain\n1\n1\n1\n",
    ] {
        std::fs::write(&file, text).unwrap();
        let mut merge = Command::new(llvm.profdata());
        let merge = merge.args(["merge", "--text"]).arg(&file).output().unwrap();
        assert!(!merge.status.success(), "{text:?}");
        let stderr = String::from_utf8(merge.stderr).unwrap();
        let expected = stderr.lines().next().unwrap();
        let expected = expected.split(".proftext: ").nth(1).unwrap();

        let read_all = || {
            let mut reader = TextReader::parse(text.as_bytes())?;
            let mut record = Record::default();
            while reader.read_record(&mut record)? {}
            Ok(())
        };
        let error: profkit_data::Error = read_all().unwrap_err();
        let kind = match error.kind() {
            profkit_data::ErrorKind::EndOfFile => "end of File",
            profkit_data::ErrorKind::BadHeader => {
                "invalid instrumentation profile data (file header is corrupt)"
            }
            profkit_data::ErrorKind::Truncated => "truncated profile data",
            profkit_data::ErrorKind::Malformed => "malformed instrumentation profile data",
            kind => panic!("{kind:?} for {text:?}"),
        };
        let ours = match error.detail_for_llvm() {
            Some(detail) => format!("{kind}: {detail}"),
            None => kind.to_owned(),
        };
        assert_eq!(ours, expected, "{text:?}");
    }
}
