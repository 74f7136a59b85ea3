//! The native command line: which commands there are.
use crate::memprof::diff;
use crate::{completions, doctor, exit, matching, merge, mip, show};
use clap::builder::styling::Styles;
use clap::{Parser, Subcommand};
use profkit_abi::{indexed, mip as mip_abi, raw};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::OnceLock;

/// Merge, show, check and convert the profiles of LLVM-based compilers.
#[derive(Debug, Parser)]
#[command(
    name = "profkit",
    version,
    long_version = long_version(),
    styles = Styles::plain(),
    arg_required_else_help = true,
    subcommand_required = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = EXIT_CODES,
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  an input was bad, or the output could not be written
  2  the command line was wrong
  3  a gate that was asked for did not hold

Example:
  profkit merge *.profraw -o out.profdata";

/// The commands. To add one: its arguments and its `run` go into a module of their own, and a line into each half
/// of this file.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Merge profiles of one kind (instrumentation, sample, heap), whatever LLVM wrote them, and say what was repaired or dropped
    Merge(merge::MergeArgs),
    /// Join raw profiles that hold counters only to their binaries, by build id, and merge them
    Correlate(merge::CorrelateArgs),
    /// Say how much of a profile the functions of a binary can use, and which hot ones are lost
    Match(matching::MatchArgs),
    /// Show what is in a profile, for people or as JSON
    Show(show::ShowArgs),
    /// Say what changed between two heap profiles: contexts that grew, shrank, appeared and went
    Diff(diff::DiffArgs),
    /// Say what files are, which LLVM can use them, what is wrong with them and what to do
    Doctor(doctor::DoctorArgs),
    /// Convert a profile: instrumentation profiles to indexed or text, sample profiles to any encoding, heap profiles to YAML or indexed
    Convert(merge::ConvertArgs),
    /// Coverage and call order of optimised builds, from one instruction per function
    Mip(mip::MipArgs),
    /// Do exactly as LLVM's llvm-profdata does: its options, texts, exit codes and bytes
    #[command(disable_help_flag = true, after_help = profkit_llvm::profdata::EXAMPLE)]
    LlvmProfdata {
        /// Arguments as for llvm-profdata
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write those of all commands into a folder
    Man(completions::ManArgs),
}

impl Cli {
    /// Does what was asked for.
    pub fn run(self) -> ExitCode {
        exit::finish(match self.command {
            Command::LlvmProfdata { args } => {
                // Only reached with something before the command's name: `run` in lib.rs hands over without parsing.
                let program = std::iter::once(OsString::from("llvm-profdata"));
                return crate::llvm_profdata(program.chain(args).collect());
            }
            Command::Merge(args) => merge::merge(args),
            Command::Correlate(args) => merge::correlate(args),
            Command::Match(args) => matching::run(&args),
            Command::Convert(args) => merge::convert(args),
            Command::Show(args) => show::run(&args),
            Command::Diff(args) => diff::run(&args),
            Command::Mip(args) => mip::run(args),
            Command::Doctor(args) => doctor::run(&args),
            Command::Completions(args) => completions::print_script(&args),
            Command::Man(args) => completions::man(&args),
        })
    }
}

/// The text of `--version`.
fn long_version() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        format!(
            "{}\n\
             instrumentation profiles: reads raw {}-{}, indexed {}-{} and text (LLVM 3.5 to 23); writes indexed 3-{} and text (LLVM 3.8 to 22)\n\
             sample profiles: reads and writes text, binary, compact binary (LLVM 7 to 16), extensible binary (LLVM 10 to 22) and GCC's .afdo\n\
             heap profiles: reads raw 1-5; reads and writes MemProf sections 0-4 of indexed profiles and YAML (LLVM 14 to 22)\n\
             MIP profiles: reads and writes versions {} and {} and YAML",
            env!("CARGO_PKG_VERSION"),
            raw::VERSION_FIRST,
            raw::VERSION_LAST,
            indexed::VERSION_FIRST,
            indexed::VERSION_LAST,
            indexed::VERSION_LAST,
            mip_abi::v8::VERSION,
            mip_abi::VERSION,
        )
    })
}
