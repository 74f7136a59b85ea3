//! Commands that another program calls in its own process.
use profkit_cli::{Answer, Call, Cause, call};
use profkit_merge::Weight;
use profkit_merge::files::{GivenInput, InputSource};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn called(words: &[&str], inputs: Vec<GivenInput>, cancelled: bool) -> Answer {
    call(Call {
        args: words.iter().map(Into::into).collect(),
        inputs,
        cancel: Arc::new(AtomicBool::new(cancelled)),
    })
}

fn given(source: InputSource, missing_ok: bool) -> GivenInput {
    GivenInput {
        source,
        weight: Weight::integer(3),
        id: Some("id".to_owned()),
        missing_ok,
    }
}

fn memory(bytes: &'static [u8]) -> InputSource {
    InputSource::Memory {
        name: "monday".to_owned(),
        bytes: Box::new(bytes),
    }
}

const TEXT: &[u8] = b":ir\nmain\n1234\n1\n90\n";

#[test]
fn a_merge_in_memory_has_its_output_and_report_as_values() {
    let inputs = vec![given(memory(TEXT), false)];
    let answer = called(&["merge", "--text", "-o", "-"], inputs, false);
    let text = String::from_utf8(answer.output).unwrap();
    assert!(text.contains("\n270\n"), "{text}");
    assert_eq!(answer.code, 0);
    assert!(
        answer.messages.contains("1 function"),
        "{}",
        answer.messages
    );
    let report = String::from_utf8(answer.report.unwrap()).unwrap();
    assert!(report.contains("\"files_kept\":1"), "{report}");
}

#[test]
fn failures_say_what_they_are() {
    let missing = InputSource::Path("there/is/no/file".into());
    let answer = called(&["merge", "-o", "-"], vec![given(missing, false)], false);
    assert!(matches!(answer.cause(), Some(Cause::System(..))));
    let missing = InputSource::Path("there/is/no/file".into());
    let inputs = vec![given(missing, true), given(memory(TEXT), true)];
    let answer = called(&["merge", "-o", "-"], inputs, false);
    let report = String::from_utf8(answer.report.unwrap()).unwrap();
    assert!(report.contains("unreadable"), "{report}");

    let answer = called(&["show", "Cargo.toml"], Vec::new(), false);
    assert!(matches!(answer.cause(), Some(Cause::Data(name, _)) if name == "Cargo.toml"));
    assert!(answer.output.is_empty() && answer.messages.is_empty());

    let answer = called(
        &["merge", "-o", "-"],
        vec![given(memory(TEXT), false)],
        true,
    );
    assert!(matches!(answer.cause(), Some(Cause::Merge(_))));
    // The next call on this thread knows nothing of this one.
    assert_eq!(called(&["merge", "-o", "-"], Vec::new(), false).code, 2);
}

#[test]
fn commands_that_belong_to_a_process_cannot_be_called() {
    for words in [
        &["mip", "cc", "--", "cc"][..],
        &["llvm-profdata"],
        &["--help"],
        &["nothing"],
    ] {
        let answer = called(words, Vec::new(), false);
        assert_eq!(answer.code, 2, "{words:?}");
        assert!(answer.failure.is_some() && answer.output.is_empty());
    }
}
