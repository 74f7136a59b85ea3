//! The differences that are allowed, each with its reason. docs/formats/llvm-profdata.md lists the same reasons for
//! readers.
mod damage;

use anyhow::Result;
use profkit_abi::sample::{flag, section};
use profkit_data::detect::{FileKind, detect, is_text};
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::instr::raw::RawReader;
use profkit_data::instr::{InstrSource, Record};
use profkit_data::sample::ext_binary::ExtBinaryProfile;
use profkit_data::sample::{SampleEncoding, encoding};

use damage::{
    begins_with_dollar, empty_name_beyond_the_end, ends_in_call_site, flag_of_no_heap,
    has_wide_delta, lies_about_places, makes_up_functions, stored_hashes,
    with_and_without_contexts,
};

use super::cases::{Case, Input};
use super::run::{Ran, Tools, ran};

/// Returns the reason why a difference is allowed, or `None` if the difference is not allowed.
///
/// # Errors
/// If a tool cannot be started.
pub fn reason(
    tools: &Tools,
    case: &Case,
    theirs: &Ran,
    ours: &Ran,
) -> Result<Option<&'static str>> {
    let plain = Ran {
        stderr: without_aids(case, &theirs.stderr),
        ..theirs.clone()
    };
    if plain.stderr != theirs.stderr {
        let is_allowed = plain == *ours || reason(tools, case, &plain, ours)?.is_some();
        return Ok(is_allowed.then_some(AIDS));
    }
    if let Some(plain) = without_split_warning(tools, case, ours)?
        && plain == *theirs
    {
        return Ok(Some(UNREADABLE));
    }
    if theirs.code.is_none() {
        return crash(tools, case, theirs, ours);
    }
    if theirs.code != Some(0) && theirs.code == ours.code {
        // If LLVM's tool fails, it may leave a partial output file, and lose the end of its standard output. So the
        // files are not compared. Standard output is compared only up to the point where that of LLVM's tool ends.
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
    // LLVM 22 no longer knows the compact binary encoding. It may take a damaged file for a text.
    let as_text = |input: &Input| {
        let line = format!("error: {}:", input.name);
        is_compact(input)
            && contains(&theirs.stderr, line.as_bytes())
            && contains(&theirs.stderr, b"Expected '")
    };
    if case.inputs.iter().any(is_compact) && contains(&theirs.stderr, unrecognized)
        || case.inputs.iter().any(as_text)
    {
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
    if is_sample && case.command == "merge" && same_meaning(tools, case, theirs, ours)? {
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
    for (reason, same) in [
        (MISREAD, misread as Explained),
        (KINDS, kinds_left_over),
        (TIES, ties_at_the_cut),
        (ONE_FUNCTION, damage_elsewhere),
        (FREED, reads_freed_names),
        (FORMS, flat_names_and_hashes),
        (HASHES, stored_hashes),
        (FLAGS_LEFT, flags_left_over),
        (DOLLAR, begins_with_dollar),
        (MADE_UP, makes_up_functions),
        (NO_HEAP, flag_of_no_heap),
        (TWICE, with_and_without_contexts),
        (BEYOND, empty_name_beyond_the_end),
    ] {
        if same(tools, case, theirs, ours)? {
            return Ok(Some(reason));
        }
    }
    if is_sample
        && case.inputs.iter().any(ends_in_call_site)
        && without_output(theirs) == without_output(ours)
    {
        return Ok(Some(
            "LLVM's tool keeps contexts apart that differ in a call site of their last frame",
        ));
    }
    if case.inputs.iter().any(has_wide_delta) {
        return Ok(Some(PLACES));
    }
    let is_version_0 = |input: &Input| {
        detect(&input.bytes) == FileKind::InstrIndexed && input.bytes.get(8..15) == Some(&[0; 7])
    };
    let version_0 = |input: &Input| is_version_0(input) && names(&ours.stderr, input);
    if case.inputs.iter().any(version_0) {
        return Ok(Some(VERSION_0));
    }
    let refuses = |input: &Input| lies_about_places(input) && names(&ours.stderr, input);
    if case.inputs.iter().any(refuses) {
        return Ok(Some(PLACES));
    }
    Ok(None)
}

/// The reason why the debugging messages of LLVM's readers are an allowed difference.
const AIDS: &str =
    "LLVM's tool prints debugging aids about fixed-length hashes and the ends of GCC's files";
const MISREAD: &str = "text that LLVM's tool reads up to a zero byte";
const FORMS: &str =
    "of a name and its hash, a hash table in LLVM's tool decides which stays in the flat layout";
const HASHES: &str =
    "stored hashes of an indexed file are wrong, and LLVM's tool calculates them anew";
const FLAGS_LEFT: &str = "after an unreadable profile with contexts or probes, LLVM's tool writes the others as if they had some";
const DOLLAR: &str = "LLVM's tool takes a name that begins with $ for the number of bitmap bytes of the record before it";
const MADE_UP: &str =
    "LLVM's tool makes inlined functions of damaged metadata, which profkit refuses";
const NO_HEAP: &str =
    "a file older than heap profiles says that it has one, and LLVM's tool writes an empty one";
const TWICE: &str = "a text that has a function with and without the brackets of a context: LLVM's tool keeps it twice, and cannot read what it wrote";
const BEYOND: &str =
    "LLVM's tool looks for names beyond the end of a damaged indexed file, and finds an empty one";
const VERSION_0: &str = "LLVM's tool reads indexed files of version 0, which no release wrote";
const FREED: &str = "LLVM's tool reads names from freed memory";
const KINDS: &str = "LLVM's tool merges profiles of two kinds in this order only";
const TIES: &str = "which of several equal functions are among the first is decided by a hash table in LLVM's tool";
const ONE_FUNCTION: &str = "show --sample --function reads that function only";
const UNREADABLE: &str =
    "--split-layout of a profile with contexts: profkit warns that no tool can read the file";
const PLACES: &str = "a file that lies about places and sizes is refused; LLVM's tool reads on";

/// A function that finds out, by further runs, whether a reason explains a difference.
type Explained = fn(&Tools, &Case, &Ran, &Ran) -> Result<bool>;

/// Returns the reason why a crash of LLVM's tool is allowed. profkit must have succeeded, or failed with a message. A
/// damaged input is a reason only if it causes the crash.
fn crash(tools: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<Option<&'static str>> {
    let is_sensible = ours.code == Some(0) || ours.code == Some(1) && !ours.stderr.is_empty();
    if !is_sensible {
        return Ok(None);
    }
    for input in &case.inputs {
        if input.origin.ends_with(", damaged")
            && let Some(reason) = damage_that_crashes(input)
            && causes_crash(tools, case, input)?
        {
            return Ok(Some(reason));
        }
    }
    let begins_with = |name| {
        case.inputs
            .iter()
            .any(|input| input.origin.starts_with(name))
    };
    Ok(match case.command {
        "show" if case.has("show-prof-sym-list") => {
            Some("LLVM's tool crashes without a list of symbols")
        }
        "show" if case.has("hot-func-list") && theirs.stderr.starts_with(&ours.stderr) => {
            Some("LLVM's tool aborts with a stack dump if no cutoff is near 99 %")
        }
        "merge" if case.has("sample-merge-cold-context") => {
            Some("LLVM's tool crashes when it merges cold contexts of a profile without contexts")
        }
        "merge" if case.has("output-size-limit") => {
            Some("LLVM's tool crashes when no function fits the size")
        }
        _ if begins_with("sample-nametable-after-samples") => {
            Some("LLVM's tool crashes when the name table follows the samples")
        }
        _ if shows_names(case) && case.inputs.iter().any(has_several_profiles) => Some(FREED),
        _ => None,
    })
}

/// The reason why a damaged input of this kind may crash LLVM's tool.
fn damage_that_crashes(input: &Input) -> Option<&'static str> {
    match detect(&input.bytes) {
        FileKind::InstrIndexed => Some("LLVM's tool crashes on a damaged indexed file"),
        FileKind::InstrRaw => Some("LLVM's tool crashes on a damaged raw file"),
        FileKind::SampleExtBinary | FileKind::SampleBinary | FileKind::SampleGcov => {
            Some("LLVM's tool crashes on a damaged binary sample file")
        }
        _ if is_text(&input.bytes) => Some("LLVM's tool crashes on a damaged text"),
        _ => None,
    }
}

/// Whether an input causes a crash of LLVM's tool. This is so if the tool crashes on this input alone, when it shows
/// it, merges it or runs the case's command; or if the tool does not crash without this input.
fn causes_crash(tools: &Tools, case: &Case, input: &Input) -> Result<bool> {
    let kind = if case.has("sample") {
        vec!["-sample".to_owned()]
    } else {
        Vec::new()
    };
    let alone = |command, options| Case {
        command,
        options,
        inputs: vec![input.clone()],
    };
    for alone in [
        alone("show", kind.clone()),
        alone("merge", kind),
        alone(case.command, case.options.clone()),
    ] {
        if ran(&tools.llvm, &alone)?.code.is_none() {
            return Ok(true);
        }
    }
    // The command `overlap` takes two inputs, so the input is given twice.
    let mut twice = case.clone();
    twice.inputs = vec![input.clone(), input.clone()];
    "in-again".clone_into(&mut twice.inputs[1].name);
    if ran(&tools.llvm, &twice)?.code.is_none() {
        return Ok(true);
    }
    let mut without = case.clone();
    without.inputs.retain(|other| other.name != input.name);
    Ok(!without.inputs.is_empty() && ran(&tools.llvm, &without)?.code.is_some())
}

/// Whether a command line makes LLVM's tool look up and print function names after it has read the file.
fn shows_names(case: &Case) -> bool {
    let options = ["hot-func-list", "topn", "temporal-profile-traces"];
    case.command == "order" || options.iter().any(|option| case.has(option))
}

/// Whether an input is a raw file with more than one profile.
fn has_several_profiles(input: &Input) -> bool {
    detect(&input.bytes) == FileKind::InstrRaw
        && RawReader::parse(&input.bytes).is_ok_and(|mut reader| {
            let mut record = Record::default();
            while let Ok(true) = reader.read_record(&mut record) {}
            reader.profiles_seen() > 1
        })
}

/// Whether the outputs are equal up to the beginning of a list of names, and a raw file has several profiles. LLVM's
/// tool loses the names of all profiles but the last.
fn reads_freed_names(_: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<bool> {
    let begins_list: [&[u8]; 5] = [
        b"-order_file.\n",
        b"internal block counts: \n",
        b"Hot count threshold: ",
        b"Temporal Profile Traces ",
        b"ot functions",
    ];
    let text = |ran: &Ran| ran.files.get("out").unwrap_or(&ran.stdout).clone();
    let (ours_text, theirs_text) = (text(ours), text(theirs));
    let same = ours_text.iter().zip(&theirs_text);
    let same = same.take_while(|(one, two)| one == two).count();
    let begun = &ours_text[..same];
    let in_list = begins_list.iter().any(|text| contains(begun, text));
    let others = |ran: &Ran| (ran.code, ran.stderr.clone());
    Ok(shows_names(case)
        && case.inputs.iter().any(has_several_profiles)
        && in_list
        && others(theirs) == others(ours))
}

/// Returns the results of both tools if they are equal, or if an allowed reason explains the difference.
fn agree(tools: &Tools, case: &Case) -> Result<Option<(Ran, Ran)>> {
    let (theirs, ours) = tools.both(case)?;
    let agree = theirs == ours || reason(tools, case, &theirs, &ours)?.is_some();
    Ok(agree.then_some((theirs, ours)))
}

/// Whether a zero byte in a text explains the difference. After the instrumentation texts are cut at their first zero
/// byte, the tools must agree, and LLVM's tool must give the same result as before.
fn misread(tools: &Tools, case: &Case, theirs: &Ran, _: &Ran) -> Result<bool> {
    let mut cut = case.clone();
    let mut is_cut = false;
    for input in &mut cut.inputs {
        let zero = input.bytes.iter().position(|&byte| byte == 0);
        if let Some(zero) = zero
            && is_text(&input.bytes)
        {
            input.bytes.truncate(zero);
            is_cut = true;
        }
    }
    Ok(is_cut
        && !case.has("sample")
        && agree(tools, &cut)?.is_some_and(|(same, _)| same == *theirs))
}

/// Whether profkit refuses to merge profiles of two kinds, and LLVM's tool also refuses to merge two of the inputs if
/// it gets them in reverse order.
fn kinds_left_over(tools: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<bool> {
    let refusals: [&[u8]; 2] = [
        b"error: cannot merge probe-based profile with non-probe-based profile",
        b"error: cannot merge CS profile with non-CS profile",
    ];
    let refused = |ran: &Ran| refusals.iter().any(|text| contains(&ran.stderr, text));
    // LLVM's tool may have refused another, later input.
    if case.command != "merge" || !refused(ours) || refused(theirs) && ours.stderr == theirs.stderr
    {
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

/// Whether the tools agree if they list all functions, and not only the first ones.
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

/// Whether the tools agree on a profile in the flat layout after names are replaced by their hashes.
fn flat_names_and_hashes(tools: &Tools, case: &Case, _: &Ran, _: &Ran) -> Result<bool> {
    let is_flat = |option: &String| option.ends_with("convert-sample-profile-layout=flat");
    if case.command != "merge" || !case.options.iter().any(is_flat) || case.has("use-md5") {
        return Ok(false);
    }
    let mut hashes = case.clone();
    hashes.options.push("-use-md5".to_owned());
    hashes.options.retain(|option| {
        let option = option.trim_start_matches('-');
        !["text", "binary"].contains(&option.split('=').next().unwrap_or(option))
    });
    if agree(tools, &hashes)?.is_some() {
        return Ok(true);
    }
    // LLVM's tool may write two entries for a hash: one from the name and one from the hash itself. So the profiles are
    // compared as text.
    let (theirs, ours) = tools.both(&hashes)?;
    Ok(match (output(&theirs), output(&ours)) {
        (Some(one), Some(two)) if without_output(&theirs) == without_output(&ours) => {
            as_text(tools, one)? == as_text(tools, two)?
        }
        _ => false,
    })
}

/// The result of LLVM's tool when it converts a sample profile to text.
fn as_text(tools: &Tools, profile: &[u8]) -> Result<Ran> {
    let input = Input {
        name: "in".to_owned(),
        bytes: profile.to_vec(),
        origin: String::new(),
    };
    let case = Case {
        command: "merge",
        options: vec!["-sample".to_owned(), "-text".to_owned()],
        inputs: vec![input],
    };
    ran(&tools.llvm, &case)
}

/// Whether LLVM's tool skips an unreadable input with contexts or probes, and profkit writes the output that both tools
/// write without this input.
fn flags_left_over(tools: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<bool> {
    let goes_on = case.has("sample") && case.has("failure-mode");
    let Some(plain) = output(ours).filter(|_| goes_on && case.command == "merge") else {
        return Ok(false);
    };
    let mut sound = case.clone();
    sound.inputs.clear();
    for input in &case.inputs {
        let alone = Case {
            command: "show",
            options: vec!["-sample".to_owned()],
            inputs: vec![input.clone()],
        };
        if ran(&tools.llvm, &alone)?.code == Some(0) {
            sound.inputs.push(input.clone());
        } else if !sets_flags(input) {
            return Ok(false);
        }
    }
    Ok((1..case.inputs.len()).contains(&sound.inputs.len())
        && without_output(theirs) == without_output(ours)
        && agree(tools, &sound)?.is_some_and(|(alone, _)| output(&alone) == Some(plain)))
}

/// Whether the flags of an extensible binary sample file declare contexts, inlining decisions, probes or attributes.
fn sets_flags(input: &Input) -> bool {
    let flags = [
        (section::SUMMARY, flag::CONTEXT_SENSITIVE),
        (section::SUMMARY, flag::PRE_INLINED),
        (section::METADATA, flag::PROBE_BASED),
        (section::METADATA, flag::ATTRIBUTES),
    ];
    ExtBinaryProfile::parse(&input.bytes).is_ok_and(|file| {
        let mut sections = file.sections().iter();
        sections.any(|it| {
            flags
                .iter()
                .any(|&(kind, flag)| it.kind == kind && it.has(flag))
        })
    })
}

/// The bytes that a command wrote to the file of `-o`, or else to standard output. `None` if there are none.
fn output(ran: &Ran) -> Option<&[u8]> {
    let bytes = ran.files.get("out").unwrap_or(&ran.stdout);
    (!bytes.is_empty()).then_some(bytes)
}

/// Whether LLVM's tool reports damage outside of the selected function. profkit must report the same damage if all
/// functions are shown.
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

/// If LLVM's tool cannot read the profile that both tools wrote in the split layout, profkit warns of this, and LLVM's
/// tool does not. In this case, returns the result of profkit without its last warning; otherwise `None`.
fn without_split_warning(tools: &Tools, case: &Case, ours: &Ran) -> Result<Option<Ran>> {
    if !case.has("split-layout") || ours.code != Some(0) {
        return Ok(None);
    }
    let Some(written) = output(ours) else {
        return Ok(None);
    };
    let show = Case {
        command: "show",
        options: vec!["-sample".to_owned()],
        inputs: vec![Input {
            name: "in".to_owned(),
            bytes: written.to_vec(),
            origin: String::new(),
        }],
    };
    if ran(&tools.llvm, &show)?.code == Some(0) {
        return Ok(None);
    }
    let mut lines: Vec<&[u8]> = ours.stderr.split_inclusive(|&byte| byte == b'\n').collect();
    let is_warning = |line: &&[u8]| line.starts_with(b"warning: ");
    let Some(last) = lines.iter().rposition(is_warning) else {
        return Ok(None);
    };
    lines.remove(last);
    Ok(Some(Ran {
        stderr: lines.concat(),
        ..ours.clone()
    }))
}

/// Whether a message names an input. The message about errors in the sums of counts also passes, because LLVM's tool
/// never names an input in it.
fn names(stderr: &[u8], input: &Input) -> bool {
    contains(stderr, input.name.as_bytes())
        || contains(stderr, b"error in getting profile count sums")
}

/// Removes the debugging messages of LLVM's readers: those about the flags of a name table, and those about the end of
/// a GCC profile.
fn without_aids(case: &Case, text: &[u8]) -> Vec<u8> {
    let aid: (&[u8], FileKind) = (
        b"If FixedLengthMD5 is true, UseMD5 has to be true",
        FileKind::SampleExtBinary,
    );
    let place: (&[u8], FileKind) = (b"unexpected end of memory buffer: ", FileKind::SampleGcov);
    let mut text = text.to_vec();
    for (aid, kind) in [aid, place] {
        let has_kind = |input: &Input| detect(&input.bytes) == kind;
        if !case.inputs.iter().any(has_kind) {
            continue;
        }
        while let Some(at) = text.windows(aid.len()).position(|window| window == aid) {
            let mut end = at + aid.len();
            if kind == FileKind::SampleGcov {
                let rest = &text[end..];
                let line = rest.iter().position(|&byte| byte == b'\n');
                end += line.map_or(rest.len(), |line| line + 1);
            }
            text.drain(at..end);
        }
    }
    text
}

fn same_but_order(one: &[u8], two: &[u8]) -> bool {
    let about_functions = [
        b": Counter overflow".as_slice(),
        b": Function hash mismatch",
    ];
    about_functions.iter().any(|text| contains(one, text)) && sorted(one) == sorted(two)
}

fn without_output(ran: &Ran) -> (Option<i32>, Vec<u8>) {
    (ran.code, ran.stderr.clone())
}

fn without_stderr(ran: &Ran) -> Ran {
    Ran {
        stderr: Vec::new(),
        ..ran.clone()
    }
}

/// Whether an input has the compact binary encoding; it may be damaged.
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

/// Whether both outputs have the same length, and LLVM's tool reads the same contents from them.
fn same_meaning(tools: &Tools, case: &Case, theirs: &Ran, ours: &Ran) -> Result<bool> {
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
        // If contexts are merged, a hash table in LLVM's tool also decides whose attributes are kept. So attributes are
        // not compared then.
        let merges_contexts = case.has("sample-merge-cold-context");
        let facts = |ran: Ran| {
            let lines = ran.stdout.split(|&byte| byte == b'\n');
            let lines = lines.filter(|line| !merges_contexts || !contains(line, b"!Attributes"));
            let lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
            (ran.code, lines, ran.stderr)
        };
        if facts(read(one)?) != facts(read(two)?) {
            return Ok(false);
        }
    }
    Ok(true)
}
