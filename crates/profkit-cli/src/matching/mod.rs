//! `profkit match`: how much of a profile the functions of a binary, or of a newer profile, can use.
mod heap;

use crate::choice::choice;
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use crate::io::{Opened, add_binaries, complete, warn_of_front};
use crate::print::{self, AnnotateArgs, FORMATS, Format};
use clap::Args;
use profkit_analysis::combine::needs_binary;
use profkit_analysis::faults::Faults;
use profkit_analysis::matching::{
    BinaryFunctions, ProfileFunctions, Profiles, ProfilesError, profile_among,
};
use profkit_data::detect::detect;
use profkit_data::path_text;
use profkit_merge::Inputs;
use profkit_merge::files::{Input, InputList, InputNote, system_text};
use profkit_object::debug_files::SYSTEM_DEBUG_FOLDER;
use profkit_report::annotations::Annotations;
use profkit_report::matching::{MatchList, MatchReport};
use profkit_report::quoted;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
A function of the binary is matched if the profile has its name and the hash of its control
flow. It is changed if the profile has the name only with other hashes: the code has changed
since, and a compiler drops the counts. Otherwise it is unknown. Counts are those of the
profile. Binaries that were built with instrumentation (or with -profile-correlate) hold the
hashes. Other binaries are compared by their symbols, by name alone; so are MIP profiles.
If such a binary contains a function only as copies inlined into others, the function is found
in the debug info and counted separately, because its hash is not known. Sample profiles are
compared by name, and by checksum where both the profile and the binary (.pseudo_probe_desc)
have one. If a folder is given, all programs and libraries in it are read.

Instead of a binary, a profile of the new build can be given: it lists the names and hashes of
the functions that the new build has. It must be of the same kind, and complete: a sparse
profile lists only functions that ran, and so do sample profiles without a list of symbols.

Of a hot function that is lost, the likely successor is printed, and why it is taken for it:
the same name with another hash; a new function with the same hash, which is the only one with
this hash, stands between the same functions or has a similar name; or a new function with a
similar name, such as one in another namespace or with other parameters.

Of a heap profile, the frames of allocation contexts are looked for in the debug info of the
binaries, also where functions are inlined: a context is still there if all of its frames are.
--fail-under is then the share of bytes of such contexts.

If the first argument is a folder, an archive or a list of paths, each profile in it is compared
by itself, and --fail-under holds for each.

Examples:
  profkit match old.profdata build/app
  profkit match train.profdata build/app build/libcore.so --fail-under 90 --format json
  profkit match old.profdata new.profraw --fail-under 95
  profkit match train.profdata build/app --fail-under 90 --annotate github
  profkit match runs/ build/app --fail-under 90";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MatchArgs {
    /// An instrumentation, sample, heap or MIP profile; or a folder, an archive or a list of them
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,

    /// Programs and libraries that are to be compiled with the profile, folders of them, or profiles of their builds
    #[arg(value_name = "BINARY", required = true)]
    binaries: Vec<PathBuf>,

    /// Compare the heap profile in an indexed profile instead of its counters
    #[arg(long)]
    memory: bool,

    /// List at most this many of the hot functions, or of the frames and contexts, that are lost
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Exit with code 3 if less than this share of all counts is of matched functions, in percent; of heap profiles: of
    /// all bytes, of contexts that are still there
    #[arg(long, value_name = "PERCENT", value_parser = profkit_report::typed::percent)]
    fail_under: Option<f64>,

    /// Output format; docs/formats/match-json.md describes the JSON
    #[arg(long, value_parser = choice(FORMATS), default_value = "text", value_name = "FORMAT")]
    format: Format,

    /// For heap profiles: search this folder for the debug files of stripped binaries, as gdb does
    #[arg(long, value_name = "FOLDER", default_value = SYSTEM_DEBUG_FOLDER)]
    debug_file_directory: Vec<PathBuf>,

    #[command(flatten)]
    annotate: AnnotateArgs,

    /// Write function names as in the profile, without demangling them; the JSON has the mangled and the demangled
    /// names
    #[arg(long)]
    mangled: bool,
}

pub fn run(args: &MatchArgs) -> exit::Result {
    args.annotate.failure("profkit match", compare(args))
}

fn compare(args: &MatchArgs) -> exit::Result {
    match Profiles::find(&args.profile) {
        Ok(Profiles::One(input)) => compare_one(args, &input),
        Ok(Profiles::Many(list)) if only_heaps(&list) => {
            // Contexts are compared as one profile: the same ones are in the dumps of many runs.
            let paths = [args.profile.clone()];
            let opened = crate::io::open_profiles(&paths, &[], Some(&programs_of(args)))?;
            let status = heap::compare(args, &opened.input)?;
            Ok(opened.then(status))
        }
        Ok(Profiles::Many(list)) => compare_all(args, &list),
        Err(ProfilesError::Read(error)) => Err(error.into()),
        Err(ProfilesError::List(error)) => Err(error.into()),
    }
}

fn compare_one(args: &MatchArgs, input: &Input) -> exit::Result {
    warn_of_front(input);
    let whole = with_functions(args, input.name(), input.bytes())?;
    let input = whole.as_ref().unwrap_or(input);
    if heap::is_heap(args, input) {
        return heap::compare(args, input);
    }
    let profile = ProfileFunctions::parse(input).map_err(|error| {
        match profile_among(input, &args.binaries).map(path_text) {
            Some(profile) => {
                let name = input.name();
                let order = format_args!(
                    "{name}: this is a program or library, but the profile comes first"
                );
                let (profile, program) = (quoted(&profile), quoted(name));
                Failure::input(order)
                    .with_hint(format_args!("try `profkit match {profile} {program}`"))
            }
            None => Failure::file(input.name(), &error),
        }
    })?;
    let mut binaries = open_binaries(args, &profile)?;
    binaries.find_inlined(&profile);
    let others = binaries
        .binaries
        .iter()
        .map(|it| (it.path.as_str(), &it.damage));
    let is_damaged = warn_of_damage(others.chain([(input.name(), &profile.damage)]));
    let mut report = MatchReport::new(input.name(), &profile, &binaries, args.top);
    report.mangled = args.mangled;
    print::answer(&report, args.format)?;
    let reason = args.fail_under.and_then(|least| report.gate(least));
    finish(args, report.annotations(), reason.as_slice(), is_damaged)
}

/// Compares several profiles with the same binaries. The binaries are read once for all profiles of the same kind.
fn compare_all(args: &MatchArgs, list: &InputList) -> exit::Result {
    let mut all = MatchList::new(path_text(&args.profile));
    print::notes(&list.notes);
    let mut is_damaged = list.notes.iter().any(InputNote::is_damage);
    // The functions of the binaries, one element for each kind of profile: the kind decides what is read from binaries.
    let mut opened: Vec<BinaryFunctions> = Vec::new();
    for (index, file) in list.files.iter().enumerate() {
        let profile = match list.open(index, &mut Vec::new()) {
            Ok(data) => {
                let whole = with_functions(args, &file.name, data.as_ref())?;
                let bytes = whole.as_ref().map_or(data.as_ref(), |whole| whole.bytes());
                ProfileFunctions::parse(bytes).map_err(|error| error.to_string())
            }
            Err(error) => Err(system_text(&error)),
        };
        match profile {
            Ok(profile) => {
                is_damaged |= warn_of_damage([(file.name.as_str(), &profile.damage)]);
                let known = opened
                    .iter()
                    .position(|binaries| binaries.are_for(&profile));
                if known.is_none() {
                    let fresh = open_binaries(args, &profile)?;
                    let others = fresh.binaries.iter();
                    is_damaged |= warn_of_damage(others.map(|it| (it.path.as_str(), &it.damage)));
                    opened.push(fresh);
                }
                let at = known.unwrap_or(opened.len() - 1);
                let Some(binaries) = opened.get_mut(at) else {
                    continue;
                };
                binaries.find_inlined(&profile);
                let mut report = MatchReport::new(&file.name, &profile, binaries, args.top);
                report.mangled = args.mangled;
                all.push(report);
            }
            Err(reason) => {
                print::say(format_args!("warning: {}: {reason}", file.name));
                all.push_unreadable(file.name.clone(), reason);
            }
        }
    }
    if list.files.is_empty() {
        return Err(Failure::input(format_args!(
            "{}: no profile was found",
            all.from()
        )));
    }
    print::answer(&all, args.format)?;
    let reasons = args
        .fail_under
        .map(|least| all.gate(least))
        .unwrap_or_default();
    finish(
        args,
        all.annotations(),
        &reasons,
        is_damaged || !all.is_complete(),
    )
}

/// Gives a raw profile that holds only counters the functions of its binary, if that is among the binaries. `None` for
/// any other profile.
fn with_functions(args: &MatchArgs, name: &str, bytes: &[u8]) -> exit::Result<Option<Input>> {
    if !needs_binary(bytes) {
        return Ok(None);
    }
    let binaries = programs_of(args);
    if binaries.binaries.is_empty() {
        return Ok(None);
    }
    let opened = Opened {
        input: Input::from_bytes(name, bytes.to_vec()),
        status: Status::Done,
    };
    Ok(Some(complete(opened, &binaries)?.input))
}

/// The binaries of the command line, in which the programs of raw profiles are searched by build id.
pub fn programs_of(args: &MatchArgs) -> BinaryArgs {
    let is_binary = |path: &&PathBuf| path.is_dir() || !is_profile(path);
    BinaryArgs {
        binaries: args.binaries.iter().filter(is_binary).cloned().collect(),
        debug_file_directory: args.debug_file_directory.clone(),
        ..BinaryArgs::default()
    }
}

/// Whether a folder or list has heap profiles alone.
fn only_heaps(list: &profkit_merge::files::InputList) -> bool {
    let is_heap = |index: usize| {
        let data = list.open(index, &mut Vec::new());
        data.is_ok_and(|data| heap::is_heap_profile(data.as_ref()))
    };
    !list.files.is_empty() && (0..list.files.len()).all(is_heap)
}

fn is_profile(path: &Path) -> bool {
    Input::open(path).is_ok_and(|input| detect(&input).family().is_some())
}

fn open_binaries(args: &MatchArgs, profile: &ProfileFunctions) -> exit::Result<BinaryFunctions> {
    let mut binaries = BinaryFunctions::for_profile(profile);
    add_binaries(&mut binaries, &args.binaries)?;
    Ok(binaries)
}

/// Prints the first errors of profiles. Returns whether there are any.
fn warn_of_damage<'a>(profiles: impl IntoIterator<Item = (&'a str, &'a Faults)>) -> bool {
    let mut is_damaged = false;
    for (name, damage) in profiles {
        is_damaged |= damage.count > 0;
        for error in &damage.first {
            print::say(format_args!("warning: {name}: {error}"));
        }
    }
    is_damaged
}

fn finish(
    args: &MatchArgs,
    annotations: Annotations,
    reasons: &[String],
    is_damaged: bool,
) -> exit::Result {
    args.annotate.write(|list| {
        *list = annotations;
        for reason in reasons {
            list.error("profkit match: --fail-under", reason);
        }
    });
    Ok(
        exit::gate(args.format, ("--fail-under", args.fail_under), reasons)?.unwrap_or(
            match is_damaged {
                true => Status::InputBad,
                false => Status::Done,
            },
        ),
    )
}
