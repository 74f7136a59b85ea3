//! Options, and the sets of subcommands that have them.
use std::ops::{BitOr, RangeInclusive};

/// A set of subcommands. [`Commands::TOP`] stands for the program itself; every subcommand also has the options of
/// `TOP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commands(u8);

impl Commands {
    /// The program itself.
    pub const TOP: Self = Commands(1);

    /// The subcommand with this number; the first one has number 1.
    pub const fn number(number: u8) -> Self {
        Commands(1 << number)
    }

    /// The subcommands that are in one of the two sets.
    pub const fn or(self, other: Self) -> Self {
        Commands(self.0 | other.0)
    }

    /// Whether the two sets have a member in common.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Commands {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.or(other)
    }
}

/// A tool of LLVM: what its command line may have.
#[derive(Debug)]
pub struct Tool {
    /// The name, as messages have it.
    pub name: &'static str,
    /// All options.
    pub options: &'static [OptionSpec],
    /// The subcommands in the order of the help text, with their names. None if the tool has no subcommands.
    pub commands: &'static [(Commands, &'static str)],
    /// How many arguments that are no options a subcommand takes.
    pub operands: fn(Commands) -> RangeInclusive<usize>,
    /// The options of a subcommand in the order in which LLVM looks for the one that is nearest to an unknown option.
    pub nearest: fn(Commands) -> &'static [&'static str],
}

impl Tool {
    /// Finds the option of a subcommand that has this name.
    pub fn find(&self, command: Commands, name: &[u8]) -> Option<&'static OptionSpec> {
        self.options
            .iter()
            .find(|spec| spec.commands.intersects(command) && spec.name.as_bytes() == name)
    }

    /// The name of a single subcommand; empty for the program itself.
    pub fn command_name(&self, command: Commands) -> &'static str {
        self.commands
            .iter()
            .find(|(known, _)| *known == command)
            .map_or("", |(_, name)| name)
    }
}

/// The kind of value that an option has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// No value, or a truth value after `=`.
    Flag,
    /// Any text.
    Text,
    /// Any text; the option may be repeated.
    TextList,
    /// An unsigned 32-bit number.
    U32,
    /// An unsigned 64-bit number, which messages call `ulong`.
    U64,
    /// An unsigned 64-bit number, which messages call `ullong`.
    LongU64,
    /// A signed 32-bit number.
    I32,
    /// Unsigned 32-bit numbers with commas between them; the option may be repeated.
    U32List,
    /// A floating-point number.
    Float,
    /// One of the words in this list.
    Choice(&'static [&'static str]),
    /// No value: the option is itself one choice of a group, and the last choice on the command line counts. Messages
    /// name the group by this title.
    Member(&'static str),
    /// No value: print help and stop.
    Help,
    /// No value: print the version and stop.
    Version,
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The name, without dashes.
    pub name: &'static str,
    /// The kind of the option's value.
    pub kind: OptionKind,
    /// The subcommands that have this option.
    pub commands: Commands,
    /// The name of the option's value in the help text, if it has one.
    pub value: &'static str,
    /// The description of the option in the help text.
    pub about: &'static str,
    /// The option for which this option is another name.
    pub alias_of: Option<&'static str>,
    /// Whether only `--help-hidden` shows this option.
    pub hidden: bool,
    /// Whether LLVM has this option only after the release that the tool stands for. It is accepted, but no help text and no
    /// suggestion has it.
    pub later: bool,
    /// Whether a command line without this option is wrong.
    pub required: bool,
}

/// An option that `--help` shows.
pub const fn option(
    name: &'static str,
    kind: OptionKind,
    commands: Commands,
    value: &'static str,
    about: &'static str,
) -> OptionSpec {
    OptionSpec {
        name,
        kind,
        commands,
        value,
        about,
        alias_of: None,
        hidden: false,
        later: false,
        required: false,
    }
}

/// An option that only `--help-hidden` shows.
pub const fn hidden(
    name: &'static str,
    kind: OptionKind,
    commands: Commands,
    value: &'static str,
    about: &'static str,
) -> OptionSpec {
    OptionSpec {
        hidden: true,
        ..option(name, kind, commands, value, about)
    }
}

/// An option of a later LLVM release.
pub const fn later(
    name: &'static str,
    kind: OptionKind,
    commands: Commands,
    value: &'static str,
    about: &'static str,
) -> OptionSpec {
    OptionSpec {
        later: true,
        ..hidden(name, kind, commands, value, about)
    }
}

/// Another name of an option.
pub const fn alias(
    name: &'static str,
    alias_of: &'static str,
    kind: OptionKind,
    commands: Commands,
) -> OptionSpec {
    OptionSpec {
        alias_of: Some(alias_of),
        ..hidden(name, kind, commands, "", "")
    }
}

impl OptionSpec {
    /// The name of the option in messages about its value. For an alias, this is the name of the option that it stands
    /// for.
    pub fn full_name(&self) -> &'static str {
        self.alias_of.unwrap_or(self.name)
    }

    /// Whether the option may not have a value.
    pub fn takes_no_value(&self) -> bool {
        matches!(
            self.kind,
            OptionKind::Member(_) | OptionKind::Help | OptionKind::Version
        )
    }

    /// Whether the next argument is the option's value if the option is written without `=`.
    pub fn needs_value(&self) -> bool {
        !self.takes_no_value() && self.kind != OptionKind::Flag
    }

    /// Whether this option may be written together with other options as one word (`-xy`). LLVM allows this for all
    /// options with one-letter names.
    pub fn groups(&self) -> bool {
        self.name.len() == 1
    }
}
