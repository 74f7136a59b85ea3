//! Finds the option whose name is nearest to an unknown word, for the suggestion "Did you mean".
use super::spec::{Commands, Tool};

/// Returns the name that LLVM suggests for an unknown option of a subcommand. If the suggested option takes a value,
/// `=` and the typed value follow. `None` if the typed word is empty, or if `command` is the program itself.
///
/// For the program itself, LLVM may suggest an option of any compiler library in the tool. profkit does not know these
/// options, and suggests nothing.
pub(super) fn nearest_option(tool: &Tool, command: Commands, typed: &[u8]) -> Option<Vec<u8>> {
    let order = (tool.nearest)(command);
    if typed.is_empty() {
        return None;
    }
    let (name, value) = match typed.iter().position(|&byte| byte == b'=') {
        Some(equals) => (typed.get(..equals)?, typed.get(equals + 1..)?),
        None => (typed, [].as_slice()),
    };
    let mut best: Option<(usize, Vec<u8>)> = None;
    for &candidate in order {
        let takes_value = !tool.find(command, candidate.as_bytes())?.takes_no_value();
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

/// Returns the subcommand whose name differs from the typed word by at most one inserted, deleted or replaced byte, if
/// there is one.
pub(super) fn nearest_command(tool: &Tool, typed: &[u8]) -> Option<&'static str> {
    tool.commands
        .iter()
        .map(|&(_, name)| name)
        .find(|name| edit_distance(name.as_bytes(), typed) < 2)
}

/// Returns the smallest number of insertions, deletions and replacements of bytes that turn one text into the other.
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

    /// The answers of llvm-profdata-22.
    #[test]
    fn of_options_that_are_equally_near_llvm_s_is_suggested() {
        let tool = &crate::profdata::TOOL;
        for (name, typed, expected) in [
            ("show", "similarity-cutoff=x", "value-cutoff=x"),
            ("overlap", "print-alp-list", "print-options"),
            ("overlap", "peip--islzzzzzozz", "help-list-hidden"),
            ("overlap", "valp--cut-fidzzn", "value-cutoff"),
            ("overlap", "samp-eiztzzizzzz", "sample"),
        ] {
            let command = tool.commands.iter().find(|(_, own)| *own == name);
            let suggested =
                command.and_then(|&(command, _)| nearest_option(tool, command, typed.as_bytes()));
            assert_eq!(suggested.as_deref(), Some(expected.as_bytes()), "{typed}");
        }
    }

    #[test]
    fn every_option_of_a_subcommand_can_be_suggested() {
        let tool = &crate::profdata::TOOL;
        for &(command, _) in tool.commands {
            for spec in tool.options {
                if spec.commands.intersects(command) && !spec.later {
                    let suggested = nearest_option(tool, command, spec.name.as_bytes());
                    assert_eq!(suggested.as_deref(), Some(spec.name.as_bytes()));
                }
            }
        }
    }
}
