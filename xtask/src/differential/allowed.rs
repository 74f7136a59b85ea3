//! The differences that are allowed, each with its reason. docs/formats/llvm-profdata.md has the same rows for readers.
use anyhow::Result;
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::sample::{SampleEncoding, encoding};

use super::cases::{Case, Input};
use super::run::{Ran, Tools, ran};

/// Returns why a difference is allowed, or `None` if it is not.
///
/// # Errors
/// If a tool cannot be started.
pub fn reason(
    tools: &Tools,
    case: &Case,
    theirs: &Ran,
    ours: &Ran,
) -> Result<Option<&'static str>> {
    if theirs.code.is_none() {
        // LLVM's tool was ended by a signal. profkit must have done something sensible instead.
        let sensible = ours.code == Some(0) || ours.code == Some(1) && !ours.stderr.is_empty();
        return Ok(sensible
            .then_some("LLVM's tool crashes, profkit fails with a message or reads the file"));
    }
    if theirs.code != Some(0) && theirs.code == ours.code {
        // What LLVM's tool left of the output, and what it lost of its buffer.
        let (mut one, mut two) = (theirs.clone(), ours.clone());
        one.files.clear();
        two.files.clear();
        if two.stdout.starts_with(&one.stdout) {
            one.stdout.clone_from(&two.stdout);
        }
        if one == two {
            return Ok(Some(
                "a failed command: outputs stay as they were, and what was shown before stays",
            ));
        }
    }
    let unrecognized = b"Unrecognized sample profile encoding format";
    if case.inputs.iter().any(is_compact) && contains(&theirs.stderr, unrecognized) {
        return Ok(Some("compact binary sample profiles are read"));
    }
    if case.inputs.iter().any(is_llvm_13_contexts)
        && contains(&theirs.stderr, b"Truncated function name table")
    {
        return Ok(Some(
            "extensible binary files with contexts of LLVM 13 are read",
        ));
    }
    let has_heap = |input: &Input| {
        IndexedProfile::parse(&input.bytes).is_ok_and(|profile| profile.memprof().is_some())
    };
    if case.command == "merge" && case.inputs.iter().any(has_heap) && theirs.stderr == ours.stderr {
        return Ok(Some("the heap profile of an indexed file is kept"));
    }
    let is_sample = case.has("sample");
    let orders =
        is_sample && (case.command == "overlap" || case.has("hot-func-list") || case.has("topn"));
    if orders
        && theirs.code == ours.code
        && sorted(&theirs.stdout) == sorted(&ours.stdout)
        && theirs.stderr == ours.stderr
    {
        return Ok(Some(
            "functions of equal weight have the order of a hash table in LLVM's tool",
        ));
    }
    if is_sample && case.command == "merge" && same_meaning(tools, theirs, ours)? {
        return Ok(Some(
            "metadata of the extensible binary encoding have the order of a hash table in LLVM's tool",
        ));
    }
    Ok(None)
}

/// Whether an input has the compact binary encoding, damaged or not.
fn is_compact(input: &Input) -> bool {
    encoding(&input.bytes) == Some(SampleEncoding::CompactBinary)
}

/// Whether an input is one of the fixtures that LLVM 13 wrote from a profile with contexts.
fn is_llvm_13_contexts(input: &Input) -> bool {
    input.origin.starts_with("llvm-13-contexts-ext")
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn sorted(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// Whether both outputs have one length, and LLVM's tool reads the same from them.
fn same_meaning(tools: &Tools, theirs: &Ran, ours: &Ran) -> Result<bool> {
    let (one, two) = match (theirs.files.get("out"), ours.files.get("out")) {
        (Some(one), Some(two)) => (one, two),
        (None, None) => (&theirs.stdout, &ours.stdout),
        _ => return Ok(false),
    };
    let without = |ran: &Ran| (ran.code, ran.stderr.clone());
    if one.len() != two.len() || without(theirs) != without(ours) {
        return Ok(false);
    }
    for options in [
        &["-sample", "-text"][..],
        &["-sample", "-show-sec-info-only"],
    ] {
        let read = |bytes: &[u8]| {
            let input = Input {
                name: "in".to_owned(),
                bytes: bytes.to_vec(),
                origin: String::new(),
            };
            let command = if options.contains(&"-text") {
                "merge"
            } else {
                "show"
            };
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            ran(
                &tools.llvm,
                &Case {
                    command,
                    options,
                    inputs: vec![input],
                },
            )
        };
        if read(one)? != read(two)? {
            return Ok(false);
        }
    }
    Ok(true)
}
