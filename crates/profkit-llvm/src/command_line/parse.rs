//! The parser of the command line.
use super::response;
use super::spec::{Commands, OptionKind, OptionSpec, Tool};
use super::suggest::{nearest_command, nearest_option};
use profkit_data::path_from_bytes;
use std::path::Path;

/// The result of parsing a command line.
#[derive(Debug)]
pub enum Outcome {
    /// Run a subcommand, or the program itself if it has no subcommands.
    Run(Parsed),
    /// Print a help text and stop. The first field holds the subcommand that the text is for, or [`Commands::TOP`] for
    /// the program itself.
    Help(Commands, HelpKind),
    /// Print the version and stop.
    Version,
    /// Stop with exit code 1. The messages contain the reason.
    Wrong,
}

/// The form of the help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelpKind {
    /// Whether the help text is one sorted list of options instead of groups.
    pub list: bool,
    /// Whether the help text includes hidden options.
    pub hidden: bool,
}

/// The parsed options and arguments of a subcommand.
#[derive(Debug)]
pub struct Parsed {
    /// The subcommand.
    pub command: Commands,
    values: Vec<(&'static str, Value)>,
    /// The arguments that are not options, in the order of the command line.
    pub positionals: Vec<Vec<u8>>,
}

#[derive(Debug)]
enum Value {
    Flag(bool),
    Number(u64),
    Text(Vec<u8>),
    /// The word that was chosen. For an option with a list of allowed values, it is one of these values. For a group of
    /// options that exclude each other, it is the name of the chosen option.
    Word(&'static str),
}

impl Parsed {
    fn last(&self, name: &str) -> Option<&Value> {
        let mut values = self.values.iter().rev();
        values
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Whether an option was given. If its value is wrong, the option does not count.
    pub fn has(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// Whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.last(name), Some(Value::Flag(true)))
    }

    /// The value of a flag; `None` if the flag was not given.
    pub fn given_flag(&self, name: &str) -> Option<bool> {
        match self.last(name) {
            Some(&Value::Flag(set)) => Some(set),
            _ => None,
        }
    }

    /// The text of an option; empty if it was not given.
    pub fn text(&self, name: &str) -> &[u8] {
        match self.last(name) {
            Some(Value::Text(text)) => text,
            _ => &[],
        }
    }

    /// All texts that were given for an option that may be repeated.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.values
            .iter()
            .filter_map(move |(known, value)| match value {
                Value::Text(text) if *known == name => Some(text.as_slice()),
                _ => None,
            })
    }

    /// The unsigned number that was given for an option; `None` if the option was not given.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.last(name) {
            Some(&Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// The signed number that was given for an option; `None` if the option was not given.
    pub fn signed(&self, name: &str) -> Option<i32> {
        let number = self.number(name)?.cast_signed();
        i32::try_from(number).ok()
    }

    /// All numbers that were given for an option that may be repeated.
    pub fn numbers(&self, name: &str) -> impl Iterator<Item = u64> {
        self.values
            .iter()
            .filter_map(move |(known, value)| match value {
                Value::Number(number) if *known == name => Some(*number),
                _ => None,
            })
    }

    /// The word that was chosen for an option; `None` if no word was chosen. For a group of options, `name` is the
    /// group's title.
    pub fn word(&self, name: &str) -> Option<&'static str> {
        match self.last(name) {
            Some(&Value::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// The name of the output file; `-` for standard output.
    pub fn output(&self) -> &[u8] {
        match self.last("output") {
            Some(Value::Text(text)) => text,
            _ => b"-",
        }
    }
}

/// Parses a command line. Its first argument is the program's name. Appends LLVM's error messages, as whole lines, to
/// `messages`.
pub fn parse(tool: &'static Tool, args: &[Vec<u8>], messages: &mut Vec<u8>) -> Outcome {
    let (typed_program, args) = match args {
        [program, args @ ..] => (program.as_slice(), args),
        [] => (tool.name.as_bytes(), [].as_slice()),
    };
    let mut parser = Parser {
        tool,
        typed_program,
        program: file_name(typed_program),
        command: Commands::TOP,
        failed: false,
        parsed: Vec::new(),
        given: Vec::new(),
        messages,
    };
    let has_commands = !tool.commands.is_empty();
    if args.is_empty() && has_commands {
        let message = ": No subcommand specified! Run ";
        parser.say(&[
            message.as_bytes(),
            tool.name.as_bytes(),
            b" --help for usage.",
        ]);
        return Outcome::Wrong;
    }
    match response::expand(args) {
        Ok(args) => parser.run(&args),
        Err(message) => {
            parser.messages.extend_from_slice(message.as_bytes());
            parser.messages.push(b'\n');
            if has_commands {
                parser.unknown_command();
                return Outcome::Wrong;
            }
            // If a response file has an error, a tool without subcommands continues as if it had been given no
            // arguments.
            parser.finish(Vec::new())
        }
    }
}

/// Returns the last component of a path.
pub fn file_name(path: &[u8]) -> Vec<u8> {
    Path::new(&path_from_bytes(path))
        .file_name()
        .map_or_else(|| path.to_vec(), |name| name.as_encoded_bytes().to_vec())
}

struct Parser<'a> {
    tool: &'static Tool,
    typed_program: &'a [u8],
    program: Vec<u8>,
    command: Commands,
    failed: bool,
    parsed: Vec<(&'static str, Value)>,
    /// The names of the options on the command line, including options with wrong values.
    given: Vec<&'static str>,
    messages: &'a mut Vec<u8>,
}

/// The parsing ends, because the command line asks for help or the version.
struct Stop(Outcome);

impl Parser<'_> {
    fn run(mut self, args: &[Vec<u8>]) -> Outcome {
        let mut rest = args;
        let mut unknown_command = None;
        if let [first, after @ ..] = args
            && !first.starts_with(b"-")
            && !self.tool.commands.is_empty()
        {
            let mut commands = self.tool.commands.iter();
            let known = commands.find(|(_, name)| name.as_bytes() == first);
            match known {
                Some(&(command, _)) => {
                    self.command = command;
                    rest = after;
                }
                None => unknown_command = Some(first),
            }
        }
        let mut positionals = Vec::new();
        let mut only_positionals = false;
        let mut args = rest.iter();
        while let Some(arg) = args.next() {
            let option = match arg.as_slice() {
                _ if only_positionals => None,
                b"--" => {
                    only_positionals = true;
                    continue;
                }
                [b'-', b'-', name @ ..] | [b'-', name @ ..] if arg.len() > 1 => Some(name),
                _ => None,
            };
            let stopped = match option {
                Some(name) => self.option(arg, name, &mut args),
                None if self.command != Commands::TOP => {
                    positionals.push(arg.clone());
                    Ok(())
                }
                None => {
                    let command = unknown_command.is_some_and(|first| std::ptr::eq(first, arg));
                    self.unknown(arg, command, None);
                    Ok(())
                }
            };
            if let Err(Stop(outcome)) = stopped {
                return outcome;
            }
        }
        self.check_count(positionals.len());
        self.check_required();
        if self.failed {
            return Outcome::Wrong;
        }
        if self.command == Commands::TOP && !self.tool.commands.is_empty() {
            self.unknown_command();
            return Outcome::Wrong;
        }
        self.finish(positionals)
    }

    fn finish(self, positionals: Vec<Vec<u8>>) -> Outcome {
        Outcome::Run(Parsed {
            command: self.command,
            values: self.parsed,
            positionals,
        })
    }

    fn option<'a>(
        &mut self,
        arg: &[u8],
        name: &[u8],
        args: &mut impl Iterator<Item = &'a Vec<u8>>,
    ) -> Result<(), Stop> {
        if let Some((spec, value)) = look_up(self.tool, self.command, name)
            .or_else(|| look_up(self.tool, Commands::TOP, name))
        {
            return self.provide(spec, spec.name, value, args);
        }
        // Options with one-letter names may be written together in one word. If such options are followed by text that
        // does not begin with a one-letter option, LLVM takes this text for an unknown option.
        let mut name = name;
        if name.len() > 1 {
            while let Some(spec) = self.grouped(name) {
                let (letter, after) = name.split_at(1);
                name = letter;
                match after {
                    [b'=', value @ ..] => return self.provide(spec, spec.name, Some(value), args),
                    [] => return self.provide(spec, spec.name, None, args),
                    _ if spec.needs_value() => {
                        self.value_error(spec.name, &[b"may not occur within a group!"]);
                        break;
                    }
                    _ => {
                        self.provide(spec, spec.name, None, &mut std::iter::empty())?;
                        name = after;
                    }
                }
            }
        }
        let nearest = nearest_option(self.tool, self.command, name);
        self.unknown(arg, false, nearest.as_deref());
        Ok(())
    }

    /// Returns the one-letter option with which `name` begins, if there is one.
    fn grouped(&self, name: &[u8]) -> Option<&'static OptionSpec> {
        self.tool
            .find(self.command, name.get(..1)?)
            .filter(|spec| spec.groups())
    }

    fn provide<'a>(
        &mut self,
        spec: &'static OptionSpec,
        typed_name: &'static str,
        value: Option<&[u8]>,
        args: &mut impl Iterator<Item = &'a Vec<u8>>,
    ) -> Result<(), Stop> {
        let value = match value {
            Some(value) if spec.takes_no_value() => {
                self.no_value_error(spec, value);
                return Ok(());
            }
            None if spec.needs_value() => match args.next() {
                Some(value) => value.as_slice(),
                None => {
                    self.value_error(typed_name, &[b"requires a value!"]);
                    return Ok(());
                }
            },
            Some(value) => value,
            None => &[],
        };
        let name = spec.full_name();
        self.given.push(name);
        let parsed = match spec.kind {
            OptionKind::Help => {
                let help = HelpKind {
                    list: name.starts_with("help-list"),
                    hidden: name.ends_with("hidden"),
                };
                return Err(Stop(Outcome::Help(self.command, help)));
            }
            OptionKind::Version => return Err(Stop(Outcome::Version)),
            OptionKind::Member(group) => {
                self.parsed.push((group, Value::Word(spec.name)));
                return Ok(());
            }
            OptionKind::Flag => match value {
                b"" | b"true" | b"TRUE" | b"True" | b"1" => Some(Value::Flag(true)),
                b"false" | b"FALSE" | b"False" | b"0" => Some(Value::Flag(false)),
                _ => {
                    let wrong: &[u8] = b"' is invalid value for boolean argument! Try 0 or 1";
                    self.value_error(name, &[b"'", value, wrong]);
                    None
                }
            },
            OptionKind::Text | OptionKind::TextList => Some(Value::Text(value.to_vec())),
            OptionKind::U32 => self.number(name, value, "uint", u64::from(u32::MAX)),
            OptionKind::U64 => self.number(name, value, "ulong", u64::MAX),
            OptionKind::LongU64 => self.number(name, value, "ullong", u64::MAX),
            OptionKind::I32 => {
                let (digits, negative) = match value {
                    [b'-', digits @ ..] => (digits, true),
                    digits => (digits, false),
                };
                let largest = i32::MAX.unsigned_abs() + u32::from(negative);
                match integer(digits).filter(|&number| number <= u64::from(largest)) {
                    Some(number) if negative => Some(Value::Number(number.wrapping_neg())),
                    Some(number) => Some(Value::Number(number)),
                    None => {
                        self.wrong_number(name, value, "integer");
                        None
                    }
                }
            }
            OptionKind::U32List => {
                for part in value.split(|&byte| byte == b',') {
                    if let Some(number) = self.number(name, part, "uint", u64::from(u32::MAX)) {
                        self.parsed.push((name, number));
                    }
                }
                return Ok(());
            }
            OptionKind::Float => {
                let text = std::str::from_utf8(value).unwrap_or("?").trim_start();
                // An empty text means zero, as in the C library.
                match if text.is_empty() { "0" } else { text }.parse::<f64>() {
                    Ok(_) => Some(Value::Text(value.to_vec())),
                    Err(_) => {
                        let wrong: &[u8] = b"' value invalid for floating point argument!";
                        self.value_error(name, &[b"'", value, wrong]);
                        None
                    }
                }
            }
            OptionKind::Choice(words) => match words.iter().find(|word| word.as_bytes() == value) {
                Some(word) => Some(Value::Word(word)),
                None => {
                    self.value_error(name, &[b"Cannot find option named '", value, b"'!"]);
                    None
                }
            },
        };
        self.parsed.extend(parsed.map(|value| (name, value)));
        Ok(())
    }

    fn number(&mut self, name: &str, text: &[u8], kind: &str, max: u64) -> Option<Value> {
        match integer(text).filter(|&number| number <= max) {
            Some(number) => Some(Value::Number(number)),
            None => {
                self.wrong_number(name, text, kind);
                None
            }
        }
    }

    fn wrong_number(&mut self, name: &str, text: &[u8], kind: &str) {
        let wrong = format!("' value invalid for {kind} argument!");
        self.value_error(name, &[b"'", text, wrong.as_bytes()]);
    }

    fn check_required(&mut self) {
        for spec in self.tool.options {
            let given = || self.given.contains(&spec.name);
            if spec.required && spec.commands.intersects(self.command) && !given() {
                self.value_error(spec.name, &[b"must be specified at least once!"]);
            }
        }
    }

    fn check_count(&mut self, count: usize) {
        let (least, most) = (self.tool.operands)(self.command).into_inner();
        if count >= least && count <= most {
            return;
        }
        let program = self.typed_program.to_vec();
        let (first, second) = if count < least {
            (
                ": Not enough positional command line arguments specified!\n",
                format!("Must specify at least {least} positional arguments: See: "),
            )
        } else {
            (
                ": Too many positional arguments specified!\n",
                format!("Can specify at most {most} positional arguments: See: "),
            )
        };
        self.say(&[first.as_bytes(), second.as_bytes(), &program, b" --help"]);
    }

    fn unknown(&mut self, arg: &[u8], is_command: bool, nearest: Option<&[u8]>) {
        let what: &[u8] = if is_command {
            b"subcommand '"
        } else {
            b"command line argument '"
        };
        let program = self.typed_program.to_vec();
        self.say(&[
            b": Unknown ",
            what,
            arg,
            b"'.  Try: '",
            &program,
            b" --help'",
        ]);
        let nearest = match nearest {
            Some(name) => Some([dashes(name), name].concat()),
            None if is_command => {
                nearest_command(self.tool, arg).map(|name| name.as_bytes().to_vec())
            }
            None => None,
        };
        if let Some(nearest) = nearest {
            self.say(&[b": Did you mean '", &nearest, b"'?"]);
        }
    }

    fn unknown_command(&mut self) {
        let name = self.tool.name.as_bytes();
        self.say(&[b": Unknown command. Run ", name, b" --help for usage."]);
    }

    fn value_error(&mut self, name: &str, message: &[&[u8]]) {
        let intro = [
            b": for the ",
            dashes(name.as_bytes()),
            name.as_bytes(),
            b" option: ",
        ];
        self.say(&[intro.as_slice(), message].concat());
    }

    fn no_value_error(&mut self, spec: &OptionSpec, value: &[u8]) {
        let message: &[&[u8]] = &[b"does not allow a value! '", value, b"' specified."];
        match spec.kind {
            OptionKind::Member(group) => {
                // A message normally begins with the names of the program and the option. In LLVM, an option of a group
                // has no name of its own, so the message begins with the title of the group instead.
                let intro: &[&[u8]] = &[group.as_bytes(), b" option: "];
                self.put(&[intro, message].concat());
            }
            _ => self.value_error(spec.name, message),
        }
    }

    fn say(&mut self, parts: &[&[u8]]) {
        let program = std::mem::take(&mut self.program);
        self.put(&[&[program.as_slice()], parts].concat());
        self.program = program;
    }

    fn put(&mut self, parts: &[&[u8]]) {
        self.failed = true;
        for part in parts {
            self.messages.extend_from_slice(part);
        }
        self.messages.push(b'\n');
    }
}

fn dashes(name: &[u8]) -> &'static [u8] {
    if name.len() == 1 { b"-" } else { b"--" }
}

/// Finds the option with this name. Splits off the option's value if there is a `=`.
fn look_up<'n>(
    tool: &Tool,
    command: Commands,
    name: &'n [u8],
) -> Option<(&'static OptionSpec, Option<&'n [u8]>)> {
    match name.iter().position(|&byte| byte == b'=') {
        Some(equals) => {
            let spec = tool.find(command, name.get(..equals)?)?;
            Some((spec, name.get(equals + 1..)))
        }
        None => Some((tool.find(command, name)?, None)),
    }
}

/// Parses a number in C's notation, in which the prefixes `0x`, `0b`, `0o` and `0` select a base.
fn integer(text: &[u8]) -> Option<u64> {
    let (digits, base) = match text {
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        [b'0', b'b' | b'B', digits @ ..] => (digits, 2),
        [b'0', b'o', digits @ ..] => (digits, 8),
        [b'0', digits @ ..] if digits.first().is_some_and(u8::is_ascii_digit) => (digits, 8),
        _ => (text, 10),
    };
    let digits = std::str::from_utf8(digits).ok()?;
    // `from_str_radix` would accept a sign before the digits; LLVM does not.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, base).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_any_base() {
        let number = |text: &str| integer(text.as_bytes());
        assert_eq!(number("0x1F"), Some(31));
        assert_eq!(number("0b101"), Some(5));
        assert_eq!(number("0o17"), Some(15));
        assert_eq!(number("017"), Some(15));
        assert_eq!(number("0"), Some(0));
        assert_eq!(number("18446744073709551615"), Some(u64::MAX));
        for wrong in ["", "-1", "+1", "0x", "08", "1 ", "18446744073709551616"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }
}
