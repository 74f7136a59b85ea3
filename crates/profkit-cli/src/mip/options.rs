//! The options of all commands that instrument assembly.
use crate::exit::{Failure, Result};
use clap::{Args, ValueEnum};
use profkit_mip::instrument::{Counter, IgnoreList, Mode, Options};
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What is recorded")]
pub struct ModeArgs {
    /// What to record: function or calls, and block in addition to either
    ///
    /// function: whether each function was entered. calls: how often each function was called, and in which order the
    /// first calls came. block: whether each block was run; block alone means function,block.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "MODE",
        default_value = "function"
    )]
    mode: Vec<ModeArg>,

    /// The counter of mode function: store (entered or not; 7 bytes of code per function) or unary (0 to 8 calls; 6
    /// bytes)
    #[arg(long, value_enum, value_name = "COUNTER")]
    counter: Option<CounterArg>,

    /// With mode calls: also record who calls whom, by samples of the whole run in a table of N pairs of call site and
    /// called function
    #[arg(long, value_name = "N", value_parser = profkit_report::typed::between(1, 1_u32 << 24))]
    return_addresses: Option<u32>,

    /// With mode calls: count atomically, so that counts are exact in programs with several threads
    ///
    /// Without it, threads that call one function at the same time may lose calls. An atomic addition takes longer, also
    /// in a program with one thread.
    #[arg(long)]
    atomic: bool,
    /// With mode block: give every block a probe, also those whose coverage follows from other blocks
    #[arg(long)]
    all_blocks: bool,

    /// Do not instrument functions with fewer than N instructions
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_instructions: usize,

    /// Divide the functions into N groups by the hash of their name, and instrument only one group
    #[arg(long, value_name = "N", requires = "group", value_parser = profkit_report::typed::between(1, u64::MAX))]
    groups: Option<u64>,

    /// The index of the group to instrument, from 0
    #[arg(long, value_name = "I", requires = "groups")]
    group: Option<u64>,

    /// Do not instrument the functions that this list names
    ///
    /// The list has the form of the sanitizers' lists: section [mip], with lines fun:GLOB or src:GLOB. =block, =calls
    /// or =function after the pattern leaves out only what that mode records.
    #[arg(long, value_name = "FILE")]
    ignorelist: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    Function,
    Block,
    Calls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CounterArg {
    Store,
    Unary,
}

impl ModeArgs {
    pub fn options(&self) -> Result<Options> {
        let asks = |mode| self.mode.contains(&mode);
        let mut options = Options::default();
        options.blocks = asks(ModeArg::Block);
        options.all_blocks = self.all_blocks;
        if self.all_blocks && !options.blocks {
            return Err(Failure::usage("--all-blocks needs --mode block"));
        }
        options.mode = if asks(ModeArg::Calls) {
            if asks(ModeArg::Function) {
                return Err(Failure::usage(
                    "--mode takes `function` or `calls`, not both; `calls` also shows which functions were entered",
                ));
            }
            if self.counter.is_some() {
                return Err(Failure::usage(
                    "--counter works only with `--mode function`: with `--mode calls`, counters always have 32 bits",
                ));
            }
            Mode::Calls {
                return_addresses: self.return_addresses,
            }
        } else {
            if self.return_addresses.is_some() {
                return Err(Failure::usage("--return-addresses needs --mode calls"));
            }
            if self.atomic {
                return Err(Failure::usage(
                    "--atomic works only with `--mode calls`: the other modes do not count calls, or only up to 8",
                ));
            }
            Mode::Function(match self.counter {
                Some(CounterArg::Unary) => Counter::Unary,
                Some(CounterArg::Store) | None => Counter::Store,
            })
        };
        options.atomic = self.atomic;
        options.min_instructions = self.min_instructions;
        if let (Some(groups), Some(group)) = (self.groups, self.group) {
            if group >= groups {
                return Err(Failure::usage(format_args!(
                    "--group {group}: expected a number below {groups}, because --groups is {groups}"
                )));
            }
            options.group = Some((groups, group));
        }
        if !self.ignorelist.is_empty() {
            let mut list = IgnoreList::default();
            for path in &self.ignorelist {
                let input = crate::io::open(path)?;
                list.add(input.bytes(), input.name())
                    .map_err(Failure::input)?;
            }
            options.ignore = Some(list);
        }
        Ok(options)
    }
}
