//! The losses that the report of `profkit sample` has a line for.
use crate::loss::{BRANCH, Loss, RANGE, SAMPLE};
use profkit_perf::collect::CountLosses;
use profkit_profgen::contexts::ContextFigures;
use profkit_profgen::{BinaryOutcome, Figures, Outcome};

/// The samples whose addresses may be imprecise, which matters if addresses are counted, not branches.
pub(super) fn skid(losses: &CountLosses) -> Loss {
    let text = "may be at an instruction a little after the right one, because the event is not precise: record with \
         -e cycles:pp if the processor can";
    Loss::new(losses.imprecise, losses.samples, SAMPLE, text)
}

/// The samples that were shortened to save memory. No sample is lost by that.
pub(super) fn shortened(outcome: &Outcome) -> Loss {
    let text = "{is|are} shortened, because all distinct samples together need more memory than --context-memory \
         allows";
    Loss::new(outcome.shortened, outcome.losses.samples, SAMPLE, text)
}

pub(super) fn losses_of_counting(losses: &CountLosses) -> [Loss; 8] {
    const UNMAPPED: &str = "{is at an address|are at addresses} where no file was mapped";
    let recording = &losses.recording;
    let lost = recording
        .lost_samples
        .saturating_add(recording.lost_records);
    let sample = |number, happened| Loss::new(number, losses.samples, SAMPLE, happened);
    let branch = |number, happened| Loss::new(number, losses.branches, BRANCH, happened);
    [
        sample(losses.unmapped_samples, UNMAPPED),
        branch(losses.unmapped_branches, UNMAPPED),
        branch(
            losses.wrong_path,
            "{was|were} left out: the processor only speculated on {it|them}",
        ),
        branch(
            losses.not_taken,
            "{was left out: it was|were left out: they were} not taken",
        ),
        branch(
            losses.gaps,
            "{leads|lead} into another binary than the one that ran next",
        ),
        sample(
            losses.without_ranges,
            "{has|have} no complete list of branches, so only {its|their} calls are counted",
        ),
        Loss::new(
            lost,
            losses.samples.saturating_add(lost),
            SAMPLE,
            "{was|were} lost while recording",
        ),
        Loss::new(
            losses.damaged_lines,
            0,
            "{line|lines}",
            "of the input cannot be read, and {was|were} left out",
        ),
    ]
}

pub(super) fn losses_of_binary(figures: &Figures) -> [Loss; 8] {
    let range = |number, happened| Loss::new(number, figures.ranges, RANGE, happened);
    let branch = |number, happened| Loss::new(number, figures.branches_inside, BRANCH, happened);
    [
        range(
            figures.off_boundary,
            "{begins or ends|begin or end} inside an instruction: perhaps the samples are of another build",
        ),
        range(
            figures.no_function,
            "{is|are} outside all functions of the debug info",
        ),
        range(
            figures.across_functions,
            "{goes on after the end of its|go on after the end of their} function",
        ),
        range(
            figures.impossible,
            "{runs|run} across an unconditional jump, or {ends before it begins|end before they begin}",
        ),
        Loss::new(
            figures.outside_code,
            figures.ranges.saturating_add(figures.outside_code),
            RANGE,
            "{is|are} outside all sections with code",
        ),
        Loss::new(
            figures.instructions_without_line,
            figures.instructions,
            "{instruction|instructions}",
            "{has|have} no source line",
        ),
        branch(
            figures.not_branches,
            "{begins|begin} at an instruction that is no branch: perhaps the samples are of another build",
        ),
        branch(
            figures.other_targets,
            "{leads|lead} elsewhere than the branch instruction at {its|their} start: perhaps the samples are of another build",
        ),
    ]
}

pub(super) fn of_other_builds(binary: &BinaryOutcome) -> Loss {
    Loss::new(
        binary.of_other_builds,
        binary.of_other_builds.saturating_add(binary.counted),
        SAMPLE,
        "{is of another build|are of other builds} of the binary",
    )
}

pub(super) fn losses_of_contexts(figures: &ContextFigures) -> [Loss; 7] {
    let sample = |number, happened| Loss::new(number, figures.samples, SAMPLE, happened);
    let branch = |number, happened| Loss::new(number, figures.branches, BRANCH, happened);
    [
        sample(
            figures.invalid_return,
            "{has|have} a call chain that was cut at a return address with no call instruction before it: compile with \
             -fno-omit-frame-pointer",
        ),
        sample(
            figures.incomplete_chain,
            "{is|are} at the start or the end of a function, where the call chain lacks a caller",
        ),
        branch(
            figures.impossible,
            "{has|have} no context: a more recent range of {its|their} sample runs across an unconditional jump, or ends \
             before it begins",
        ),
        branch(
            figures.unpaired,
            "{goes|go} out of the binary with no later branch of {its|their} sample that comes back, or {comes|come} back \
             with no earlier one that goes out: the older branches of the sample have no context",
        ),
        branch(
            figures.mismatched_calls,
            "{is a call that does|are calls that do} not match the call {chain of its sample: the chain has another \
             address|chains of their samples: the chains have other addresses} there",
        ),
        Loss::new(
            figures.without_probe,
            0,
            "{context|contexts}",
            "{was|were} cut, because a call site has no pseudo probe",
        ),
        Loss::new(
            figures.searches_given_up,
            0,
            "{place|places}",
            "in the call chains still {lacks|lack} the frames that tail calls left out: the search for these frames would \
             take too long",
        ),
    ]
}
