//! Suggests a profkit command for an input that could not be merged.
use profkit_data::ForeignFile;
use profkit_data::detect::Family;
use profkit_data::detect::FileKind;
use profkit_merge::{Difference, GroupConflict, Reason, Report};

/// Adds suggested commands to the hints of a report.
pub fn name_commands(report: &mut Report) {
    let is_mip = report.mip.is_some();
    for event in &mut report.events {
        if let Some(hint) = event.kind.and_then(|kind| command(kind, is_mip)) {
            event.hint = Some(hint.to_owned());
        }
        if event.reason == Reason::HashGenerationUnknown
            && let Some(hint) = &mut event.hint
        {
            hint.push_str(" (--llvm)");
        }
    }
}

/// Returns the hint for a file of a kind that is not merged; `None` if the library's own hint is enough.
fn command(kind: FileKind, is_mip: bool) -> Option<&'static str> {
    match kind {
        FileKind::MipMap if is_mip => {
            Some("make a profile from the map first: profkit mip create -p PROFILE MAP")
        }
        FileKind::ObjectFile if is_mip => None,
        FileKind::ObjectFile => Some(
            "run the program and name the profile that it writes; if raw profiles among the inputs need this program, name it with --binaries",
        ),
        _ if is_mip => Some(
            "give the file that a program built with `profkit mip cc` writes when it ends; its name is default.mipraw if no other name was set",
        ),
        FileKind::MemProfRaw => Some("profkit merge --binaries PROGRAM merges raw heap profiles"),
        FileKind::MemProfYaml => None,
        kind if kind.is_mip() => Some("`profkit mip merge -p PROFILE RAW…` merges MIP raw files"),
        kind if kind.is_sample() => None,
        FileKind::Foreign(ForeignFile::ProfileList) => {
            Some("give the list with -f: profkit merge -f LIST")
        }
        kind if kind.advice().is_some() => None,
        _ => Some("profkit doctor FILE says what the file is"),
    }
}

/// Returns the next step for the user if inputs cannot be merged with each other.
pub fn way_out(conflict: &GroupConflict) -> String {
    let families = || conflict.groups.iter().filter_map(|group| group.family);
    match conflict.difference {
        Difference::Level => {
            "`--only ir` or `--only front-end` merges one of the two kinds; --by-build-id DIR makes one profile for each program".to_owned()
        }
        Difference::Kind => {
            format!("{}; --by-build-id DIR makes one profile for each program", conflict.hint)
        }
        Difference::Hashes => format!(
            "{}; to merge them anyway, add --mixed-hashes",
            conflict.hint
        ),
        Difference::Family => {
            let only = |family| match family {
                Family::Instr => Some("--only instr"),
                Family::Sample => Some("--only sample"),
                Family::MemProf => Some("--only heap"),
                Family::Mip => None,
            };
            let options: Vec<_> = families().filter_map(only).collect();
            let mut hint = format!(
                "merge each kind by itself: profkit merge {} …",
                options.join(" …, profkit merge ")
            );
            if families().any(|family| family == Family::Mip) {
                hint.push_str(", profkit mip merge -p PROFILE RAW…");
            }
            hint
        }
    }
}
