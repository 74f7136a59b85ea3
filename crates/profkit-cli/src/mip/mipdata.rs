//! `llvm-mipdata`: the tool that was proposed for LLVM together with MIP and never released, with its commands, options
//! and texts. It works on the files that profkit makes, and on those of the proposal.
use super::profile::{ImageArgs, locate, make, open, stage};
use crate::exit::{self, Failure, Result, Status};
use crate::print;
use crate::spelling::pattern;
use clap::{Args, Parser, Subcommand};
use profkit_analysis::order::by_mean;
use profkit_data::mip::{Function, MipProfile, MipWriteOptions, ProfileVersion, yaml};
use profkit_merge::files::{Content, FolderLocks, InputList, Output, check_outputs};
use profkit_merge::mip::{MipMergeOptions, MipTarget, merge_mip};
use profkit_merge::{Action, RunOptions};
use profkit_report::mip::{CoveredForm, MipCovered, proposal};
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The name of the tool.
pub const NAME: &str = "llvm-mipdata";
/// The line of `--version`: the version of the formats, which the proposal never raised.
const VERSION: &str = "MIP Version 8";

/// The example at the end of the help.
pub const EXAMPLE: &str = "\
Example:
  objcopy --dump-section=__llvm_mipmap=app.mipmap app
  profkit llvm-mipdata create -p app.mip app.mipmap
  profkit llvm-mipdata merge -p app.mip default.mipraw
  profkit llvm-mipdata show -p app.mip";

/// Whether a program with this name is the tool, as in `/usr/bin/llvm-mipdata-22`.
pub fn is_program(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(NAME.as_bytes())
}

#[derive(Debug, Parser)]
#[command(
    name = NAME,
    about = "Create, merge and show MIP profiles with the commands and texts of the tool that was proposed for LLVM",
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = EXAMPLE
)]
struct MipData {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create an empty profile of a map, or of a program that has one
    Create {
        /// The map, or the program
        #[arg(value_name = "MAP")]
        input: PathBuf,
        #[command(flatten)]
        profile: ProfileArg,
    },
    /// Merge raw files into a profile
    Merge {
        /// The raw files
        #[arg(required = true, value_name = "RAW")]
        inputs: Vec<OsString>,
        /// Merge nothing if a raw file cannot be used
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        profile: ProfileArg,
    },
    /// Show the functions of a profile
    Show(ShowArgs),
    /// Print the functions in the order of their first calls
    Order {
        #[command(flatten)]
        profile: ProfileArg,
        #[command(flatten)]
        text: TextArgs,
    },
    /// List the functions that were called
    Covered {
        #[command(flatten)]
        show: ShowArgs,
        /// Print source files; needs --debug
        #[arg(long, requires = "debug", conflicts_with = "lines")]
        paths: bool,
        /// Print source files and lines; needs --debug
        #[arg(long, requires = "debug")]
        lines: bool,
    },
    /// Print the numbers of functions, blocks and call edges
    Info {
        #[command(flatten)]
        profile: ProfileArg,
        #[command(flatten)]
        output: OutputArg,
    },
    /// Write a profile as YAML
    #[command(name = "mip2yaml")]
    ToYaml {
        #[command(flatten)]
        profile: ProfileArg,
        #[command(flatten)]
        output: OutputArg,
        #[command(flatten)]
        image: ImageArgs,
    },
    /// Read a profile from YAML
    #[command(name = "yaml2mip")]
    FromYaml {
        /// The YAML; - is standard input
        #[arg(default_value = "-", value_name = "YAML")]
        input: PathBuf,
        #[command(flatten)]
        profile: ProfileArg,
    },
}

#[derive(Debug, Args)]
struct ProfileArg {
    /// The profile
    #[arg(short, long, value_name = "FILE")]
    profile: PathBuf,
}

#[derive(Debug, Args)]
struct OutputArg {
    /// Write to this file; - is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, Args)]
struct TextArgs {
    #[command(flatten)]
    output: OutputArg,

    /// Only functions whose symbol has a match of this regular expression
    #[arg(short, long, value_name = "REGEX")]
    regex: Option<String>,
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    profile: ProfileArg,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    image: ImageArgs,
}

/// Runs the tool with these arguments. The first argument is the program's name.
pub fn run(args: &[OsString]) -> u8 {
    let words = args.iter().skip(1);
    if words.clone().any(|word| word == "--version") {
        return exit::finish(printed(writeln!(print::stdout(), "{VERSION}")));
    }
    match MipData::try_parse_from(args) {
        Ok(parsed) => exit::finish(execute(&parsed.command).map_err(Failure::into_input)),
        Err(error) if error.use_stderr() => {
            // The proposal's tool ends with 1 for every error.
            exit::command_line(&error);
            1
        }
        Err(error) => exit::command_line(&error),
    }
}

fn execute(command: &Command) -> Result {
    match command {
        Command::Create { input, profile } => create(input, &profile.profile),
        Command::Merge {
            inputs,
            strict,
            profile,
        } => merge(inputs, *strict, &profile.profile),
        Command::Show(args) => {
            let profile = opened(args)?;
            let terminal = args.text.output.output == Path::new("-") && io::stdout().is_terminal();
            let regex = pattern("--regex", args.text.regex.as_deref())?;
            let wanted = |function: &Function| {
                let regex = regex.as_ref();
                regex.is_none_or(|regex| regex.is_match(&function.name))
            };
            write(&args.text.output, &args.profile, |out| {
                proposal::show(&profile, &wanted, terminal, out)
            })
        }
        Command::Order { profile, text } => order(profile, text),
        Command::Covered { show, paths, lines } => covered(show, *paths, *lines),
        Command::Info { profile, output } => {
            let opened = open(&profile.profile)?;
            write(output, profile, |out| proposal::info(&opened.profile, out))
        }
        Command::ToYaml {
            profile,
            output,
            image,
        } => {
            let mut opened = open(&profile.profile)?;
            if let Some(file) = &image.debug {
                locate(&mut opened.profile, file, image.arch.as_deref())?;
            }
            let mut text = Vec::new();
            let options = MipWriteOptions::new().version(opened.version);
            yaml::write(&opened.profile, &options, &mut text)
                .map_err(|error| Failure::file(&opened.name, &error))?;
            write(output, profile, |out| out.write_all(&text))
        }
        Command::FromYaml { input, profile } => {
            check_outputs(&[("the profile", Some(&profile.profile))], [input])?;
            let yaml = crate::io::open(input)?;
            let (made, version) =
                yaml::parse(&yaml).map_err(|error| Failure::file(yaml.name(), &error))?;
            stage(&profile.profile, &made, version)?.finish()?;
            remark(format_args!("Wrote profile to {}", name(&profile.profile)));
            Ok(Status::Done)
        }
    }
}

fn create(input: &Path, profile: &Path) -> Result {
    check_outputs(&[("the profile", Some(profile))], [input])?;
    let made = make(input, &ImageArgs::default(), None)?;
    // A map of the proposal has no build id but a module hash, which its profiles have too.
    let version = match made.profile.identity {
        profkit_data::mip::Identity::ModuleHash(_) => ProfileVersion::V8,
        profkit_data::mip::Identity::BuildId(_) => ProfileVersion::V9,
    };
    stage(profile, &made.profile, version)?.finish()?;
    for dropped in &made.dropped {
        print::say(format_args!("warning: {dropped}"));
    }
    remark(format_args!("Wrote empty profile to {}", name(profile)));
    Ok(Status::Done)
}

fn merge(inputs: &[OsString], strict: bool, path: &Path) -> Result {
    let inputs = InputList::collect(inputs, &[], Some(path))?;
    // Two merges at the same time would both add to what the profile was before.
    let locks = FolderLocks::of([path], |_| {});
    for failed in &locks.failed {
        print::say(format_args!("warning: {failed}"));
    }
    let opened = open(path)?;
    let target = MipTarget {
        name: name(path),
        profile: opened.profile,
    };
    let merged = merge_mip(
        vec![target],
        &inputs,
        &MipMergeOptions::new().run(RunOptions::new()),
    );
    let merged = merged.map_err(Failure::input)?;
    let refused = merged.report.events.iter();
    let refused =
        refused.filter(|event| event.action == Action::Dropped && event.function.is_none());
    for event in refused {
        print::say(format_args!("error: {}: {}", event.file, event.message));
    }
    let totals = &merged.report.totals;
    let used = totals.files_kept + totals.files_repaired;
    if strict && used < totals.files {
        return Err(Failure::input("nothing was merged, because of --strict"));
    }
    if used == 0 {
        return Err(Failure::input("none of the raw profiles can be merged"));
    }
    let Some(target) = merged.targets.first() else {
        return Err(Failure::input("nothing was merged"));
    };
    stage(path, &target.profile, opened.version)?.finish()?;
    remark(format_args!(
        "Merged {used} raw profiles into {}",
        name(path)
    ));
    Ok(Status::Done)
}

fn order(profile: &ProfileArg, text: &TextArgs) -> Result {
    let opened = open(&profile.profile)?;
    let regex = pattern("--regex", text.regex.as_deref())?;
    let mut order = by_mean(&opened.profile);
    if let Some(regex) = &regex {
        order.retain(|&id| regex.is_match(&opened.profile.functions[id].name));
    }
    write(&text.output, profile, |out| {
        proposal::names(&opened.profile, &order, out)
    })?;
    remark(format_args!("Ordered {} functions", order.len()));
    Ok(Status::Done)
}

fn covered(args: &ShowArgs, paths: bool, lines: bool) -> Result {
    let profile = opened(args)?;
    let regex = pattern("--regex", args.text.regex.as_deref())?;
    let list = MipCovered {
        profile: &profile,
        wanted: &|function| {
            let regex = regex.as_ref();
            regex.is_none_or(|regex| regex.is_match(&function.name))
        },
        form: match args.image.debug {
            _ if lines => CoveredForm::Lines,
            _ if paths => CoveredForm::Paths,
            Some(_) => CoveredForm::Frames,
            None => CoveredForm::Names,
        },
        mangled: args.image.debug.is_none(),
    };
    let mut text = Vec::new();
    let counts = list
        .text(&mut text)
        .map_err(|error| Failure::print(&error))?;
    write(&args.text.output, &args.profile, |out| out.write_all(&text))?;
    if counts.without_location > 0 {
        print::say(format_args!(
            "warning: {} functions without source info",
            counts.without_location
        ));
    }
    remark(format_args!(
        "{} total functions are covered",
        counts.covered
    ));
    Ok(Status::Done)
}

fn opened(args: &ShowArgs) -> Result<MipProfile> {
    let mut opened = open(&args.profile.profile)?;
    if let Some(file) = &args.image.debug {
        locate(&mut opened.profile, file, args.image.arch.as_deref())?;
    }
    Ok(opened.profile)
}

/// Writes text to the output that was asked for, which must not be the profile.
fn write(
    output: &OutputArg,
    profile: &ProfileArg,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result {
    check_outputs(&[("the output", Some(&output.output))], [&profile.profile])?;
    let mut bytes = Vec::new();
    text(&mut bytes).map_err(|error| Failure::print(&error))?;
    if output.output == Path::new("-") {
        let mut out = io::stdout().lock();
        return printed(out.write_all(&bytes).and_then(|()| out.flush()));
    }
    Output::new(&output.output, Content::Text)?.write(|sink| sink.put(&bytes))?;
    Ok(Status::Done)
}

fn printed(result: io::Result<()>) -> Result {
    result.map_err(|error| Failure::print(&error))?;
    Ok(Status::Done)
}

fn name(path: &Path) -> String {
    profkit_data::path_text(path)
}

fn remark(text: impl std::fmt::Display) {
    print::say(format_args!("remark: {text}"));
}
