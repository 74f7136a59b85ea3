//! `profkit mip`: coverage and call order at the cost of one instruction per function. One file per subcommand.
#[cfg(unix)]
pub mod cargo;
#[cfg(unix)]
pub mod cc;
mod covered;
mod create;
mod info;
mod instrument;
pub mod merge;
pub mod mipdata;
mod options;
mod order;
pub(crate) mod profile;
#[cfg(unix)]
mod runtime;
mod show;
mod use_;
mod yaml;

use crate::exit::Result;
use clap::{ArgMatches, Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "\
Example:
  profkit mip cc -- clang -O2 foo.c -o foo"
)]
pub struct MipArgs {
    #[command(subcommand)]
    command: MipCommand,
}

/// To add a subcommand, put it into a file beside this one. Then add a variant to this enum and a line to the `match`
/// below.
#[derive(Debug, Subcommand)]
enum MipCommand {
    /// Run a compiler and instrument its output
    #[cfg(unix)]
    Cc(cc::CcArgs),
    /// Run cargo and instrument the crates that it compiles
    #[cfg(unix)]
    Cargo(cargo::CargoArgs),
    /// Instrument a compiler's assembly
    Instrument(instrument::InstrumentArgs),
    /// Compute the order in which a linker should lay out functions
    Order(order::OrderArgs),
    /// Make files that compilers can use: lists of executed blocks, sample profiles
    Use(use_::UseArgs),
    /// Compare two profiles, as `profkit diff` does
    Diff(crate::diff::DiffArgs),
    /// Write the runtime that instrumented programs are linked with
    #[cfg(unix)]
    Runtime(runtime::RuntimeArgs),
    /// Create an empty profile of a binary or a map
    Create(create::CreateArgs),
    /// Merge raw files into the profile of their build
    Merge(merge::MergeArgs),
    /// Show the results of the runs, function by function
    Show(show::ShowArgs),
    /// List the functions that a run entered, or their source files or lines
    Covered(covered::CoveredArgs),
    /// Show how many functions and blocks there are, and how many were run
    Info(info::InfoArgs),
    /// Write a profile as YAML
    #[command(name = "mip2yaml")]
    ToYaml(yaml::ToYamlArgs),
    /// Read a profile from YAML
    #[command(name = "yaml2mip")]
    FromYaml(yaml::FromYamlArgs),
}

pub fn run(args: MipArgs, matches: &ArgMatches) -> Result {
    let matches = matches
        .subcommand()
        .map_or(matches, |(_, of_command)| of_command);
    match args.command {
        #[cfg(unix)]
        MipCommand::Cc(args) => cc::run(&args),
        #[cfg(unix)]
        MipCommand::Cargo(args) => cargo::run(&args),
        MipCommand::Instrument(args) => instrument::run(&args),
        MipCommand::Order(args) => order::run(&args),
        MipCommand::Use(args) => use_::run(&args),
        MipCommand::Diff(args) => crate::diff::run(&args, matches),
        #[cfg(unix)]
        MipCommand::Runtime(args) => runtime::run(&args),
        MipCommand::Create(args) => create::run(&args),
        MipCommand::Merge(args) => merge::run(&args),
        MipCommand::Show(args) => show::run(&args),
        MipCommand::Covered(args) => covered::run(&args),
        MipCommand::Info(args) => info::run(&args),
        MipCommand::ToYaml(args) => yaml::to_yaml(&args),
        MipCommand::FromYaml(args) => yaml::from_yaml(&args),
    }
}
