//! The options that say what is instrumented, shared by the commands that instrument.
use crate::exit::{Failure, Result};
use clap::{Args, ValueEnum};
use profkit_merge::files::Input;
use profkit_mip::instrument::{Counter, IgnoreList, Mode, Options};
use std::path::PathBuf;

/// What is instrumented, and how.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What is recorded")]
pub struct ModeArgs {
    /// What to record: function, calls, and with either, block
    ///
    /// function: whether each function was entered. calls: how often, and in which order first. block: whether each
    /// block was run, on top of calls or (alone) of function.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "MODE",
        default_value = "function"
    )]
    mode: Vec<ModeArg>,

    /// How mode function counts: store (yes or no, 7 bytes per function) or unary (0 to 8 calls, 6 bytes)
    #[arg(long, value_enum, value_name = "COUNTER")]
    counter: Option<CounterArg>,

    /// With mode calls: sample who calls whom into a ring of N return addresses
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    return_addresses: Option<u32>,

    /// Leave functions of fewer than N instructions alone
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_instructions: usize,

    /// Split functions into N groups by the hash of their name, and instrument one group only
    #[arg(long, value_name = "N", requires = "group", value_parser = clap::value_parser!(u64).range(1..))]
    groups: Option<u64>,

    /// The group to instrument, from 0
    #[arg(long, value_name = "I", requires = "groups")]
    group: Option<u64>,

    /// Leave functions alone that this list names, in the sanitizers' form: section [mip], lines fun:GLOB or
    /// src:GLOB, with =block, =calls or =function to leave out that much
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
    /// The instrumenter's options.
    ///
    /// # Errors
    /// If the options contradict each other, or an ignore list cannot be read.
    pub fn options(&self) -> Result<Options> {
        let asks = |mode| self.mode.contains(&mode);
        let mut options = Options::default();
        options.blocks = asks(ModeArg::Block);
        options.mode = if asks(ModeArg::Calls) {
            if asks(ModeArg::Function) {
                return Err(Failure::usage(
                    "--mode takes function or calls, not both: calls tell what was entered",
                ));
            }
            if self.counter.is_some() {
                return Err(Failure::usage(
                    "--counter is for --mode function: calls are counted in 32 bits",
                ));
            }
            Mode::Calls {
                return_addresses: self.return_addresses,
            }
        } else {
            if self.return_addresses.is_some() {
                return Err(Failure::usage("--return-addresses needs --mode calls"));
            }
            Mode::Function(match self.counter {
                Some(CounterArg::Unary) => Counter::Unary,
                Some(CounterArg::Store) | None => Counter::Store,
            })
        };
        options.min_instructions = self.min_instructions;
        if let (Some(groups), Some(group)) = (self.groups, self.group) {
            if group >= groups {
                return Err(Failure::usage(format_args!(
                    "--group {group} is not below --groups {groups}"
                )));
            }
            options.group = Some((groups, group));
        }
        if !self.ignorelist.is_empty() {
            let mut list = IgnoreList::default();
            for path in &self.ignorelist {
                let input = Input::open(path)?;
                list.add(input.bytes(), input.name())
                    .map_err(Failure::input)?;
            }
            options.ignore = Some(list);
        }
        Ok(options)
    }
}
