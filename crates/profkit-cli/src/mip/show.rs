//! `profkit mip show`: the results of the runs, function by function.
use super::profile::{ImageArgs, locate, open_any};
use crate::choice::choice;
use crate::exit::{Result, Status};
use crate::print::{self, FORMATS, Format};
use crate::show::BY;
use crate::spelling::pattern;
use clap::Args;
use profkit_analysis::ranking::GroupBy;
use profkit_report::mip::MipFunctions;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Source locations come from the profile, or from the file that --debug names.

Examples:
  profkit mip show program.mip
  profkit mip show -p program.mip --debug program -r '^ns::'
  profkit mip show -p program.mip --by file
  profkit mip show -p program.mip --format json | jq '.functions[] | select(.called_runs > 0)'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// The profile, its YAML, or a map
    #[arg(value_name = "FILE", required_unless_present = "profile")]
    file: Option<PathBuf>,

    /// The same as FILE
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    profile: Option<PathBuf>,

    /// Show only functions whose symbol has a match of this regular expression
    #[arg(short, long, value_name = "REGEX")]
    regex: Option<String>,

    /// Show sums for groups of functions: by source file, by Rust crate, or by namespace or module
    #[arg(long, value_parser = choice(BY), value_name = "WHAT")]
    by: Option<GroupBy>,

    #[command(flatten)]
    image: ImageArgs,

    /// Print mangled names, as the linker knows them
    #[arg(long)]
    mangled: bool,

    /// Output format; docs/formats/mip-json.md describes the JSON
    #[arg(long, value_parser = choice(FORMATS), default_value = "text", value_name = "FORMAT")]
    format: Format,
}

pub fn run(args: &ShowArgs) -> Result {
    let regex = pattern("--regex", args.regex.as_deref())?;
    let path = args.file.as_ref().or(args.profile.as_ref());
    let path = path.map_or(Path::new(""), PathBuf::as_path);
    let (name, mut profile, form) = open_any(path)?;
    if let Some(file) = &args.image.debug {
        locate(&mut profile, file, args.image.arch.as_deref())?;
    }
    let view = MipFunctions {
        path: &name,
        profile: &profile,
        form,
        wanted: &|function| {
            regex
                .as_ref()
                .is_none_or(|regex| regex.is_match(&function.name))
        },
        mangled: args.mangled,
        by: args.by.map(Into::into),
        most: usize::MAX,
    };
    print::answer(&view, args.format)?;
    Ok(Status::Done)
}
