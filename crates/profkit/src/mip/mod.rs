//! `profkit mip`: coverage and call order at the cost of one instruction. One file a subcommand.
pub mod cc;
mod diff;
mod instrument;
mod options;
mod order;
mod profile_input;
mod runtime;
mod use_;

pub use options::ModeArgs;

use crate::exit::Result;
use clap::{Args, Subcommand};

/// Arguments of `profkit mip`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    subcommand_required = true,
    disable_help_subcommand = true,
    after_help = "\
Example:
  profkit mip cc -- clang -O2 foo.c -o foo"
)]
pub struct MipArgs {
    #[command(subcommand)]
    command: MipCommand,
}

/// The subcommands. To add one: a file beside this one, and a line into each half of this file.
#[derive(Debug, Subcommand)]
enum MipCommand {
    /// Run a compiler so that what it makes is instrumented
    Cc(cc::CcArgs),
    /// Put probes into a compiler's assembly
    Instrument(instrument::InstrumentArgs),
    /// Make the order in which a linker should lay out functions
    Order(order::OrderArgs),
    /// Make what compilers can use: lists of executed blocks, sample profiles
    Use(use_::UseArgs),
    /// Compare two profiles: functions called anew, no more, earlier, later
    Diff(diff::DiffArgs),
    /// Write the runtime that instrumented programs are linked with
    Runtime(runtime::RuntimeArgs),
}

/// Does what was asked for.
///
/// # Errors
/// Those of the subcommand.
pub fn run(args: MipArgs) -> Result {
    match args.command {
        MipCommand::Cc(args) => cc::run(&args),
        MipCommand::Instrument(args) => instrument::run(&args),
        MipCommand::Order(args) => order::run(&args),
        MipCommand::Use(args) => use_::run(&args),
        MipCommand::Diff(args) => diff::run(&args),
        MipCommand::Runtime(args) => runtime::run(&args),
    }
}
