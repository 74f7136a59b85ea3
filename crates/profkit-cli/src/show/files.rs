//! The source files of functions, from the debug info of binaries: `--by file --binaries`.
use super::args::ShowArgs;
use crate::exit::{Failure, Result, must_exist};
use crate::print;
use profkit_analysis::ranking::GroupBy;
use profkit_data::path_text;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::{Declarations, DeclaringBinary};
use profkit_report::{Grouping, grouped, plural};

/// Some programs in folders may be unreadable. The notes name at most this many of them.
const MOST_NOTES: usize = 10;

/// The grouping that `--by` asks for, with the debug info that it needs.
#[derive(Debug)]
pub struct Groups {
    by: GroupBy,
    declarations: Option<Declarations>,
}

impl Groups {
    /// Reads the debug info of the binaries if `--by file` is given with binaries. `None` if `--by` is not given. Files
    /// that could not be read are reported on standard error.
    pub fn of(args: &ShowArgs) -> Result<Option<Self>> {
        let Some(by) = args.by else {
            return Ok(None);
        };
        let binaries = &args.correlation.binaries;
        let declarations = match by {
            GroupBy::File if !binaries.is_empty() => Some(read(args)?),
            _ => None,
        };
        Ok(Some(Groups { by, declarations }))
    }

    /// The grouping that `--by` asks for, of a profile that has the source files itself.
    pub fn of_located(args: &ShowArgs) -> Option<Self> {
        let declarations = None;
        args.by.map(|by| Groups { by, declarations })
    }

    pub fn grouping(&self) -> Grouping<'_> {
        Grouping {
            by: self.by,
            declarations: self.declarations.as_ref(),
        }
    }
}

fn read(args: &ShowArgs) -> Result<Declarations> {
    let binaries = &args.correlation.binaries;
    binaries.iter().try_for_each(|path| must_exist(path))?;
    let folders = DebugFolders {
        folders: args.correlation.debug_file_directory.clone(),
    };
    let declarations = Declarations::read(binaries, &folders).map_err(|error| {
        let failure = Failure::input(&error);
        failure.with_hints(error.hint())
    })?;
    let mut notes = Vec::new();
    for (path, error) in declarations.unreadable.iter().take(MOST_NOTES) {
        notes.push(format!("{}: skipped: {error}", path_text(path)));
    }
    let without = |binary: &&DeclaringBinary| binary.functions == 0;
    let first = declarations.binaries.iter().find(without);
    if declarations.is_empty() {
        let names: Vec<String> = binaries.iter().map(|path| path_text(path)).collect();
        return Err(Failure::input(format_args!(
            "{}: no debug info that names the source files of functions",
            names.join(", ")
        ))
        .with_hint(
            "compile with -g or -gline-tables-only, or give the debug file of a stripped program: --binaries PROGRAM.debug, or --debug-file-directory FOLDER",
        ));
    }
    if let Some(binary) = first {
        let all = declarations.binaries.iter().filter(without).count();
        let name = path_text(&binary.path);
        notes.push(format!(
            "{name}{}: no debug info that names source files",
            and_more(all - 1)
        ));
    }
    for binary in &declarations.binaries {
        let name = path_text(&binary.path);
        if binary.missing_split > 0 {
            notes.push(format!(
                "{name}: the split debug info (.dwo, .dwp) of {} was not found; functions that are only inlined there are missing",
                plural(binary.missing_split as u64, "compile unit")
            ));
        }
        if let Some(warning) = binary.warnings.first() {
            let more = and_more(binary.warnings.len() - 1);
            notes.push(format!("{name}: {warning}{more}"));
        }
    }
    print::notes(&notes);
    Ok(declarations)
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" and {} more", grouped(more)),
    }
}
