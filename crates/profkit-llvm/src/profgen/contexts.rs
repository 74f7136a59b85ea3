//! Samples with call chains, and the profiles with calling contexts that are made from them.
use super::binary::{Binary, share};
use super::counts::{EXTERNAL, Stacks, warn_about_branches};
use super::unsymbolized::origin;
use crate::LLVM_23;
use crate::command_line::Parsed;
use crate::messages::{Fault, Session};
use crate::output;
use crate::profdata::thresholds;
use profkit_data::sample::SampleProfile;
use profkit_merge::files::Content;
use profkit_profgen::contexts::{
    ContextFigures, ContextOptions, Contexts, Samples, finish_again, make_profile, unwind_samples,
    write_contexts,
};

/// Returns the options for contexts that the command line sets.
pub fn options(parsed: &Parsed) -> ContextOptions {
    let mut options = ContextOptions::default();
    // The value -1 means no limit.
    let limit = |name| {
        parsed
            .signed(name)
            .and_then(|limit| usize::try_from(limit).ok())
    };
    let on = |name| parsed.given_flag(name) != Some(false);
    options.compress_recursion = limit("compress-recursion");
    options.max_depth = limit("csprof-max-context-depth");
    options.max_calls = Some(max_calls(parsed));
    options.infer_missing_frames = on("infer-missing-frames");
    if let Some(depth) = parsed.number("max-search-depth") {
        options.max_search_depth = u32::try_from(depth).unwrap_or(u32::MAX);
    }
    options.totals_of_lines = parsed.flag("update-total-samples");
    options.thresholds = thresholds(parsed);
    options.trim_cold = parsed.flag("trim-cold-profile");
    options.merge_cold = parsed.given_flag("csprof-merge-cold-context");
    if let Some(depth) = parsed.number("csprof-max-cold-context-depth") {
        options.cold_depth = usize::try_from(depth).unwrap_or(usize::MAX);
    }
    options.nest = on("gen-cs-nested-profile");
    options.keep_bases = parsed.flag("generate-merged-base-profiles");
    if !on("csspgo-preinliner") {
        options.preinline = None;
    }
    if let Some(how) = &mut options.preinline {
        let signed = |name, default: i32| parsed.signed(name).unwrap_or(default);
        let number = |name, default: u32| parsed.signed(name).map_or(default, i32::cast_unsigned);
        how.hot_threshold = signed("sample-profile-hot-inline-threshold", how.hot_threshold);
        how.cold_threshold = signed("sample-profile-cold-inline-threshold", how.cold_threshold);
        how.growth_limit = number("sample-profile-inline-growth-limit", how.growth_limit);
        how.limit_min = number("sample-profile-inline-limit-min", how.limit_min);
        how.limit_max = number("sample-profile-inline-limit-max", how.limit_max);
        how.was_inlined_factor = number(
            "csspgo-preinliner-multiplier-for-previous-inlining",
            how.was_inlined_factor,
        );
        how.code_sizes = on("use-context-cost-for-preinliner");
        how.replay = parsed.flag("csspgo-replay-preinline");
    }
    options
}

/// Returns the largest number of calls in a calling context before its addresses are symbolised. LLVM's tool uses the
/// smaller one of two options. The value -1 counts as an option that was not given. Any other negative value means no
/// limit.
fn max_calls(parsed: &Parsed) -> usize {
    const UNLIMITED: i32 = -1;
    let limits = [
        "csprof-max-context-depth",
        "csprof-max-unsymbolized-context-depth",
    ]
    .map(|name| parsed.signed(name).unwrap_or(UNLIMITED));
    let given = limits.into_iter().filter(|&limit| limit != UNLIMITED);
    let smallest = given.min();
    smallest
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX)
}

/// Finds the calling contexts of samples, and prints warnings about samples that do not fit the binary. Writes the
/// unsymbolized profile if the user asked for one.
pub fn unwind(
    parsed: &Parsed,
    binary: &Binary<'_>,
    samples: Samples,
    session: &Session<'_>,
) -> Result<Contexts, Fault> {
    let figures = samples.figures();
    if parsed.flag("show-detailed-warning") {
        for address in &figures.invalid_returns {
            let text = format!(
                "Truncated stack sample due to invalid return address at 0x{address:x}, likely caused by frame pointer omission"
            );
            session.warning(b"", &text);
        }
    }
    share(
        session,
        figures.invalid_returns.len() as u64,
        samples.len() as u64,
        "of truncated stack samples due to invalid return address, likely caused by frame pointer omission.",
    );
    let mut stacks = Stacks::default();
    for (branches, count) in samples.branches() {
        let end = |end: Option<u64>| end.unwrap_or(EXTERNAL);
        let branches = branches.iter().map(|&(from, to)| (end(from), end(to)));
        stacks.add(&branches.collect::<Vec<_>>(), count);
    }
    // The result is ignored: the ranges are checked only for the warnings.
    let _ = stacks.check(parsed, binary, session);
    if session.release() >= LLVM_23 {
        let end = |end: Option<u64>| end.unwrap_or(EXTERNAL);
        let stacks = samples
            .branches()
            .map(|(branches, _)| branches.iter().map(|&(from, to)| (end(from), end(to))));
        warn_about_branches(binary, stacks, session);
    }
    let contexts = unwind_samples(&binary.program, samples, &options(parsed));
    if contexts.figures.foreign_callers {
        if parsed.flag("show-detailed-warning") {
            let text = format!(
                "Profile context truncated due to missing probe for call instruction at 0x{EXTERNAL:x}"
            );
            session.warning(b"", &text);
        }
        share(
            session,
            1,
            contexts.counts.len() as u64,
            "of profiled contexts are truncated due to missing probe for call instruction.",
        );
    }
    warn(session, &contexts.figures);
    if parsed.flag("skip-symbolization") {
        let name = parsed.output();
        let output = output::create(session, name, Content::Text)?;
        let mut text = Vec::new();
        write_contexts(&contexts, origin(parsed, binary), &mut text)
            .map_err(|error| Fault::io(name, &error))?;
        output::write_bytes(session, output, name, |sink| sink.put(&text).map(Ok))?;
    }
    Ok(contexts)
}

fn warn(session: &Session<'_>, figures: &ContextFigures) {
    for (part, text) in [
        (
            figures.mismatched_calls,
            "of branches'source is a call instruction but doesn't match call frame stack, likely due to frame in prolog/epilog.",
        ),
        (
            figures.mismatched_outside,
            "of branches'source is a call instruction but doesn't match call frame stack, likely due to unwinding error of external frame.",
        ),
        (
            figures.left_and_back.saturating_mul(2),
            "of branches containing paired external address.",
        ),
        (
            figures.unpaired,
            "of branches containing external address but doesn't have another external address to pair, likely due to interrupt jmp or broken perf script.",
        ),
    ] {
        share(session, part, figures.branches, text);
    }
}

/// Makes the profile with calling contexts.
///
/// # Errors
/// If the pseudo probes are damaged. LLVM's tool crashes in this case.
pub fn profile(
    parsed: &Parsed,
    binary: &Binary<'_>,
    contexts: &Contexts,
) -> Result<SampleProfile, Fault> {
    make_profile(&binary.program, contexts, &options(parsed))
        .map(|(made, _)| made.profile)
        .map_err(|error| Fault::of(parsed.text("binary"), error.to_string()))
}

/// Repeats the last steps of making a profile with contexts, for a profile that llvm-profgen has written earlier.
///
/// # Errors
/// If the pseudo probes of the binary are damaged. LLVM's tool crashes in this case.
pub fn again(
    parsed: &Parsed,
    binary: &Binary<'_>,
    profile: SampleProfile,
) -> Result<SampleProfile, Fault> {
    finish_again(&binary.program, profile, &options(parsed))
        .map(|(made, _)| made.profile)
        .map_err(|error| Fault::of(parsed.text("binary"), error.to_string()))
}
