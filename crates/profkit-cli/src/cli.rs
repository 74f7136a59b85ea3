//! The native command line: the list of commands.
use crate::exit::{Failure, Status};
use crate::on_demand::OnDemand;
#[cfg(unix)]
use crate::pgo;
use crate::print::OutputArgs;
use crate::{
    completions, diff, doctor, exit, export, fold, layout, matching, merge, mip, order, overlap,
    report, runtime, sampling, show, verify,
};
use clap::builder::styling::Styles;
use clap::{ArgMatches, FromArgMatches, Parser, Subcommand};
use profkit_merge::RunOptions;
use profkit_merge::part::Merger;
use std::ffi::OsString;

/// Merge, show, check and convert the profiles of LLVM-based compilers.
#[derive(Debug, Parser)]
#[command(
    name = "profkit",
    // Not the name of the file, which ends in .exe on Windows.
    bin_name = "profkit",
    version,
    long_version = profkit_report::formats::long_version(),
    styles = styles(),
    arg_required_else_help = true,
    subcommand_required = true,
    max_term_width = 100,
    after_help = EXIT_CODES,
)]
pub struct Cli {
    #[command(flatten)]
    output: OutputArgs,

    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  an input was bad, or the output could not be written
  2  the command line was wrong
  3  a condition that was set, such as --fail-under, was not met
  130, 143  ended by Ctrl-C or SIGTERM: no output was changed

Example:
  profkit merge *.profraw -o out.profdata";

/// To add a command, put its arguments and its `run` function into a module of its own. Then add a variant to this enum
/// and a line to the `match` below.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Merge profiles of one kind (instrumentation, sample, heap) that any LLVM release wrote, and report what was
    /// repaired or dropped
    Merge(OnDemand<merge::MergeArgs>),
    /// Merge raw profiles that hold only counters, with their binaries, which are found by build id
    Correlate(OnDemand<merge::CorrelateArgs>),
    /// Report how much of a profile the functions of a binary can use, and which hot functions are lost
    Match(OnDemand<matching::MatchArgs>),
    /// Show the contents of a profile, for people or as JSON
    Show(OnDemand<show::ShowArgs>),
    /// Write one HTML page about a profile: functions, maps, flame graphs, what changed
    Report(OnDemand<report::ReportArgs>),
    /// Write a profile for the viewers of other tools: pprof, speedscope
    Export(OnDemand<export::ExportArgs>),
    /// Compare two profiles of one kind: functions or contexts that are new, gone, or whose share of the total moved
    Diff(OnDemand<diff::DiffArgs>),
    /// Order functions for a linker, so that the start of a program touches few pages
    Order(OnDemand<order::OrderArgs>),
    /// Order the basic blocks and functions of a program for clang and lld, from recordings with branch stacks
    Layout(OnDemand<layout::LayoutArgs>),
    /// Report how alike profiles are, two at a time: instrumentation, sample, heap or MIP profiles
    Overlap(OnDemand<overlap::OverlapArgs>),
    /// Make a sample profile (AutoFDO) of recordings of Linux perf and the binaries that ran
    Sample(OnDemand<sampling::SampleArgs>),
    /// Make a build faster: build it with instrumentation, train it, and build it again with the profile
    #[cfg(unix)]
    Pgo(OnDemand<pgo::PgoArgs>),
    /// Make a profile again of the runs that it was made of, and compare the bytes
    Verify(OnDemand<verify::VerifyArgs>),
    /// Examine files: what each one is, which LLVM releases can use it, what is wrong with it and what to do next
    Doctor(OnDemand<doctor::DoctorArgs>),
    /// Convert a profile: instrumentation profiles to indexed or text, sample profiles to any encoding, heap profiles to YAML or indexed
    Convert(OnDemand<merge::ConvertArgs>),
    /// Cut a profile down: by name, to the hottest functions, to a size; or redact its names
    Filter(OnDemand<merge::FilterArgs>),
    /// Fold new profiles into a store of parts, each once, and write the profile of the store: for cron and CI jobs
    Fold(OnDemand<fold::FoldArgs>),
    /// Record and use coverage and call order of optimised builds, at the cost of one instruction per function
    Mip(OnDemand<mip::MipArgs>),
    /// Write the runtime that instrumented programs are linked with instead of LLVM's, and print the options for it
    Runtime(OnDemand<runtime::RuntimeArgs>),
    /// Behave exactly like LLVM's llvm-profdata: the same options, texts, exit codes and bytes
    #[command(disable_help_flag = true, after_help = profkit_llvm::profdata::EXAMPLE)]
    LlvmProfdata(ToolArgs),
    /// Behave like LLVM's llvm-profgen: sample profiles of recordings, with the same options, texts and exit codes
    #[command(disable_help_flag = true, after_help = profkit_llvm::profgen::EXAMPLE)]
    LlvmProfgen(ToolArgs),
    /// Create, merge and show MIP profiles with the commands and texts of the tool that was proposed for LLVM
    #[command(disable_help_flag = true, after_help = mip::mipdata::EXAMPLE)]
    LlvmMipdata(ToolArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write the pages of all commands into a folder
    Man(completions::ManArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ToolArgs {
    /// Arguments of LLVM's tool
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl ToolArgs {
    fn run(self, tool: profkit_llvm::Tool) -> exit::Result {
        let name = std::iter::once(OsString::from(tool.name));
        let code = crate::llvm_tool(tool, name.chain(self.args).collect());
        Ok(Status::Code(code))
    }
}

impl Cli {
    /// Parses a command line with the parser that `Cli::command` returned. Also returns the `ArgMatches` of `clap`, which show whether an option was given.
    pub(crate) fn parse_with_matches(
        parser: &mut clap::Command,
        args: &[OsString],
    ) -> Result<(Self, ArgMatches), clap::Error> {
        let matches = parser.try_get_matches_from_mut(args)?;
        Ok((Self::from_arg_matches(&matches)?, matches))
    }

    /// Runs the command. `matches` are the second value that [`parse_with_matches`](Self::parse_with_matches) returned.
    pub(crate) fn run(self, matches: &ArgMatches) -> u8 {
        self.output.apply();
        exit::finish(self.execute(matches))
    }

    /// Runs a command that another program calls.
    pub(crate) fn called(self, matches: &ArgMatches) -> exit::Result {
        match self.command {
            Command::Merge(_)
            | Command::Match(_)
            | Command::Show(_)
            | Command::Diff(_)
            | Command::Doctor(_)
            | Command::Export(_) => self.execute(matches),
            _ => Err(
                Failure::usage("this command cannot be called by another program")
                    .with_hint("run it as a process"),
            ),
        }
    }

    pub(crate) fn merger(&self, run: RunOptions) -> exit::Result<Merger> {
        match &self.command {
            Command::Merge(OnDemand(args)) => merge::merger(args, run),
            _ => Err(Failure::usage("these are not the words of a merge")),
        }
    }

    fn execute(self, matches: &ArgMatches) -> exit::Result {
        let matches = matches
            .subcommand()
            .map_or(matches, |(_, of_command)| of_command);
        match self.command {
            // The branches for LLVM's tools are reached only if an option comes before the name of the tool. Otherwise
            // `run` in lib.rs runs the tool without parsing the arguments.
            Command::LlvmProfdata(tool) => tool.run(profkit_llvm::PROFDATA),
            Command::LlvmProfgen(tool) => tool.run(profkit_llvm::PROFGEN),
            Command::LlvmMipdata(tool) => {
                let name = std::iter::once(mip::mipdata::NAME.into());
                let code = mip::mipdata::run(&name.chain(tool.args).collect::<Vec<_>>());
                Ok(Status::Code(code))
            }
            Command::Merge(OnDemand(args)) => merge::merge(args, matches),
            Command::Correlate(OnDemand(args)) => merge::correlate(args, matches),
            Command::Match(OnDemand(args)) => matching::run(&args),
            Command::Convert(OnDemand(args)) => merge::convert(args),
            Command::Filter(OnDemand(args)) => merge::filter(args),
            Command::Show(OnDemand(args)) => show::run(&args, matches),
            Command::Report(OnDemand(args)) => report::run(&args),
            Command::Fold(OnDemand(args)) => fold::run(args),
            Command::Export(OnDemand(args)) => export::run(&args),
            Command::Diff(OnDemand(args)) => diff::run(&args, matches),
            Command::Order(OnDemand(args)) => order::run(&args),
            Command::Layout(OnDemand(args)) => layout::run(&args),
            Command::Overlap(OnDemand(args)) => overlap::run(&args),
            Command::Sample(OnDemand(args)) => sampling::run(&args),
            Command::Mip(OnDemand(args)) => mip::run(args, matches),
            #[cfg(unix)]
            Command::Pgo(OnDemand(args)) => pgo::pgo(&args),
            Command::Doctor(OnDemand(args)) => doctor::run(&args),
            Command::Verify(OnDemand(args)) => verify::run(&args),
            Command::Runtime(OnDemand(args)) => runtime::run(&args),
            Command::Completions(args) => completions::print_script(&args),
            Command::Man(args) => completions::man(&args),
        }
    }
}

const fn styles() -> Styles {
    let bold = clap::builder::styling::Style::new().bold();
    Styles::plain().header(bold).usage(bold)
}
