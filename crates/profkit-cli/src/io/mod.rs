//! Turns the errors of [`profkit_merge::files`] into failures.
use crate::correlate::args::BinaryArgs;
use crate::exit::{Cause, Failure, Result, Status, must_exist, system_hint};
use crate::print::{self, grouped, plural};
use profkit_analysis::combine::{CombineError, Combined, combine, needs_binary};
use profkit_analysis::matching::{BinaryFunctions, Profiles, ProfilesError};
use profkit_data::detect::{FileKind, detect};
use profkit_data::path_text;
use profkit_merge::files::{
    Input, InputNote, ListError, Output, OutputError, ReadError, SingleInput,
};
use profkit_merge::{Inputs, MergeError, Threads};
use profkit_mip::create;
use profkit_report::merge::MergeReport;
use std::path::{Path, PathBuf};

impl From<ReadError> for Failure {
    #[cold]
    fn from(error: ReadError) -> Self {
        Failure::io("cannot be read", error.name, &error.error)
    }
}

/// Errors that say whether the command line is wrong, and what to do, as failures.
macro_rules! failures_of {
    ($($error:ty),+ $(,)?) => {$(
        impl From<$error> for Failure {
            #[cold]
            fn from(error: $error) -> Self {
                let failure = if error.is_usage() {
                    Failure::usage(&error)
                } else {
                    Failure::input(&error)
                };
                failure.with_hints(error.hint())
            }
        }
    )+};
}
failures_of!(
    OutputError,
    profkit_mip::profiles::Error,
    profkit_runtime::link::Error,
);
#[cfg(unix)]
failures_of!(profkit_mip_driver::runtime::Error);

impl From<create::Error> for Failure {
    #[cold]
    fn from(error: create::Error) -> Self {
        Failure::input(&error).with_hints(error.hint())
    }
}

impl From<ListError> for Failure {
    #[cold]
    fn from(error: ListError) -> Self {
        let failure = match &error {
            ListError::Missing(missing) => {
                let hint = missing
                    .first()
                    .and_then(|first| system_hint(Path::new(&first.name), &first.error));
                let cause = missing
                    .first()
                    .map(|first| Cause::system(first.name.clone(), &first.error));
                let failure = Failure::inputs(missing).with_hints(hint);
                cause.into_iter().fold(failure, Failure::because)
            }
            ListError::List { name, error } => {
                return Failure::io("the list cannot be read", name, error);
            }
            _ if error.is_usage() => Failure::usage(&error),
            _ => Failure::input(&error),
        };
        failure.with_hints(error.hint())
    }
}

/// Opens a file. If only its first bytes can be read, a warning says why.
pub fn open(path: &Path) -> Result<Input> {
    let input = Input::open(path)?;
    warn_of_front(&input);
    Ok(input)
}

/// A profile that a command reads. If the user named several, it is their sum.
pub struct Opened {
    pub input: Input,
    /// [`Status::InputBad`] if some of several profiles could not be used, or only in part.
    pub status: Status,
}

impl Opened {
    /// The status of a command that was done with this status.
    pub fn then(&self, status: Status) -> Status {
        match status {
            Status::Done => self.status,
            status => status,
        }
    }
}

/// Opens the profiles at these paths: a file, or the sum of several files, folders, archives and lists. Messages about
/// single files go to standard error.
pub fn open_profiles(
    paths: &[PathBuf],
    lists: &[PathBuf],
    binaries: Option<&BinaryArgs>,
) -> Result<Opened> {
    let binaries = binaries.filter(|binaries| binaries.is_used());
    let found = Profiles::find_all(paths, lists).map_err(not_found)?;
    let mut status = Status::Done;
    if let Profiles::Many(list) = &found {
        print::notes(&list.notes);
        if list.notes.iter().any(InputNote::is_damage) {
            status = Status::InputBad;
        }
    }
    let list = match found.or_the_only_one().map_err(not_found)? {
        Profiles::One(input) => {
            warn_of_front(&input);
            if matches!(detect(&input), FileKind::Part(_)) {
                let alone = SingleInput(&input);
                let (input, combined) = combined(input.name(), &alone, binaries)?;
                let inputs = plural(combined.report.totals.files, "input");
                print::notes([format_args!(
                    "{}: a part of a merge, of {inputs}",
                    input.name()
                )]);
                return Ok(Opened { input, status });
            }
            return Ok(Opened { input, status });
        }
        Profiles::Many(list) => list,
    };
    let name = match paths.iter().chain(lists).collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        [only] => path_text(only),
        [first, others @ ..] => format!("{} and {} more", path_text(first), others.len()),
    };
    if list.files.is_empty() {
        return Err(Failure::input(format_args!("{name}: no profile was found")));
    }
    let (input, combined) = combined(&name, &*list, binaries)?;
    let totals = &combined.report.totals;
    let used = totals.files_kept + totals.files_repaired;
    let all = plural(totals.files, "profile");
    let count = match used == totals.files {
        true => all,
        false => format!("{} of {all}", grouped(used)),
    };
    print::notes([format_args!("{name}: the sum of {count}")]);
    if totals.files_lost() + totals.files_repaired > 0 {
        status = Status::InputBad;
    }
    Ok(Opened { input, status })
}

/// Opens one profile, as [`open_profiles`] does. A raw profile that holds only counters gets its functions from the
/// binaries.
pub fn open_profile(path: &Path, binaries: &BinaryArgs) -> Result<Opened> {
    let opened = open_profiles(&[path.to_owned()], &[], Some(binaries))?;
    complete(opened, binaries)
}

/// Gives a raw profile that holds only counters its functions from the binaries.
pub fn complete(opened: Opened, binaries: &BinaryArgs) -> Result<Opened> {
    if !needs_binary(&opened.input) {
        return Ok(opened);
    }
    if !binaries.is_used() {
        return Err(Failure::input(format_args!(
            "{}: the profile holds counters and no functions: these are in the program that wrote it",
            opened.input.name()
        ))
        .with_hint("name the program or its debug file, or a folder that has it: --binaries PROGRAM"));
    }
    let alone = SingleInput(&opened.input);
    let (input, _) = combined(opened.input.name(), &alone, Some(binaries))?;
    Ok(Opened { input, ..opened })
}

fn combined(
    name: &str,
    inputs: &dyn Inputs,
    binaries: Option<&BinaryArgs>,
) -> Result<(Input, Combined)> {
    let mut notes = Vec::new();
    let index = binaries.map(|binaries| binaries.index(&mut notes, true));
    let index = index.transpose()?;
    let mut combined = combine(inputs, index.as_ref(), &Threads::default()).map_err(|error| {
        if let CombineError::Merge(
            MergeError::NothingLeft(report) | MergeError::Groups(_, report),
        ) = &error
        {
            print::tell(MergeReport::new(report).document());
        }
        let failure = Failure::input(format_args!("{name}: {error}")).with_hints(error.hint());
        match &error {
            CombineError::Merge(MergeError::Groups(conflict, _)) => {
                failure.with_hint(conflict.hint)
            }
            _ => failure,
        }
    })?;
    for assignment in &combined.assignments {
        match &assignment.outcome {
            Ok(matched) => {
                let path = path_text(&matched.path);
                let warnings = matched.warnings.list.iter();
                notes.extend(warnings.map(|warning| format!("{path}: {warning}")));
            }
            Err(error) => notes.push(error.to_string()),
        }
    }
    if let Some(heap) = &combined.heap {
        notes.extend(profkit_report::heap::notes(heap));
    }
    print::notes(&notes);
    print::tell(MergeReport::new(&combined.report).document());
    let bytes = std::mem::take(&mut combined.bytes);
    Ok((Input::from_bytes(name, bytes), combined))
}

fn not_found(error: ProfilesError) -> Failure {
    match error {
        ProfilesError::Read(error) => error.into(),
        ProfilesError::List(error) => error.into(),
    }
}

/// Writes what viewers show, and says so. A program that reads only the beginning of it is no error.
pub fn write_view(output: Output, path: &Path, bytes: &[u8]) -> Result<()> {
    match output.write(|sink| sink.put(bytes)) {
        Ok(_) => print::wrote(path),
        Err(error) if error.is_broken_pipe() => return Err(Failure::reader_gone()),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

pub fn add_binaries(functions: &mut BinaryFunctions, paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        must_exist(path)?;
        let opened = functions.open(path);
        opened.map_err(|error| Failure::file(path_text(path), &error))?;
    }
    Ok(())
}

pub fn warn_of_front(input: &Input) {
    if let Some(problem) = input.problem() {
        let name = input.name();
        print::say(format_args!(
            "warning: {name}: only the beginning is read, because {problem}"
        ));
    }
}
