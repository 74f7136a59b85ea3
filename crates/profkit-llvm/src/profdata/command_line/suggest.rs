//! Suggestions ("Did you mean"): the option whose name is nearest to the typed word.
use super::options::{Commands, find};

// The orders in which LLVM 22 walks its tables of options. If several names are equally near to a typed word, LLVM
// suggests the first one. The orders were found by giving thousands of misspelt options to the tool. If two names are
// never equally near to a typed word, their order in these lists does not matter.
const MERGE_ORDER: &[&str] = &[
    "compress-all-sections",
    "convert-sample-profile-layout",
    "drop-profile-symbol-list",
    "dump-input-file-list",
    "gen-partial-profile",
    "h",
    "help-list-hidden",
    "instr-prof-cold-threshold",
    "keep-vtable-symbols",
    "max-debug-info-correlation-warnings",
    "memprof-full-schema",
    "memprof-random-hotness",
    "memprof-random-hotness-seed",
    "memprof-version",
    "output-size-limit",
    "print-all-options",
    "print-options",
    "debuginfod",
    "profiled-binary",
    "remapping-file",
    "sample-frame-depth-for-cold-context",
    "sample-merge-cold-context",
    "sample-trim-cold-context",
    "split-layout",
    "instr",
    "sample",
    "binary",
    "extbinary",
    "text",
    "gcc",
    "num-threads",
    "help-hidden",
    "help-list",
    "no-function",
    "failure-mode",
    "prof-sym-list",
    "sparse",
    "debug-info",
    "r",
    "f",
    "j",
    "o",
    "function",
    "suppl-min-size-threshold",
    "supplement-instr-with-sample",
    "temporal-profile-max-trace-length",
    "temporal-profile-trace-reservoir-size",
    "use-md5",
    "help",
    "input-files",
    "binary-file",
    "output",
    "weighted-input",
    "zero-counter-threshold",
];
const SHOW_ORDER: &[&str] = &[
    "binary-ids",
    "detailed-summary",
    "detailed-summary-cutoffs",
    "help-list-hidden",
    "list-below-cutoff",
    "max-debug-info-correlation-warnings",
    "print-all-options",
    "profile-version",
    "profiled-binary",
    "instr",
    "sample",
    "memory",
    "h",
    "show-prof-sym-list",
    "show-sec-info-only",
    "temporal-profile-traces",
    "value-cutoff",
    "all-functions",
    "print-options",
    "show-vtables",
    "debug-info",
    "counts",
    "hot-func-list",
    "showcs",
    "ic-targets",
    "function",
    "covered",
    "o",
    "json",
    "memop-sizes",
    "topn",
    "help-hidden",
    "text",
    "help",
    "help-list",
    "output",
    "show-format",
];
const ORDER_ORDER: &[&str] = &[
    "help-list-hidden",
    "print-all-options",
    "print-options",
    "h",
    "o",
    "help-hidden",
    "help",
    "help-list",
    "num-test-traces",
    "output",
];
const OVERLAP_ORDER: &[&str] = &[
    "print-all-options",
    "instr",
    "help-list-hidden",
    "sample",
    "print-options",
    "similarity-cutoff",
    "value-cutoff",
    "h",
    "o",
    "function",
    "help-hidden",
    "cs",
    "help-list",
    "help",
    "output",
];

/// The name that LLVM suggests for an unknown option of a subcommand. If that option has a value, `=` and the typed
/// value follow. `None` if the typed word is empty, or if `command` is the program itself.
///
/// For the program itself, LLVM suggests an option of any compiler library that the tool is linked with. profkit does
/// not know these options, and suggests nothing.
pub(super) fn nearest_option(command: Commands, typed: &[u8]) -> Option<Vec<u8>> {
    let order = match command {
        Commands::MERGE => MERGE_ORDER,
        Commands::SHOW => SHOW_ORDER,
        Commands::ORDER => ORDER_ORDER,
        Commands::OVERLAP => OVERLAP_ORDER,
        _ => return None,
    };
    if typed.is_empty() {
        return None;
    }
    let (name, value) = match typed.iter().position(|&byte| byte == b'=') {
        Some(equals) => (typed.get(..equals)?, typed.get(equals + 1..)?),
        None => (typed, [].as_slice()),
    };
    let mut best: Option<(usize, Vec<u8>)> = None;
    for &candidate in order {
        let takes_value = !find(command, candidate.as_bytes())?.takes_no_value();
        let compared = if takes_value { name } else { typed };
        let distance = edit_distance(candidate.as_bytes(), compared);
        if best.as_ref().is_some_and(|(least, _)| distance >= *least) {
            continue;
        }
        let mut suggestion = candidate.as_bytes().to_vec();
        if takes_value && !value.is_empty() {
            suggestion.push(b'=');
            suggestion.extend_from_slice(value);
        }
        best = Some((distance, suggestion));
    }
    best.map(|(_, suggestion)| suggestion)
}

/// Returns the subcommand whose name differs from the typed word by at most one edit (insertion, deletion or
/// replacement of a byte), if there is one.
pub(super) fn nearest_command(typed: &[u8]) -> Option<&'static str> {
    Commands::NAMED
        .iter()
        .map(|&(_, name)| name)
        .find(|name| edit_distance(name.as_bytes(), typed) < 2)
}

/// The number of insertions, deletions and replacements of bytes that turn one text into the other.
fn edit_distance(from: &[u8], to: &[u8]) -> usize {
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (index, from_byte) in from.iter().enumerate() {
        let mut left = index + 1;
        let mut row = Vec::with_capacity(above.len());
        row.push(left);
        for (to_byte, pair) in to.iter().zip(above.windows(2)) {
            let &[diagonal, up] = pair else { continue };
            left = (left + 1)
                .min(up + 1)
                .min(diagonal + usize::from(from_byte != to_byte));
            row.push(left);
        }
        above = row;
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let distance = |a: &str, b: &str| edit_distance(a.as_bytes(), b.as_bytes());
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("sparse", "spars"), 1);
    }

    #[test]
    fn every_option_of_a_subcommand_can_be_suggested() {
        for (command, _) in Commands::NAMED {
            for spec in super::super::OPTIONS {
                if spec.commands.intersects(command) {
                    let suggested = nearest_option(command, spec.name.as_bytes());
                    assert_eq!(suggested.as_deref(), Some(spec.name.as_bytes()));
                }
            }
        }
    }
}
