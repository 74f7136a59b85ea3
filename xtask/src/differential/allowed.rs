//! The differences that are allowed: a table of reasons and what must hold. docs/formats/llvm-profdata.md lists the same
//! reasons for readers.
use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use profkit_abi::sample::{flag, section};
use profkit_data::detect::FileKind as Kind;
use profkit_data::detect::{detect, is_text};
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions, check_memprof};
use profkit_data::instr::raw::{PointerWidth, RawReader};
use profkit_data::instr::{InstrSource, Record};
use profkit_data::sample::ext_binary::ExtBinaryProfile;
use profkit_data::sample::{SampleEncoding, SampleProfile, encoding};
use profkit_data::{ErrorKind, Structure};

use super::cases::{Case, Input};
use super::run::{Ran, Tools, ran};

/// A case for which the tools differ.
#[derive(Clone, Copy)]
struct Both<'a> {
    tools: &'a Tools,
    case: &'a Case,
    theirs: &'a Ran,
    ours: &'a Ran,
}

/// A reason, and whether it explains a difference. Some find this out by further runs.
type Reason = (&'static str, fn(Both<'_>) -> Result<bool>);

/// The reasons, in the order in which they are tried, for differences where LLVM's tool does not crash.
const REASONS: &[Reason] = &[
    (
        "a failed command: outputs stay as they were, and what was shown before stays",
        |both| Ok(both.fails_alike()),
    ),
    (
        "compact binary profiles, and contexts of LLVM 13, are read",
        |both| Ok(both.is_older()),
    ),
    ("the heap profile of an indexed file is kept", |both| {
        Ok(both.case.command == "merge"
            && both.theirs.stderr == both.ours.stderr
            && both.any(|input| {
                IndexedProfile::parse(&input.bytes).is_ok_and(|profile| profile.memprof().is_some())
            }))
    }),
    (
        "an indexed file with a damaged heap profile is refused, and LLVM's tool drops every heap profile",
        |both| {
            let said = String::from_utf8_lossy(&both.ours.stderr);
            let damaged = |input: &Input| {
                let profile = IndexedProfile::parse(&input.bytes).ok();
                let section = profile.and_then(|profile| profile.memprof());
                section.is_some_and(|section| check_memprof(&section).is_err())
            };
            Ok(both.case.command == "merge"
                && said.contains("malformed instrumentation profile data")
                && both.any(damaged))
        },
    ),
    ("a hash table decides the order in LLVM's tool", hash_order),
    ("text that LLVM's tool reads up to a zero byte", misread),
    (
        "LLVM's tool merges profiles of two kinds in this order only",
        kinds_left_over,
    ),
    (
        "which of several equal functions are among the first is decided by a hash table in LLVM's tool",
        ties_at_the_cut,
    ),
    (
        "show --sample --function reads that function only",
        damage_elsewhere,
    ),
    (
        "LLVM's tool reads names from freed memory",
        reads_freed_names,
    ),
    (
        "of a name and its hash, a hash table in LLVM's tool decides which stays in the flat layout",
        flat_names_and_hashes,
    ),
    (
        "stored hashes of an indexed file are wrong, and LLVM's tool calculates them anew",
        |both| {
            let right = both.changed(|input| {
                let (wrong, _) = wrong_hashes(&input.bytes);
                for (at, hash) in &wrong {
                    if let Some(stored) = input.bytes.get_mut(*at..at + 8) {
                        stored.copy_from_slice(&hash.to_le_bytes());
                    }
                }
                !wrong.is_empty()
            });
            both.agrees_if(right, |theirs, _| theirs == both.theirs)
        },
    ),
    (
        "after an unreadable profile with contexts or probes, LLVM's tool writes the others as if they had some",
        flags_left_over,
    ),
    (
        "LLVM's tool takes a name that begins with $ for the number of bitmap bytes of the record before it",
        begins_with_dollar,
    ),
    (
        "LLVM's tool makes inlined functions of damaged metadata, which profkit refuses",
        |both| {
            let refused = |input: &Input| has_damaged_metadata(input) && both.names(input);
            Ok(both.case.has("sample")
                && both.ours.code == Some(1)
                && !contains(&both.theirs.stderr, b"Malformed sample")
                && both.any(refused))
        },
    ),
    (
        "a file older than heap profiles says that it has one, and LLVM's tool writes an empty one",
        |both| {
            const HEAP: u8 = 0x40;
            let plain = both.changed(|input| {
                let is_old = detect(&input.bytes) == Kind::InstrIndexed
                    && input.bytes.get(8).is_some_and(|&version| version < 8);
                let flags = input
                    .bytes
                    .get_mut(15)
                    .filter(|flags| is_old && **flags & HEAP != 0);
                flags.map(|flags| *flags &= !HEAP).is_some()
            });
            both.agrees_if(plain, |_, ours| ours == both.ours)
        },
    ),
    (
        "a text that has a function with and without the brackets of a context: LLVM's tool keeps it twice, and cannot read what it wrote",
        |both| {
            Ok(both.case.has("sample")
                && without_output(both.theirs) == without_output(both.ours)
                && both.any(has_name_twice))
        },
    ),
    (
        "LLVM's tool looks for names beyond the end of a damaged indexed file, and finds an empty one",
        empty_name_beyond_the_end,
    ),
    (
        "LLVM's tool keeps contexts apart that differ in a call site of their last frame",
        |both| {
            Ok(both.case.has("sample")
                && both.any(ends_in_call_site)
                && without_output(both.theirs) == without_output(both.ours))
        },
    ),
    (
        "a file that lies about places and sizes, or has version 0, is refused; LLVM's tool reads on",
        |both| {
            let refused = |input: &Input| lies_about_places(input) && both.names(input);
            Ok(both.any(has_wide_delta) || both.any(refused))
        },
    ),
];

/// The reasons for crashes of LLVM's tool. A damaged input is one only if it causes the crash.
const CRASHES: &[Reason] = &[
    ("LLVM's tool crashes on a damaged file", |both| {
        both.damage_crashes()
    }),
    (
        "LLVM's tool crashes on a sound one, by its option",
        |both| Ok(crashes_anyway(both)),
    ),
];

/// Returns the reason why a difference is allowed, or `None` if the difference is not allowed.
pub fn reason(
    tools: &Tools,
    case: &Case,
    theirs: &Ran,
    ours: &Ran,
) -> Result<Option<&'static str>> {
    let both = Both {
        tools,
        case,
        theirs,
        ours,
    };
    let plain = Ran {
        stderr: without_aids(case, &theirs.stderr),
        ..theirs.clone()
    };
    if plain.stderr != theirs.stderr {
        let is_allowed = plain == *ours || reason(tools, case, &plain, ours)?.is_some();
        return Ok(is_allowed.then_some(
            "LLVM's tool prints debugging aids about fixed-length hashes and the ends of GCC's files",
        ));
    }
    if both.only_warns_of_the_split_layout()? {
        return Ok(Some(
            "--split-layout of a profile with contexts: profkit warns that no tool can read the file",
        ));
    }
    let is_sensible = ours.code == Some(0) || ours.code == Some(1) && !ours.stderr.is_empty();
    let reasons = match theirs.code {
        Some(_) => REASONS,
        None if is_sensible => CRASHES,
        None => &[],
    };
    for (reason, explains) in reasons {
        if explains(both)? {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

impl Both<'_> {
    fn any(self, is_such: impl Fn(&Input) -> bool) -> bool {
        self.case.inputs.iter().any(is_such)
    }

    /// The case with other inputs; `None` if no input is changed.
    fn changed(self, mut change: impl FnMut(&mut Input) -> bool) -> Option<Case> {
        let mut case = self.case.clone();
        let changes = case
            .inputs
            .iter_mut()
            .filter_map(|input| change(input).then_some(()))
            .count();
        (changes > 0).then_some(case)
    }

    /// Returns the results of both tools for another case if they are equal, or if an allowed reason explains the
    /// difference.
    fn agree(self, case: &Case) -> Result<Option<(Ran, Ran)>> {
        let (theirs, ours) = self.tools.both(case)?;
        let agree = theirs == ours || reason(self.tools, case, &theirs, &ours)?.is_some();
        Ok(agree.then_some((theirs, ours)))
    }

    fn agrees_if(self, case: Option<Case>, holds: impl Fn(&Ran, &Ran) -> bool) -> Result<bool> {
        let Some(case) = case else { return Ok(false) };
        Ok(self
            .agree(&case)?
            .is_some_and(|(theirs, ours)| holds(&theirs, &ours)))
    }

    /// What LLVM's tool does with a sample profile.
    fn llvm_reads(self, command: &'static str, option: &str, bytes: &[u8]) -> Result<Ran> {
        let options = ["-sample", option]
            .into_iter()
            .filter(|option| !option.is_empty());
        let input = Input {
            name: "in".to_owned(),
            bytes: bytes.to_vec(),
            origin: String::new(),
        };
        let case = Case {
            command,
            options: options.map(str::to_owned).collect(),
            inputs: vec![input],
        };
        ran(&self.tools.llvm, &case)
    }

    /// Whether profkit's message names an input. The message about errors in the sums of counts also passes, because
    /// LLVM's tool never names an input in it.
    fn names(self, input: &Input) -> bool {
        let stderr = &self.ours.stderr;
        contains(stderr, input.name.as_bytes())
            || contains(stderr, b"error in getting profile count sums")
    }

    /// If LLVM's tool fails, it may leave a partial output file, and lose the end of its standard output. So files are not
    /// compared, and standard output only up to the point where that of LLVM's tool ends.
    fn fails_alike(self) -> bool {
        let (theirs, ours) = (self.theirs, self.ours);
        theirs.code != Some(0)
            && without_output(theirs) == without_output(ours)
            && ours.stdout.starts_with(&theirs.stdout)
    }

    /// LLVM 22 no longer knows the compact binary encoding, and may take a damaged file for a text.
    fn is_older(self) -> bool {
        let stderr = &self.theirs.stderr;
        let as_text =
            |input: &Input| contains(stderr, format!("error: {}:", input.name).as_bytes());
        self.any(|input| {
            encoding(&input.bytes) == Some(SampleEncoding::CompactBinary)
                && (contains(stderr, b"Unrecognized sample profile encoding format")
                    || as_text(input) && contains(stderr, b"Expected '"))
                || input.origin.starts_with("llvm-13-contexts-ext")
                    && contains(stderr, b"Truncated function name table")
        })
    }

    /// Whether a damaged input causes a crash of LLVM's tool: the tool crashes on this input alone, when it shows it, merges
    /// it or runs the case's command; or it does not crash without this input.
    fn damage_crashes(self) -> Result<bool> {
        for input in &self.case.inputs {
            if input.origin.ends_with(", damaged") && self.causes_crash(input)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn causes_crash(self, input: &Input) -> Result<bool> {
        let case = self.case;
        let kind: Vec<String> = case
            .has("sample")
            .then(|| "-sample".to_owned())
            .into_iter()
            .collect();
        // The command `overlap` takes two inputs, so the input is given twice.
        let again = Input {
            name: "in-again".to_owned(),
            ..input.clone()
        };
        for (command, options, inputs) in [
            ("show", &kind, vec![input.clone()]),
            ("merge", &kind, vec![input.clone()]),
            (case.command, &case.options, vec![input.clone()]),
            (case.command, &case.options, vec![input.clone(), again]),
        ] {
            let options = options.clone();
            let alone = Case {
                command,
                options,
                inputs,
            };
            if ran(&self.tools.llvm, &alone)?.code.is_none() {
                return Ok(true);
            }
        }
        let mut without = case.clone();
        without.inputs.retain(|other| other.name != input.name);
        Ok(!without.inputs.is_empty() && ran(&self.tools.llvm, &without)?.code.is_some())
    }

    /// Whether both outputs have the same length, and LLVM's tool reads the same contents from them.
    fn same_meaning(self) -> Result<bool> {
        let (case, theirs, ours) = (self.case, self.theirs, self.ours);
        let (one, two) = match (theirs.files.get("out"), ours.files.get("out")) {
            (Some(one), Some(two)) => (one, two),
            (None, None) => (&theirs.stdout, &ours.stdout),
            _ => return Ok(false),
        };
        if one.len() != two.len() || without_output(theirs) != without_output(ours) {
            return Ok(false);
        }
        // If contexts are merged, a hash table in LLVM's tool also decides whose attributes are kept.
        let merges_contexts = case.has("sample-merge-cold-context");
        for (command, option) in [("merge", "-text"), ("show", "-show-sec-info-only")] {
            let facts = |bytes| -> Result<_> {
                let ran = self.llvm_reads(command, option, bytes)?;
                let lines = ran.stdout.split(|&byte| byte == b'\n');
                let lines =
                    lines.filter(|line| !merges_contexts || !contains(line, b"!Attributes"));
                Ok((
                    ran.code,
                    lines.map(<[u8]>::to_vec).collect::<Vec<_>>(),
                    ran.stderr,
                ))
            };
            if facts(one)? != facts(two)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// If LLVM's tool cannot read the profile that both tools wrote in the split layout, profkit warns of this, and LLVM's
    /// tool does not. Whether the results are equal but for this last warning.
    fn only_warns_of_the_split_layout(self) -> Result<bool> {
        let ours = self.ours;
        let Some(written) =
            output(ours).filter(|_| self.case.has("split-layout") && ours.code == Some(0))
        else {
            return Ok(false);
        };
        if self.llvm_reads("show", "", written)?.code == Some(0) {
            return Ok(false);
        }
        let mut lines: Vec<&[u8]> = ours.stderr.split_inclusive(|&byte| byte == b'\n').collect();
        let Some(last) = lines
            .iter()
            .rposition(|line| line.starts_with(b"warning: "))
        else {
            return Ok(false);
        };
        lines.remove(last);
        let stderr = lines.concat();
        Ok(Ran {
            stderr,
            ..ours.clone()
        } == *self.theirs)
    }
}

/// Whether the tools print functions of equal weight, write the metadata of the extensible binary encoding, or tell about
/// several functions in different orders.
fn hash_order(both: Both<'_>) -> Result<bool> {
    let (case, theirs, ours) = (both.case, both.theirs, both.ours);
    let lists = case.command == "overlap" || case.has("hot-func-list") || case.has("topn");
    let texts: [&[u8]; 2] = [b": Counter overflow", b": Function hash mismatch"];
    Ok(case.has("sample")
        && (lists
            && without_output(theirs) == without_output(ours)
            && sorted(&theirs.stdout) == sorted(&ours.stdout)
            || case.command == "merge" && both.same_meaning()?
            || texts.iter().any(|text| contains(&theirs.stderr, text))
                && sorted(&theirs.stderr) == sorted(&ours.stderr)
                && without_stderr(theirs) == without_stderr(ours)))
}

/// Whether a zero byte in a text explains the difference. After the instrumentation texts are cut at their first zero
/// byte, the tools must agree, and LLVM's tool must give the same result as before.
fn misread(both: Both<'_>) -> Result<bool> {
    let cut = both.changed(|input| {
        let zero = input.bytes.iter().position(|&byte| byte == 0);
        let zero = zero.filter(|_| is_text(&input.bytes));
        zero.map(|zero| input.bytes.truncate(zero)).is_some()
    });
    both.agrees_if(cut.filter(|_| !both.case.has("sample")), |theirs, _| {
        theirs == both.theirs
    })
}

/// Whether profkit refuses to merge profiles of two kinds, and LLVM's tool also refuses to merge two of the inputs if
/// it gets them in reverse order.
fn kinds_left_over(both: Both<'_>) -> Result<bool> {
    let (case, theirs, ours) = (both.case, both.theirs, both.ours);
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
            if refused(&ran(&both.tools.llvm, &reversed)?) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether the tools agree if they list all functions, and not only the first ones.
fn ties_at_the_cut(both: Both<'_>) -> Result<bool> {
    let (case, theirs, ours) = (both.case, both.theirs, both.ours);
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
    both.agrees_if((all.options != case.options).then_some(all), |_, _| true)
}

/// Whether LLVM's tool reports damage outside of the selected function. profkit must report the same damage if all
/// functions are shown.
fn damage_elsewhere(both: Both<'_>) -> Result<bool> {
    let (case, theirs, ours) = (both.case, both.theirs, both.ours);
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
    both.agrees_if(Some(all), |same, _| same.stderr == theirs.stderr)
}

/// Whether the outputs are equal up to the beginning of a list of names, and a raw file has several profiles. LLVM's
/// tool loses the names of all profiles but the last.
fn reads_freed_names(both: Both<'_>) -> Result<bool> {
    let begins_list: [&[u8]; 5] = [
        b"-order_file.\n",
        b"internal block counts: \n",
        b"Hot count threshold: ",
        b"Temporal Profile Traces ",
        b"ot functions",
    ];
    let [theirs, ours] =
        [both.theirs, both.ours].map(|ran| ran.files.get("out").unwrap_or(&ran.stdout));
    let same = ours
        .iter()
        .zip(theirs)
        .take_while(|(one, two)| one == two)
        .count();
    Ok(shows_names(both.case)
        && both.any(has_several_profiles)
        && begins_list.iter().any(|text| contains(&ours[..same], text))
        && without_output(both.theirs) == without_output(both.ours))
}

/// Whether the tools agree on a profile in the flat layout after names are replaced by their hashes.
fn flat_names_and_hashes(both: Both<'_>) -> Result<bool> {
    let case = both.case;
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
    if both.agree(&hashes)?.is_some() {
        return Ok(true);
    }
    // LLVM's tool may write two entries for a hash: one from the name and one from the hash itself. So the profiles are
    // compared as text.
    let (theirs, ours) = both.tools.both(&hashes)?;
    Ok(match (output(&theirs), output(&ours)) {
        (Some(one), Some(two)) if without_output(&theirs) == without_output(&ours) => {
            both.llvm_reads("merge", "-text", one)? == both.llvm_reads("merge", "-text", two)?
        }
        _ => false,
    })
}

/// Whether LLVM's tool skips an unreadable input with contexts or probes, and profkit writes the output that both tools
/// write without this input.
fn flags_left_over(both: Both<'_>) -> Result<bool> {
    let (case, theirs, ours) = (both.case, both.theirs, both.ours);
    let goes_on = case.has("sample") && case.has("failure-mode");
    let Some(plain) = output(ours).filter(|_| goes_on && case.command == "merge") else {
        return Ok(false);
    };
    let mut sound = case.clone();
    sound.inputs.clear();
    for input in &case.inputs {
        if both.llvm_reads("show", "", &input.bytes)?.code == Some(0) {
            sound.inputs.push(input.clone());
        } else if !sets_flags(input) {
            return Ok(false);
        }
    }
    let some = (1..case.inputs.len()).contains(&sound.inputs.len());
    let same = some && without_output(theirs) == without_output(ours);
    both.agrees_if(same.then_some(sound), |alone, _| {
        output(alone) == Some(plain)
    })
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

/// Whether a name that begins with `$` explains a complaint of LLVM's tool about the bitmap of a text. After such names
/// are changed, the tools must agree.
fn begins_with_dollar(both: Both<'_>) -> Result<bool> {
    if !contains(&both.theirs.stderr, b"itmap byte") {
        return Ok(false);
    }
    let mut renamed = both.case.clone();
    for input in renamed
        .inputs
        .iter_mut()
        .filter(|input| is_text(&input.bytes))
    {
        let mut at_start = true;
        for at in 0..input.bytes.len() {
            let next_is_digit = input.bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            if at_start && input.bytes[at] == b'$' && !next_is_digit {
                input.bytes[at] = b'_';
            }
            at_start = input.bytes[at] == b'\n';
        }
    }
    let (theirs, ours) = both.tools.both(&renamed)?;
    Ok(theirs == ours)
}

/// Whether the tools differ only in one message: LLVM's tool complains about an empty name, and profkit reports damage
/// in the table of functions before the names. LLVM's tool reads the names only with `--keep-vtable-symbols`.
fn empty_name_beyond_the_end(both: Both<'_>) -> Result<bool> {
    let (case, theirs, ours) = (both.case, both.theirs, both.ours);
    let is_damaged = |input: &Input| {
        let past_table = "malformed instrumentation profile data: profile data is empty";
        let line = format!("warning: {}: {past_table}", input.name);
        wrong_hashes(&input.bytes).1 && contains(&ours.stderr, line.as_bytes())
    };
    let empty = String::from_utf8_lossy(&theirs.stderr)
        .replace("symbol name is empty", "profile data is empty");
    Ok(case.has("keep-vtable-symbols")
        && empty.as_bytes() == ours.stderr
        && without_stderr(theirs) == without_stderr(ours)
        && both.any(is_damaged))
}

/// Reads the names of an indexed file. Returns the stored hashes that do not match them (the offset of each, and the right
/// hash), and whether an error occurs.
fn wrong_hashes(bytes: &[u8]) -> (Vec<(usize, u64)>, bool) {
    let options = IndexedReadOptions::new().llvm_checks(true);
    let mut wrong = Vec::new();
    let Ok(profile) = IndexedProfile::parse_with(bytes, &options) else {
        return (wrong, false);
    };
    let mut records = profile.records();
    loop {
        let name = match records.next_name() {
            Ok(Some(name)) => name,
            Ok(None) => return (wrong, false),
            Err(_) => return (wrong, true),
        };
        let right = NameRef::of(name.name());
        if name.name_ref() != right
            && let Ok(at) = usize::try_from(name.offset())
        {
            wrong.push((at, right.0));
        }
    }
}

/// Whether a damaged sample file has its damage in its metadata.
fn has_damaged_metadata(input: &Input) -> bool {
    let Ok(file) = ExtBinaryProfile::parse(&input.bytes) else {
        return false;
    };
    let metadata = Structure::SampleSection(section::METADATA);
    let report = file.read(&mut SampleProfile::new(), 1);
    let mut faults = report.faults.iter();
    input.origin.ends_with(", damaged") && faults.any(|fault| fault.is_within(&metadata))
}

/// Whether a sample text has a function both as `NAME` and as `[NAME]`.
fn has_name_twice(input: &Input) -> bool {
    let heads = input.bytes.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.rsplitn(3, |&byte| byte == b':');
        fields.nth(2)
    });
    let heads: HashSet<&[u8]> = heads.collect();
    let mut all = heads.iter();
    is_text(&input.bytes) && all.any(|head| heads.contains(&[b"[", *head, b"]"].concat()[..]))
}

/// Whether an indexed or raw file states impossible offsets or sizes, or an extensible binary sample file has a section
/// beyond its end.
fn lies_about_places(input: &Input) -> bool {
    match detect(&input.bytes) {
        Kind::InstrIndexed => match IndexedProfile::parse(&input.bytes) {
            Err(error) => {
                error.kind() != ErrorKind::UnsupportedVersion
                    || input.bytes.get(8..15) == Some(&[0; 7])
            }
            Ok(profile) => profile.binary_ids().is_err(),
        },
        Kind::InstrRaw => RawReader::parse(&input.bytes).map_or(true, |mut reader| {
            let mut record = Record::default();
            while let Some(read) = reader
                .read_record(&mut record)
                .map(|more| more.then_some(()))
                .transpose()
            {
                if read.is_err() {
                    return true;
                }
            }
            false
        }),
        Kind::SampleExtBinary => ExtBinaryProfile::parse(&input.bytes).is_ok_and(|file| {
            let length = input.bytes.len() as u64;
            let mut sections = file.sections().iter();
            sections.any(|section| section.offset.saturating_add(section.size) > length)
        }),
        _ => false,
    }
}

/// Whether a text has a calling context with a call site in its last frame.
fn ends_in_call_site(input: &Input) -> bool {
    let is_such = |line: &[u8]| {
        let context = line.strip_prefix(b"[").unwrap_or_default();
        let mut fields = context.rsplitn(3, |&byte| byte == b':');
        let context = fields.nth(2).unwrap_or_default();
        let at = context.windows(3).rposition(|window| window == b" @ ");
        let leaf = at.map_or(context, |at| &context[at..]);
        leaf.contains(&b':')
    };
    is_text(&input.bytes) && input.bytes.split(|&byte| byte == b'\n').any(is_such)
}

/// Whether a raw file of a 32-bit program states a counter distance of more than 32 bits.
fn has_wide_delta(input: &Input) -> bool {
    detect(&input.bytes) == Kind::InstrRaw
        && RawReader::parse(&input.bytes).is_ok_and(|reader| {
            reader.profile().is_some_and(|profile| {
                let is_wide = profile.header().counters_delta > u64::from(u32::MAX);
                profile.dialect().width == PointerWidth::Bits32 && is_wide
            })
        })
}

/// Whether LLVM's tool may crash without damage: without a list of symbols; if no cutoff is near 99 %; when it merges cold
/// contexts of a profile without contexts; when no function fits the size; if the name table follows the samples; when it
/// reads names from freed memory.
fn crashes_anyway(both: Both<'_>) -> bool {
    let case = both.case;
    let aborts = case.has("hot-func-list") && both.theirs.stderr.starts_with(&both.ours.stderr);
    let by_option = match case.command {
        "show" => case.has("show-prof-sym-list") || aborts,
        "merge" => case.has("sample-merge-cold-context") || case.has("output-size-limit"),
        _ => false,
    };
    by_option
        || both.any(|input| input.origin.starts_with("sample-nametable-after-samples"))
        || shows_names(case) && both.any(has_several_profiles)
}

/// Whether a command line makes LLVM's tool look up and print function names after it has read the file.
fn shows_names(case: &Case) -> bool {
    let options = ["hot-func-list", "topn", "temporal-profile-traces"];
    case.command == "order" || options.iter().any(|option| case.has(option))
}

/// Whether an input is a raw file with more than one profile.
fn has_several_profiles(input: &Input) -> bool {
    detect(&input.bytes) == Kind::InstrRaw
        && RawReader::parse(&input.bytes).is_ok_and(|mut reader| {
            let mut record = Record::default();
            while let Ok(true) = reader.read_record(&mut record) {}
            reader.profiles_seen() > 1
        })
}

/// The bytes that a command wrote to the file of `-o`, or else to standard output. `None` if there are none.
fn output(ran: &Ran) -> Option<&[u8]> {
    let bytes = ran.files.get("out").unwrap_or(&ran.stdout);
    (!bytes.is_empty()).then_some(bytes)
}

/// Removes the debugging messages of LLVM's readers: those about the flags of a name table, and those about the end of
/// a GCC profile.
fn without_aids(case: &Case, text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for (aid, kind) in [
        (
            &b"If FixedLengthMD5 is true, UseMD5 has to be true"[..],
            Kind::SampleExtBinary,
        ),
        (b"unexpected end of memory buffer: ", Kind::SampleGcov),
    ] {
        if !case.inputs.iter().any(|input| detect(&input.bytes) == kind) {
            continue;
        }
        while let Some(at) = text.windows(aid.len()).position(|window| window == aid) {
            let mut end = at + aid.len();
            if kind == Kind::SampleGcov {
                let rest = &text[end..];
                let line = rest.iter().position(|&byte| byte == b'\n');
                end += line.map_or(rest.len(), |line| line + 1);
            }
            text.drain(at..end);
        }
    }
    text
}

fn without_output(ran: &Ran) -> (Option<i32>, &[u8]) {
    (ran.code, &ran.stderr)
}

fn without_stderr(ran: &Ran) -> (Option<i32>, &[u8], &BTreeMap<String, Vec<u8>>) {
    (ran.code, &ran.stdout, &ran.files)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn sorted(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    lines
}
