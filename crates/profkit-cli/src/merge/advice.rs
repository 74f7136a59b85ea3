//! Which command of profkit helps with an input that could not be merged.
use profkit_data::detect::FileKind;
use profkit_merge::Report;

/// Puts the commands that help into the hints of a report.
pub fn name_commands(report: &mut Report) {
    let is_mip = report.mip.is_some();
    for event in &mut report.events {
        if let Some(hint) = event.kind.and_then(|kind| command(kind, is_mip)) {
            event.hint = Some(hint.to_owned());
        }
    }
}

/// What to do with a file of a kind that is not merged; `None` if the library's hint says it.
fn command(kind: FileKind, is_mip: bool) -> Option<&'static str> {
    match kind {
        FileKind::MipMap if is_mip => {
            Some("a profile is made of a map first: profkit mip create -p PROFILE MAP")
        }
        FileKind::ObjectFile => None,
        _ if is_mip => Some(
            "raw files are what a program built with profkit mip cc writes when it ends, default.mipraw",
        ),
        FileKind::MemProfRaw => Some("profkit merge --binaries PROGRAM takes raw heap profiles"),
        FileKind::MemProfYaml => None,
        kind if kind.is_mip() => Some("profkit mip merge -p PROFILE RAW… merges MIP raw files"),
        kind if kind.is_sample() => None,
        _ => Some("profkit doctor FILE says what the file is"),
    }
}
