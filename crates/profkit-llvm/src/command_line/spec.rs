//! The table of a tool's options, and sets of the subcommands that have an option.
use std::ops::{BitOr, RangeInclusive};

/// A set of subcommands. [`Commands::TOP`] stands for the program itself; every subcommand also has the options of
/// `TOP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commands(u8);

impl Commands {
    /// The program itself.
    pub const TOP: Self = Commands(1);

    /// Returns the set that contains only the subcommand with this number. Subcommands are numbered from 1.
    pub const fn number(number: u8) -> Self {
        Commands(1 << number)
    }

    /// The union of the two sets.
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

/// A tool of LLVM, described by its command line.
#[derive(Debug)]
pub struct Tool {
    /// The name of the tool in messages.
    pub name: &'static str,
    /// All options.
    pub options: &'static [OptionSpec],
    /// The subcommands in the order of the help text, each with its name. Empty if the tool has no subcommands.
    pub commands: &'static [(Commands, &'static str)],
    /// Returns the allowed numbers of arguments of a subcommand. Options do not count as arguments here.
    pub operands: fn(Commands) -> RangeInclusive<usize>,
    /// Returns the names of a subcommand's options, in LLVM's search order: LLVM compares an unknown option with each
    /// name in this order, and suggests the nearest one.
    pub nearest: fn(Commands) -> &'static [&'static str],
}

impl Tool {
    /// Finds an option by its name; `None` if the subcommand has no option with this name.
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
    /// One of the words in this list. The variant holds the list.
    Choice(&'static [&'static str]),
    /// No value. The option is one choice of a group. If the command line contains several options of the group, the
    /// last one counts. The variant holds the group's title, which messages show.
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
    /// The name of the option's value in the help text; empty if it has none.
    pub value: &'static str,
    /// The description of the option in the help text.
    pub about: &'static str,
    /// For an alias: the name of the option that it stands for.
    pub alias_of: Option<&'static str>,
    /// Whether only `--help-hidden` shows this option.
    pub hidden: bool,
    /// Whether LLVM has this option only in releases after the one that profkit reproduces. The option is accepted, but
    /// does not occur in help texts and suggestions.
    pub later: bool,
    /// Whether each command line must contain this option.
    pub required: bool,
}

/// Returns an option that `--help` shows.
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

/// Returns an option that only `--help-hidden` shows.
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

/// Returns an option that only later releases of LLVM have.
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

/// Returns an option that is only another name of a different option.
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
    /// The name of the option in messages about its value. For an alias, this is the name of the original option.
    pub fn full_name(&self) -> &'static str {
        self.alias_of.unwrap_or(self.name)
    }

    /// Whether a value for the option is an error.
    pub fn takes_no_value(&self) -> bool {
        matches!(
            self.kind,
            OptionKind::Member(_) | OptionKind::Help | OptionKind::Version
        )
    }

    /// Whether the option needs a value. If it is written without `=`, the next argument is its value.
    pub fn needs_value(&self) -> bool {
        !self.takes_no_value() && self.kind != OptionKind::Flag
    }

    /// Whether this option may be written in one word with other options (`-xy`). LLVM allows this for all options with
    /// one-letter names.
    pub fn groups(&self) -> bool {
        self.name.len() == 1
    }
}
