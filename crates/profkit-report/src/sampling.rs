//! The report of `profkit sample`: what the profile was made from, what was left out, or why no profile was made.
//! [docs/formats/sample-json.md] describes the JSON.
//!
//! [docs/formats/sample-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/sample-json.md
mod losses;

use crate::loss::Loss;
use crate::merge::sample_losses;
use crate::recording::{lost_records, recording_damage};
use crate::{grouped, plural, tenths};
use losses::{
    losses_of_binary, losses_of_contexts, losses_of_counting, of_other_builds, shortened, skid,
};
use profkit_data::printable;
use profkit_profgen::{
    BinaryOutcome, BoltForm, BoltProfile, Density, Encoded, Figures, FoundBy, Outcome, Problem,
    RecordedBinary,
};
use serde_json::{Value, json};

const SCHEMA_VERSION: u32 = 1;
const MOST: usize = 5;

/// The reason why there is no profile, with a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong, without a full stop.
    pub message: String,
    /// The next step for the user.
    pub hint: String,
}

/// Returns the text for one binary that occurs in an input: path, samples and build id.
fn of_seen(seen: &RecordedBinary) -> String {
    let path = if seen.path.is_empty() {
        "an unnamed binary".into()
    } else {
        printable(&seen.path)
    };
    let id = seen
        .build_id
        .as_ref()
        .map_or(String::new(), |id| format!(", build id {id}"));
    let samples = if seen.branches > 0 {
        format!("{} branches", grouped(seen.branches))
    } else {
        plural(seen.samples, "sample")
    };
    format!("{path} ({samples}{id})")
}

fn list(seen: &[RecordedBinary]) -> String {
    if seen.is_empty() {
        return "no binary".to_owned();
    }
    let mut names: Vec<String> = seen.iter().take(MOST).map(of_seen).collect();
    if seen.len() > MOST {
        names.push(format!("{} more", seen.len() - MOST));
    }
    names.join(", ")
}

/// Lists the binaries that the user named, with their build ids.
fn wanted(binaries: &[BinaryOutcome]) -> String {
    let names = binaries
        .iter()
        .take(MOST)
        .map(|binary| match &binary.build_id {
            Some(id) => format!("{} (build id {id})", binary.path),
            None => format!("{} (no build id)", binary.path),
        });
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the reason why there is no profile; `None` if there is one.
pub fn refusal(outcome: &Outcome) -> Option<Refusal> {
    let (message, hint) = match outcome.problem()? {
        Problem::NoSamples => (
            "the input has no sample".to_owned(),
            "`profkit show` of the recording says what is in it".to_owned(),
        ),
        Problem::NothingSelected => (
            format!(
                "no sample is selected: {} were left out by --event, --pid, --comm or --time",
                plural(outcome.losses.not_selected, "sample")
            ),
            "`profkit show` of the recording lists its events and processes".to_owned(),
        ),
        Problem::NotOfBinaries => (
            format!(
                "no sample is in the given binaries: the samples are in {}; the given binaries are {}",
                list(&outcome.seen),
                wanted(&outcome.binaries)
            ),
            "give the binary that ran, with --binary, or the folder of all builds, with --binaries"
                .to_owned(),
        ),
        Problem::NoBranches => (
            "the samples have no branch stacks".to_owned(),
            "record with `perf record -b`, or add --ips to count the addresses of the samples instead"
                .to_owned(),
        ),
        Problem::NoRanges => (
            "the branch stacks do not have every branch, so that the code between branches is not known"
                .to_owned(),
            "record with `perf record -b`, not with --call-graph lbr".to_owned(),
        ),
        Problem::NoChains => (
            format!(
                "calling contexts need samples with a call chain and a branch stack: found {} with a call chain and {} with a branch stack",
                plural(outcome.losses.with_chain, "sample"),
                plural(outcome.losses.with_branches, "sample")
            ),
            "record with `perf record -b --call-graph fp` a program that was compiled with \
             -fno-omit-frame-pointer, or leave out --contexts"
                .to_owned(),
        ),
        // The build id says that these are the very binaries; only parts of them have debug info.
        Problem::NothingFits if is_without_debug_info(outcome) => (
            format!(
                "the code that ran has no debug info: found {}",
                figures_of(outcome)
            ),
            "compile that code with -g: the binary has debug info of other code only".to_owned(),
        ),
        Problem::NothingFits => (
            format!(
                "no sample fits the code of the given binaries: found {}",
                figures_of(outcome)
            ),
            "give the very binary that was recorded, not a later build".to_owned(),
        ),
    };
    let of_trace = matches!(
        outcome.problem()?,
        Problem::NoSamples | Problem::NoBranches | Problem::NoChains
    );
    let hint = match of_trace && outcome.losses.recording.traces > 0 {
        true => OF_TRACES.to_owned(),
        false => hint,
    };
    Some(Refusal { message, hint })
}

/// What to do with a recording of hardware traces.
const OF_TRACES: &str = "the recording has hardware traces: `perf inject --itrace=i100usle --strip -i FILE -o OUT` makes \
     samples with branch stacks of Intel PT, `--itrace=i1000il` of Arm ETM";

/// Whether all ranges of code are in binaries with the recorded build ids, but in no function of their debug info.
fn is_without_debug_info(outcome: &Outcome) -> bool {
    let mut counted = outcome
        .binaries
        .iter()
        .filter(|binary| binary.counted > 0)
        .peekable();
    counted.peek().is_some()
        && counted.all(|binary| {
            let figures = &binary.figures;
            binary.found_by == Some(FoundBy::BuildId)
                && figures.ranges > 0
                && figures.no_function == figures.ranges
        })
}

fn figures_of(outcome: &Outcome) -> String {
    let sum = |of: fn(&Figures) -> u64| -> u64 {
        let all = outcome.binaries.iter().map(|binary| of(&binary.figures));
        all.fold(0, u64::saturating_add)
    };
    if outcome.plain_addresses {
        return format!(
            "{} at places that are no instruction",
            plural(sum(|figures| figures.addresses_off_boundary), "sample")
        );
    }
    let kinds = [
        (
            sum(|figures| figures.off_boundary),
            "with its start or end inside an instruction",
        ),
        (
            sum(|figures| figures.outside_code),
            "outside all sections with code",
        ),
        (
            sum(|figures| figures.no_function),
            "outside all functions of the debug info",
        ),
        (
            sum(|figures| figures.impossible),
            "across a jump, or with its end before its start",
        ),
    ];
    let found = kinds.into_iter().filter(|(number, _)| *number > 0);
    let found: Vec<String> = found
        .map(|(number, words)| format!("{} {words}", plural(number, "range")))
        .collect();
    match found.is_empty() {
        true => "no range of code".to_owned(),
        false => found.join(", "),
    }
}

/// Why the profile cannot be trusted: many of its samples were lost, or do not fit the binary.
pub fn lost(outcome: &Outcome) -> Option<Refusal> {
    let [
        unmapped_samples,
        unmapped_branches,
        _,
        _,
        _,
        without_ranges,
        lost,
        damaged,
    ] = losses_of_counting(&outcome.losses);
    let mut of_counting = vec![unmapped_samples, lost, damaged];
    if !outcome.plain_addresses {
        of_counting.extend([unmapped_branches, without_ranges]);
    }
    let mut losses: Vec<(Option<&str>, Loss)> =
        of_counting.into_iter().map(|loss| (None, loss)).collect();
    for binary in &outcome.binaries {
        let [
            off_boundary,
            _,
            _,
            impossible,
            _,
            _,
            not_branches,
            other_targets,
        ] = losses_of_binary(&binary.figures);
        let mut of_binary = vec![
            of_other_builds(binary),
            off_boundary,
            impossible,
            not_branches,
            other_targets,
        ];
        if let Some(contexts) = &binary.contexts {
            let [invalid_return, ..] = losses_of_contexts(contexts);
            of_binary.push(invalid_return);
        }
        losses.extend(
            of_binary
                .into_iter()
                .map(|loss| (Some(&*binary.path), loss)),
        );
    }
    let large = losses.into_iter().filter(|(_, loss)| loss.is_large());
    let lines = large.filter_map(|(name, loss)| {
        let line = loss.line()?;
        Some(name.map_or(line.clone(), |name| format!("{name}: {line}")))
    });
    let left_out = outcome.binaries.iter();
    let left_out = left_out.filter_map(|binary| {
        let error = binary.left_out.as_ref()?;
        Some(format!("{}: {error}", binary.path))
    });
    let mut all = lost_records(&outcome.losses.recording);
    all.extend(lines.chain(left_out));
    let lines = all;
    (!lines.is_empty()).then(|| Refusal {
        message: format!("--strict does not allow these losses: {}", lines.join("; ")),
        hint: "leave out --strict to write a profile of the samples that fit".to_owned(),
    })
}

/// What was written for BOLT.
pub fn bolt_line(bolt: &BoltProfile, file: &str, program: &str) -> String {
    let what = match bolt.branches {
        0 => plural(bolt.samples, "sample"),
        branches => format!(
            "{} {}",
            grouped(branches),
            if branches == 1 { "branch" } else { "branches" }
        ),
    };
    let outside = match bolt.outside {
        0 => String::new(),
        outside => format!(
            "; {} at no code of it are left out",
            plural(outside, "count")
        ),
    };
    let reader = match bolt.form {
        BoltForm::Traces | BoltForm::Branches => "perf2bolt -pa",
        BoltForm::Fdata => "llvm-bolt -data",
    };
    let impossible = match bolt.impossible {
        0 => String::new(),
        impossible => format!(
            "; {} of ranges that do not fit the code are left out",
            plural(impossible, "count")
        ),
    };
    let nameless = match bolt.nameless_functions {
        0 => String::new(),
        functions => format!(
            "; {} of {} are left out, whose names have more than {} bytes or are damaged",
            plural(bolt.nameless, "count"),
            plural(functions, "function"),
            grouped(BoltProfile::LONGEST_NAME as u64)
        ),
    };
    format!("wrote {file}: {what} of {program} for {reader}{outside}{impossible}{nameless}")
}

/// Says that the density, samples per line in hot functions, is below `least`.
pub fn gate(outcome: &Outcome, least: f64) -> Option<String> {
    let density = |binary: &&BinaryOutcome| binary.density.samples_per_line;
    let with_functions = outcome.binaries.iter().filter(|one| one.functions > 0);
    let poorest = with_functions.min_by(|a, b| density(a).total_cmp(&density(b)))?;
    (density(&poorest) < least).then(|| {
        format!(
            "{}: {} samples per line in hot functions, below {}",
            poorest.path,
            tenths(density(&poorest)),
            tenths(least)
        )
    })
}

/// Returns the lines for people: one line for each kind of loss, and lines about what the profile was made from.
pub fn lines(outcome: &Outcome) -> Vec<String> {
    let losses = &outcome.losses;
    let mut lines: Vec<String> = recording_damage(&losses.recording);
    lines.extend(
        losses_of_counting(losses)
            .into_iter()
            .filter_map(Loss::line),
    );
    let skid = outcome.plain_addresses.then(|| skid(losses));
    lines.extend(skid.and_then(Loss::line));
    if losses.recording.throttled > 0 {
        let times = match losses.recording.throttled {
            1 => "once".to_owned(),
            number => format!("{} times", grouped(number)),
        };
        lines.push(format!(
            "the kernel stopped an event {times}, because there were too many samples: record with a larger period"
        ));
    }
    let kept = 1u64.checked_shl(outcome.halvings).unwrap_or(u64::MAX);
    let shortened = shortened(outcome).line();
    lines.extend(shortened.map(|line| {
        format!("{line}: the newest 1/{kept} of each call chain and branch stack is used")
    }));
    for binary in &outcome.binaries {
        let name = &binary.path;
        let Some(found_by) = binary.found_by else {
            lines.push(match &binary.counted_for {
                Some(other) => format!(
                    "{name}: its samples are counted for {other}, which has the same build id or, if the recording has no build ids, the same name"
                ),
                None => format!("{name}: none of the samples is in this binary"),
            });
            continue;
        };
        if let Some(error) = &binary.left_out {
            let hint = error
                .hint()
                .map_or_else(String::new, |hint| format!(": {hint}"));
            let error = error.clone().without_file_name(name);
            lines.push(format!(
                "{name}: its samples are in no profile, because {error}{hint}"
            ));
            continue;
        }
        if found_by == FoundBy::Name {
            lines.push(format!(
                "{name}: only its file name was compared, because the input has no build id for this file: make sure that it is the build that was recorded"
            ));
        }
        if binary.other_builds > 0 {
            lines.push(format!(
                "{name}: the samples of {} with this name and another build id are left out",
                plural(binary.other_builds as u64, "other file")
            ));
        }
        let figures = losses_of_binary(&binary.figures);
        lines.extend(
            figures
                .into_iter()
                .filter_map(Loss::line)
                .map(|line| format!("{name}: {line}")),
        );
        let contexts = binary.contexts.iter().flat_map(losses_of_contexts);
        let contexts = contexts.filter_map(Loss::line);
        lines.extend(contexts.map(|line| format!("{name}: {line}")));
        for warning in binary.warnings.iter().take(MOST) {
            lines.push(format!("{name}: {warning}"));
        }
        if outcome.separate && binary.functions == 0 {
            lines.push(format!(
                "{name}: no profile is written for this binary, because none of its samples fits its code"
            ));
        }
        if let Some(more) = binary.density.more_samples(Density::ENOUGH)
            && binary.functions > 0
        {
            lines.push(format!(
                "{name}: few samples: {} per line in hot functions; {} times as many would be enough",
                tenths(binary.density.samples_per_line),
                tenths(more)
            ));
        }
    }
    lines
}

/// Returns the lines about what a profile lost in its file, because its encoding cannot hold it.
pub fn encoding_losses(encoded: &Encoded) -> Vec<String> {
    sample_losses(&encoded.losses, encoded.form, None)
}

/// The line about a profile of some binaries. `replaced`: it replaced a file whose name the user did not type.
pub fn made(outcome: &Outcome, binaries: &[usize], output: &str, replaced: bool) -> String {
    let with = binaries
        .iter()
        .filter_map(|&index| outcome.binaries.get(index));
    let (mut functions, mut used, mut contexts) = (0, 0u64, 0u64);
    for binary in with {
        functions += binary.functions as u64;
        contexts += binary.contexts.as_ref().map_or(0, |it| it.contexts);
        used = used.saturating_add(if outcome.plain_addresses {
            binary.figures.addresses_used
        } else {
            binary.figures.used
        });
    }
    let what = if outcome.plain_addresses {
        "sample"
    } else {
        "range"
    };
    let contexts = if contexts > 0 {
        format!(" in {}", plural(contexts, "calling context"))
    } else {
        String::new()
    };
    format!(
        "wrote {output}: {} from {}{contexts}{}",
        plural(functions, "function"),
        plural(used, what),
        match replaced {
            true => "; it replaces an earlier file",
            false => "",
        }
    )
}

/// The report as JSON.
pub fn document(outcome: &Outcome) -> Value {
    let binaries = outcome.binaries.iter().map(|binary| {
        let figures = &binary.figures;
        json!({
            "path": binary.path,
            "build_id": binary.build_id.as_ref().map(ToString::to_string),
            "found_by": binary.found_by.map(|by| match by {
                FoundBy::BuildId => "build-id",
                FoundBy::Name => "name",
                FoundBy::Unnamed => "unnamed",
            }),
            "counted_for": binary.counted_for,
            "left_out": binary.left_out.as_ref().map(ToString::to_string),
            "other_builds": binary.other_builds,
            "file": binary.file,
            "functions": binary.functions,
            "by_probes": binary.by_probes,
            "samples_per_line": binary.density.samples_per_line,
            "ranges": {
                "all": figures.ranges,
                "used": figures.used,
                "off_boundary": figures.off_boundary,
                "no_function": figures.no_function,
                "across_functions": figures.across_functions,
                "impossible": figures.impossible,
                "outside_code": figures.outside_code,
            },
            "contexts": binary.contexts.as_ref().map(|contexts| json!({
                "all": contexts.contexts,
                "inlined": contexts.inlined,
                "inferred_frames": contexts.inferred_frames,
                "searches_given_up": contexts.searches_given_up,
                "samples": contexts.samples,
                "branches": contexts.branches,
                "leaf_elsewhere": contexts.leaf_elsewhere,
                "incomplete_chain": contexts.incomplete_chain,
                "invalid_return": contexts.invalid_return,
                "left_and_back": contexts.left_and_back,
                "unpaired": contexts.unpaired,
                "impossible": contexts.impossible,
                "mismatched_calls": contexts.mismatched_calls,
                "without_probe": contexts.without_probe,
            })),
            "branches": figures.branches,
            "branches_inside": figures.branches_inside,
            "not_branches": figures.not_branches,
            "other_targets": figures.other_targets,
            "calls": figures.calls,
            "addresses": {
                "used": figures.addresses_used,
                "off_boundary": figures.addresses_off_boundary,
            },
            "probes": figures.probes,
            "instructions": figures.instructions,
            "instructions_without_line": figures.instructions_without_line,
            "warnings": binary.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    });
    let seen = outcome.seen.iter().map(|seen| {
        json!({
            "path": printable(&seen.path),
            "build_id": seen.build_id.as_ref().map(ToString::to_string),
            "samples": seen.samples,
            "branches": seen.branches,
        })
    });
    let outputs = outcome.encoded.iter().map(|encoded| {
        json!({
            "path": encoded.file,
            "format": encoded.form.name(),
            "losses": encoding_losses(encoded),
        })
    });
    let numbers = outcome.losses.numbers();
    let counted: serde_json::Map<String, Value> = numbers
        .into_iter()
        .map(|(name, number)| (name.replace('-', "_"), json!(number)))
        .collect();
    let recording = &outcome.losses.recording;
    json!({
        "schema": "profkit-sample",
        "schema_version": SCHEMA_VERSION,
        "plain_addresses": outcome.plain_addresses,
        "counted": counted,
        "context_memory": { "halvings": outcome.halvings, "shortened": outcome.shortened },
        "recording": {
            "lost_samples": recording.lost_samples,
            "lost_records": recording.lost_records,
            "throttled": recording.throttled,
            "damage": recording_damage(recording),
        },
        "binaries": binaries.collect::<Vec<_>>(),
        "in_inputs": seen.collect::<Vec<_>>(),
        "outputs": outputs.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_profgen::contexts::ContextFigures;

    #[test]
    fn a_recording_of_traces_names_the_command_that_decodes_them() {
        let mut outcome = Outcome::default();
        let hint = |outcome: &Outcome| refusal(outcome).map(|refusal| refusal.hint);
        assert!(hint(&outcome).is_some_and(|hint| hint.contains("profkit show")));
        outcome.losses.recording.traces = 2;
        assert!(hint(&outcome).is_some_and(|hint| hint.contains("perf inject --itrace=")));
        // The recording has samples without branches in addition to the traces.
        outcome.losses.samples = 3;
        outcome.seen = vec![RecordedBinary {
            path: b"app".to_vec(),
            build_id: None,
            samples: 3,
            branches: 0,
        }];
        outcome.binaries = vec![BinaryOutcome {
            found_by: Some(FoundBy::Name),
            ..BinaryOutcome::default()
        }];
        assert_eq!(outcome.problem(), Some(Problem::NoBranches));
        assert!(hint(&outcome).is_some_and(|hint| hint.contains("perf inject --itrace=")));
        outcome.losses.recording.traces = 0;
        assert!(hint(&outcome).is_some_and(|hint| hint.contains("perf record -b")));
    }

    /// Each field has a different number, so the test fails if a line prints the number of another line. The tests of
    /// the command make recordings and texts with most of these losses.
    #[test]
    fn each_loss_has_its_line_and_its_number() {
        let mut outcome = Outcome {
            plain_addresses: true,
            ..Outcome::default()
        };
        let losses = &mut outcome.losses;
        (losses.samples, losses.branches) = (1000, 2000);
        (losses.unmapped_samples, losses.unmapped_branches) = (10, 11);
        (losses.wrong_path, losses.not_taken, losses.gaps) = (12, 13, 14);
        (losses.without_ranges, losses.damaged_lines) = (15, 16);
        losses.imprecise = 17;
        let recording = &mut losses.recording;
        (recording.lost_samples, recording.lost_records) = (18, 1);
        recording.throttled = 20;
        let mut figures = Figures::default();
        figures.ranges = 100;
        figures.off_boundary = 21;
        figures.no_function = 22;
        figures.across_functions = 23;
        figures.impossible = 24;
        figures.outside_code = 25;
        figures.instructions = 200;
        figures.instructions_without_line = 26;
        let mut contexts = ContextFigures::default();
        contexts.samples = 300;
        contexts.branches = 400;
        contexts.invalid_return = 31;
        contexts.incomplete_chain = 32;
        contexts.impossible = 33;
        contexts.unpaired = 34;
        contexts.mismatched_calls = 35;
        contexts.without_probe = 36;
        contexts.searches_given_up = 37;
        outcome.binaries = vec![BinaryOutcome {
            path: "app".to_owned(),
            found_by: Some(FoundBy::BuildId),
            other_builds: 2,
            of_other_builds: 41,
            counted: 59,
            figures,
            contexts: Some(contexts),
            ..BinaryOutcome::default()
        }];
        insta::assert_snapshot!(lines(&outcome).join("\n"));
        let lost = lost(&outcome).expect("large losses");
        // The message about lost samples must not mention imprecise addresses: an imprecise sample is not lost.
        assert!(!lost.message.contains("too late"), "{}", lost.message);
        insta::assert_snapshot!(lost.message.replace("; ", ";\n"));
        outcome.plain_addresses = false;
        assert!(!lines(&outcome).iter().any(|line| line.contains("too late")));
    }

    #[test]
    fn searches_that_were_given_up_are_said() {
        let mut figures = ContextFigures::default();
        assert_eq!(
            losses_of_contexts(&figures)
                .into_iter()
                .find_map(Loss::line),
            None
        );
        figures.searches_given_up = 1234;
        let said: Vec<String> = losses_of_contexts(&figures)
            .into_iter()
            .filter_map(Loss::line)
            .collect();
        assert_eq!(
            said,
            [
                "1,234 places in the call chains still lack the frames that tail calls left out: the search for these frames would take too long"
            ]
        );
    }
}
