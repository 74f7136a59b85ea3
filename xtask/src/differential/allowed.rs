//! The differences that are allowed, each with its reason. docs/formats/llvm-profdata.md has the same rows for readers.
use anyhow::Result;
use profkit_data::ErrorKind;
use profkit_data::detect::{FileKind, detect, is_text};
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::instr::raw::RawReader;
use profkit_data::instr::{InstrSource, Record};
use profkit_data::sample::ext_binary::ExtBinaryProfile;
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
        return Ok(crash(case, ours));
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
    if is_sample
        && same_but_order(&theirs.stderr, &ours.stderr)
        && without_stderr(theirs) == without_stderr(ours)
    {
        return Ok(Some(
            "messages about several functions of a file have the order of a hash table in LLVM's tool",
        ));
    }
    if remove(&theirs.stderr, FIXED_LENGTH) == ours.stderr
        && !theirs.stderr.is_empty()
        && without_stderr(theirs) == without_stderr(ours)
    {
        return Ok(Some(
            "LLVM's tool prints a debugging aid about fixed-length hashes",
        ));
    }
    for (reason, same) in [
        (MISREAD, misread as Explained),
        (KINDS, kinds_left_over),
        (TIES, ties_at_the_cut),
        (ONE_FUNCTION, damage_elsewhere),
        (UNREADABLE, writes_what_nobody_reads),
    ] {
        if same(tools, case, theirs, ours)? {
            return Ok(Some(reason));
        }
    }
    let has_wrong_hashes = case.inputs.iter().any(has_wrong_hashes);
    if has_wrong_hashes && theirs.code == Some(0) && ours.code == Some(0) {
        return Ok(Some(
            "stored hashes of an indexed file are wrong, and LLVM's tool calculates them anew",
        ));
    }
    let refuses = |input: &Input| lies_about_places(input) && names(&ours.stderr, input);
    if case.inputs.iter().any(refuses) {
        return Ok(Some(PLACES));
    }
    Ok(None)
}

const FIXED_LENGTH: &[u8] = b"If FixedLengthMD5 is true, UseMD5 has to be true";
const MISREAD: &str =
    "text that LLVM's tool reads up to a zero byte, or as if characters were missing or different";
const KINDS: &str = "LLVM's tool merges profiles of two kinds in this order only";
const TIES: &str = "which of several equal functions are among the first is decided by a hash table in LLVM's tool";
const ONE_FUNCTION: &str = "show --sample --function reads that function only";
const UNREADABLE: &str =
    "--split-layout of a profile with contexts: LLVM's tool writes a file that it cannot read";
const PLACES: &str = "a file that lies about places and sizes is refused; LLVM's tool reads on";

/// Finds out by further runs whether a reason explains a difference.
type Explained = fn(&Tools, &Case, &Ran, &Ran) -> Result<bool>;

/// The reason why LLVM's tool may crash, if profkit did something sensible instead.
fn crash(case: &Case, ours: &Ran) -> Option<&'static str> {
    let is_sensible = ours.code == Some(0) || ours.code == Some(1) && !ours.stderr.is_empty();
    let damaged = |input: &Input| input.origin.ends_with(", damaged");
    let is = |kinds: &[FileKind]| {
        let mut inputs = case.inputs.iter().filter(|input| damaged(input));
        inputs.any(|input| kinds.contains(&detect(&input.bytes)))
    };
    let reason = match case.command {
        _ if !is_sensible => return None,
        _ if is(&[FileKind::InstrIndexed]) => "LLVM's tool crashes on a damaged indexed file",
        _ if is(&[FileKind::InstrRaw]) => "LLVM's tool crashes on a damaged raw file",
        _ if is(&[
            FileKind::SampleExtBinary,
            FileKind::SampleBinary,
            FileKind::SampleGcov,
        ]) =>
        {
            "LLVM's tool crashes on a damaged binary sample file"
        }
        _ if case
            .inputs
            .iter()
            .any(|input| damaged(input) && is_text(&input.bytes)) =>
        {
            "LLVM's tool crashes on a damaged text"
        }
        "show" if case.has("show-prof-sym-list") => "LLVM's tool crashes without a list of symbols",
        "merge" if case.has("sample-merge-cold-context") => {
            "LLVM's tool crashes when it merges cold contexts of a profile without contexts"
        }
        "merge" if case.has("output-size-limit") => {
            "LLVM's tool crashes when no function fits the size"
        }
        _ if case
            .inputs
            .iter()
            .any(|input| input.origin.starts_with("sample-nametable-after-samples")) =>
        {
            "LLVM's tool crashes when the name table follows the samples"
        }
        _ if case.has("hot-func-list") || case.has("topn") || case.command == "order" => {
            "LLVM's tool reads names from freed memory"
        }
        _ => return None,
    };
    Some(reason)
}

/// Whether the tools agree on a case, or differ for a reason.
fn agree(tools: &Tools, case: &Case) -> Result<Option<(Ran, Ran)>> {
    let (theirs, ours) = tools.both(case)?;
    let agree = theirs == ours || reason(tools, case, &theirs, &ours)?.is_some();
    Ok(agree.then_some((theirs, ours)))
}

/// Whether LLVM's tool reads the texts as if they were written differently, and the tools agree on the texts written so.
/// Texts are first only cut, because error messages show their lines.
fn misread(tools: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<bool> {
    for cut_only in [true, false] {
        let mut plain = case.clone();
        for input in &mut plain.inputs {
            let rewrites = case.has("sample") && !cut_only;
            if let Some(bytes) = as_llvm_reads(&input.bytes, rewrites) {
                input.bytes = bytes;
            }
        }
        let mut inputs = plain.inputs.iter().zip(&case.inputs);
        if inputs.all(|(one, two)| one.bytes == two.bytes) {
            continue;
        }
        if agree(tools, &plain)?.is_some_and(|(same, _)| same == *theirs) {
            return Ok(true);
        }
    }
    // LLVM's tool takes parts of a calling context that are no numbers for 0.
    let refused = b"Expected 'mangled_name:NUM:NUM', found [";
    Ok(case.has("sample") && contains(&ours.stderr, refused) && !contains(&theirs.stderr, refused))
}

/// Returns the text that LLVM's readers see: it ends at the first zero byte. In sample profiles a number alone is the
/// head of a function (its name, its total and its entries), `A:B` has the name `A:B`, the character after the first
/// colon of an indented line is skipped, whatever it is, and a line number alone is also its count.
fn as_llvm_reads(bytes: &[u8], rewrites: bool) -> Option<Vec<u8>> {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let head = bytes.iter().take(8).take_while(|&&byte| byte != 0);
    if !is_text(bytes.first()?) || !head.clone().all(is_text) {
        return None;
    }
    let end = bytes.iter().position(|&byte| byte == 0);
    let text = bytes.get(..end.unwrap_or(bytes.len()))?;
    if !rewrites {
        return Some(text.to_vec());
    }
    let lines = text.split(|&byte| byte == b'\n').map(|line| {
        let number = |part: &&[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        let parts: Vec<&[u8]> = line.split(|&byte| byte == b':').collect();
        match parts.as_slice() {
            [one] if number(one) => [one, b":".as_slice(), one, b":", one].concat(),
            [[b' ', one @ ..]] if number(&one) => [line, b":", line].concat(),
            [one, two] if number(one) && number(two) => [line, b":", line].concat(),
            _ if line.starts_with(b" ") => {
                let mut line = line.to_vec();
                let colon = line.iter().position(|&byte| byte == b':');
                if let Some(byte) = colon.and_then(|at| line.get_mut(at + 1)) {
                    *byte = b' ';
                }
                line
            }
            _ => line.to_vec(),
        }
    });
    Some(lines.collect::<Vec<_>>().join(&b'\n'))
}

/// Whether profkit refuses to merge profiles of two kinds, and LLVM's tool refuses two of the inputs in reverse order.
fn kinds_left_over(tools: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<bool> {
    let refusals: [&[u8]; 2] = [
        b"error: cannot merge probe-based profile with non-probe-based profile",
        b"error: cannot merge CS profile with non-CS profile",
    ];
    let refused = |ran: &Ran| refusals.iter().any(|text| contains(&ran.stderr, text));
    if case.command != "merge" || !refused(ours) || refused(theirs) {
        return Ok(false);
    }
    for (index, later) in case.inputs.iter().enumerate() {
        for earlier in &case.inputs[..index] {
            let reversed = Case {
                inputs: vec![later.clone(), earlier.clone()],
                ..case.clone()
            };
            if refused(&ran(&tools.llvm, &reversed)?) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether the tools agree if all functions are listed instead of the first ones.
fn ties_at_the_cut(tools: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<bool> {
    let lines = |ran: &Ran| ran.stdout.iter().filter(|&&byte| byte == b'\n').count();
    if !case.has("sample") || !case.has("topn") || lines(theirs) != lines(ours) {
        return Ok(false);
    }
    let mut all = case.clone();
    for option in &mut all.options {
        if option.contains("topn") {
            "-topn=1000000".clone_into(option);
        }
    }
    Ok(all.options != case.options && agree(tools, &all)?.is_some())
}

/// Whether LLVM's tool reports damage that profkit also reports if all functions are shown.
fn damage_elsewhere(tools: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<bool> {
    if !case.has("sample")
        || !case.has("function")
        || theirs.code != Some(1)
        || ours.code != Some(0)
    {
        return Ok(false);
    }
    let mut all = case.clone();
    all.options
        .retain(|option| !option.trim_start_matches('-').starts_with("function="));
    Ok(agree(tools, &all)?.is_some_and(|(same, _)| same.stderr == theirs.stderr))
}

/// Whether profkit refuses to lay out a profile with contexts in two parts, and LLVM's tool cannot read what it wrote.
fn writes_what_nobody_reads(tools: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<bool> {
    let refused = contains(
        &ours.stderr,
        b"Profile encoding format unsupported for writing operations",
    );
    if !case.has("split-layout") || !refused || theirs.code != Some(0) {
        return Ok(false);
    }
    let written = Input {
        name: "in".to_owned(),
        bytes: theirs.files.get("out").unwrap_or(&theirs.stdout).clone(),
        origin: String::new(),
    };
    let read = Case {
        command: "show",
        options: vec!["-sample".to_owned()],
        inputs: vec![written],
    };
    Ok(ran(&tools.llvm, &read)?.code != Some(0))
}

/// Whether the header or a table of an indexed or raw file states places or sizes that cannot be, or an extensible binary
/// sample file has a section beyond its end.
fn lies_about_places(input: &Input) -> bool {
    match detect(&input.bytes) {
        FileKind::InstrIndexed => match IndexedProfile::parse(&input.bytes) {
            Err(error) => error.kind() != ErrorKind::UnsupportedVersion,
            Ok(profile) => {
                let mut records = profile.records();
                let damage = loop {
                    match records.next_name() {
                        Ok(Some(_)) => {}
                        Ok(None) => break false,
                        Err(_) => break true,
                    }
                };
                damage || profile.binary_ids().is_err()
            }
        },
        FileKind::InstrRaw => RawReader::parse(&input.bytes).map_or(true, |mut reader| {
            let mut record = Record::default();
            while let Ok(true) = reader.read_record(&mut record) {}
            reader.read_record(&mut record).is_err()
        }),
        FileKind::SampleExtBinary => ExtBinaryProfile::parse(&input.bytes).is_ok_and(|file| {
            let length = input.bytes.len() as u64;
            let mut sections = file.sections().iter();
            sections.any(|section| section.offset.saturating_add(section.size) > length)
        }),
        _ => false,
    }
}

/// Whether an indexed file stores a hash that is not the hash of the name.
fn has_wrong_hashes(input: &Input) -> bool {
    let Ok(profile) = IndexedProfile::parse(&input.bytes) else {
        return false;
    };
    let mut records = profile.records();
    while let Ok(Some(name)) = records.next_name() {
        if name.name_ref() != NameRef::of(name.name()) {
            return true;
        }
    }
    false
}

/// Whether a message is about an input, or does not say about which.
fn names(stderr: &[u8], input: &Input) -> bool {
    contains(stderr, input.name.as_bytes())
        || contains(stderr, b"error in getting profile count sums")
}

fn remove(text: &[u8], part: &[u8]) -> Vec<u8> {
    let at = text.windows(part.len()).position(|window| window == part);
    at.map_or_else(Vec::new, |at| {
        [&text[..at], &text[at + part.len()..]].concat()
    })
}

fn same_but_order(one: &[u8], two: &[u8]) -> bool {
    let about_functions = [
        b": Counter overflow".as_slice(),
        b": Function hash mismatch",
    ];
    about_functions.iter().any(|text| contains(one, text)) && sorted(one) == sorted(two)
}

fn without_stderr(ran: &Ran) -> Ran {
    Ran {
        stderr: Vec::new(),
        ..ran.clone()
    }
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
