//! The options of a command are described to the parser only if the command line names the command. Describing the
//! options of all commands takes longer than merging a small profile.
use crate::cli;
use clap::{ArgMatches, Args, Command, CommandFactory, Error, FromArgMatches, Subcommand};
use std::cell::RefCell;
use std::ffi::OsString;

thread_local! {
    /// The name of the only command whose options are wanted. The name is empty if the options of all commands are
    /// wanted.
    static WANTED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes the parser of a command line. If the first argument names a command, the other commands have only their names
/// and descriptions. `Cli::command` has all options of all commands.
pub fn parser(args: &[OsString]) -> Command {
    let first = args.get(1).and_then(|first| first.to_str());
    let wanted = first.filter(|name| cli::Command::has_subcommand(name));
    WANTED.set(wanted.unwrap_or_default().to_owned());
    let parser = cli::Cli::command();
    WANTED.take();
    parser
}

/// The arguments of a command.
#[derive(Debug)]
pub struct OnDemand<T>(pub T);

impl<T: Args> Args for OnDemand<T> {
    fn augment_args(command: Command) -> Command {
        let name = command.get_name();
        if WANTED.with_borrow(|wanted| wanted.is_empty() || wanted == name) {
            T::augment_args(command)
        } else {
            command
        }
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for OnDemand<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(OnDemand)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
