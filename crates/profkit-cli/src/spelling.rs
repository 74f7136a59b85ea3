//! Checks how options are spelled before the parser sees them, and replaces the parser's errors by profkit's own
//! messages. If the user writes an option of llvm-profdata, the message names the profkit option to write instead.
use crate::exit::{self, Failure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, CommandFactory};
use profkit_llvm::profdata::has_option;
use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// For each command of profkit: options that the command does not have, because they belong to llvm-profdata or to
/// another command of profkit. Each line has the form `command option: advice`; the advice says what to write instead.
const SPELLINGS: &str = include_str!("spellings.txt");

/// Rejects long options after one dash. Without this check, `-output=x` would be read as the option `-o` with the value
/// `utput=x`. Values may be glued to a short option: `-j4`, `-oFILE`.
pub fn check(root: &Command, args: &[OsString]) -> Result<(), Failure> {
    let (command, names) = command_of(root, args);
    // `mip cc` and `llvm-profdata` pass their arguments on to other parsers, which have other rules for spelling.
    if command.get_arguments().any(Arg::is_allow_hyphen_values_set) {
        return Ok(());
    }
    let mut is_value = false;
    for word in args.iter().skip(1 + names.len()) {
        if word == "--" {
            break;
        }
        if std::mem::take(&mut is_value) {
            continue;
        }
        let Some(text) = word.to_str().and_then(|text| text.strip_prefix('-')) else {
            continue;
        };
        if let Some(long) = text.strip_prefix('-') {
            is_value = !long.contains('=')
                && takes_value(command, |option| option.get_long() == Some(long));
            continue;
        }
        check_short(command, &names.join(" "), text)?;
        let letters = text.char_indices();
        let value_of = |letter| takes_value(command, |option| option.get_short() == Some(letter));
        let at = letters.into_iter().find(|(_, letter)| value_of(*letter));
        is_value = at.is_some_and(|(at, letter)| at + letter.len_utf8() == text.len());
    }
    Ok(())
}

/// Whether the command has an option for which `is_it` returns true, and this option takes a value.
fn takes_value(command: &Command, is_it: impl Fn(&Arg) -> bool) -> bool {
    let option = command.get_arguments().find(|option| is_it(option));
    option.is_some_and(|option| matches!(option.get_action(), ArgAction::Set | ArgAction::Append))
}

/// Refuses a long option after one dash; `text` is the word without the dash.
fn check_short(command: &Command, of: &str, text: &str) -> Result<(), Failure> {
    let name = text.split('=').next().unwrap_or_default();
    let has_long = |option: &Arg| option.get_long() == Some(name);
    if name.chars().count() < 2 {
        Ok(())
    } else if is_of_llvm(name) {
        Err(of_llvm(command, of, &format!("-{name}"), name))
    } else if command.get_arguments().any(has_long) {
        let wrong = format_args!("-{name} is not an option of profkit {of}");
        let hint = format_args!("write it with two dashes: --{text}");
        Err(Failure::usage(wrong).with_hint(hint))
    } else {
        Ok(())
    }
}

/// Whether an option is one of llvm-profdata. The option `compbinary` counts too, although only LLVM 7 to 16 have it.
fn is_of_llvm(name: &str) -> bool {
    has_option(name) || name == "compbinary"
}

/// Returns the failure for an option of llvm-profdata that the user gave to a command of profkit; `of` is the name of
/// this command. `written` is the option as the user wrote it.
fn of_llvm(command: &Command, of: &str, written: &str, name: &str) -> Failure {
    let failure = match of {
        "merge" | "show" | "overlap" | "order" => Failure::usage(format_args!(
            "{written} is an option of llvm-profdata, not of profkit {of}"
        )),
        // llvm-profdata has no such command.
        _ => Failure::usage(format_args!("{written} is not an option of profkit {of}")),
    };
    let has_long = |name: &str| {
        command
            .get_arguments()
            .any(|option| option.get_long() == Some(name))
    };
    let failure = match advice(of, name) {
        Some(advice) => failure.with_hint(advice),
        None if has_long(name) => {
            failure.with_hint(format_args!("write it with two dashes: --{name}"))
        }
        None if name == "json" && has_long("format") => failure.with_hint("write --format json"),
        None => failure,
    };
    match of {
        "merge" | "show" if has_option(name) => failure
            .with_hint(format_args!(
                "`profkit llvm-profdata {of} …` accepts all options of LLVM's tool"
            ))
            .with_hint(
                "a program that calls llvm-profdata, such as cargo llvm-cov, needs a link of that name: `ln -s \"$(command -v profkit)\" llvm-profdata`",
            ),
        _ => failure.with_hint(format_args!("`profkit {of} --help` lists the options")),
    }
}

fn advice(command: &str, name: &str) -> Option<&'static str> {
    SPELLINGS.lines().find_map(|line| {
        let (option, advice) = line.split_once(": ")?;
        (option.rsplit_once(' ')? == (command, name)).then_some(advice)
    })
}

/// Whether the parser answers with a help text, because the command or its subcommand is missing.
pub fn is_help(error: &clap::Error) -> bool {
    error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

pub fn failure(error: &clap::Error, args: &[OsString]) -> Failure {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        Some(ContextValue::StyledStr(text)) => Some(text.to_string()),
        _ => None,
    };
    let list = |kind| match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::String(text)) => vec![text.clone()],
        _ => Vec::new(),
    };
    let root = crate::cli::Cli::command();
    let (of, names) = command_of(&root, args);
    let command = names.join(" ");
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    let help = match command.as_str() {
        "" => "`profkit --help` lists the commands".to_owned(),
        "mip" => "`profkit mip --help` lists the commands".to_owned(),
        command => format!("`profkit {command} --help` lists the options"),
    };
    let is_option = argument.starts_with('-');
    let name = argument.trim_start_matches('-').split('=').next();
    let name = name.unwrap_or_default();
    let (what, hint) = match error.kind() {
        ErrorKind::UnknownArgument if command.is_empty() => (
            format!("{argument} is not an option of profkit"),
            format!(
                "a command comes first and its options after it, as in `profkit merge -o FILE`; {help}"
            ),
        ),
        ErrorKind::UnknownArgument if !is_option => (
            format!("{argument} is one argument too many"),
            form(of, &command),
        ),
        ErrorKind::UnknownArgument if is_of_llvm(name) => {
            return of_llvm(of, &command, &argument, name);
        }
        ErrorKind::UnknownArgument if name.parse::<f64>().is_ok() => {
            let option = option_before(args, &argument).unwrap_or_default();
            let what = format!("{option}{argument}: a negative number is not possible here");
            (what, help)
        }
        ErrorKind::UnknownArgument => (
            format!("{argument} is not an option of profkit {command}"),
            match (advice(&command, name), text(ContextKind::SuggestedArg)) {
                (Some(advice), _) => format!("{advice}; {help}"),
                (None, Some(near)) => format!("the nearest option is {near}; {help}"),
                (None, None) => help,
            },
        ),
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            let near = list(ContextKind::SuggestedSubcommand);
            let what = format!("{name} is not a command of profkit {command}");
            let hint = match near.first() {
                _ if command.is_empty() && name.contains(['.', '/', '\\']) => {
                    format!("`profkit show {name}` shows what is in a profile")
                }
                Some(near) => format!("the nearest command is {near}; {help}"),
                None => help,
            };
            (what.trim_end().to_owned(), hint)
        }
        ErrorKind::InvalidValue => {
            let known = list(ContextKind::ValidValue);
            let failure = Failure::usage(match value.as_str() {
                "" => format!("{argument} needs a value"),
                value => format!("{argument}: `{value}` is not one of its values"),
            });
            let of_json = "`profkit show --format json` prints a profile as JSON";
            let failure = failure.with_hints((value == "json").then_some(of_json));
            let values = match known.as_slice() {
                [] => help,
                [one] => format!("the only value is `{one}`"),
                _ => format!("the values are {}", known.join(", ")),
            };
            return failure.with_hint(match value_missing(&argument, &value) {
                Some(missing) => format!("{missing}; {values}"),
                None => values,
            });
        }
        ErrorKind::ValueValidation => {
            let is_number = value.is_empty() || value.parse::<u64>().is_ok();
            let hint = match argument.strip_suffix(" <BYTES>") {
                _ if argument.starts_with("--threads") => {
                    "without --threads (-j), there is one thread per core".to_owned()
                }
                Some(option) if !is_number => {
                    format!("write the number of bytes in digits, as in {option} 1000000")
                }
                _ => value_missing(&argument, &value).unwrap_or(help),
            };
            (format!("{argument}: {}", problem(error, &value)), hint)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = list(ContextKind::InvalidArg).join(" and ");
            let missing = missing.replace(['<', '>'], "").replace("...", " …");
            let form = form(of, &command);
            // If the usage text does not contain the option, the option is needed only because of another option that
            // was given.
            let option = missing.split(' ').next().unwrap_or_default();
            if option.starts_with("--") && !form.contains(option) {
                let given = args.get(names.len()..).unwrap_or_default();
                let given = option_that_needs(of, given, option);
                let given = given.unwrap_or_else(|| "another of the given options".to_owned());
                (format!("{given} needs {missing} too"), help)
            } else {
                (format!("profkit {command} needs {missing}"), form)
            }
        }
        ErrorKind::ArgumentConflict => {
            let other = list(ContextKind::PriorArg);
            let what = if other.is_empty() || other.contains(&argument) {
                format!("{argument} is given more than once")
            } else {
                format!("{argument} and {} exclude each other", other.join(", "))
            };
            (what, help)
        }
        ErrorKind::InvalidUtf8 => ("an option is not valid UTF-8".to_owned(), help),
        _ if !argument.is_empty() => {
            let what = format!("{argument} has the wrong number of values");
            (what, help)
        }
        _ => ("the command line cannot be understood".to_owned(), help),
    };
    Failure::usage(what).with_hint(hint)
}

/// Returns the given option that needs the option `missing`, because without it the parser does not ask for `missing`.
/// `args` begins with the name of the command. `None` if no single option needs it.
fn option_that_needs(command: &Command, args: &[OsString], missing: &str) -> Option<String> {
    let asks = |args: &[&OsString]| {
        let parsed = command.clone().try_get_matches_from(args);
        let named = parsed
            .err()
            .and_then(|error| error.get(ContextKind::InvalidArg).cloned());
        match named {
            Some(ContextValue::Strings(all)) => all.iter().any(|one| one.starts_with(missing)),
            Some(ContextValue::String(one)) => one.starts_with(missing),
            _ => false,
        }
    };
    if !asks(&args.iter().collect::<Vec<_>>()) {
        return None;
    }
    (1..args.len()).find_map(|at| {
        let long = args.get(at)?.to_str()?.strip_prefix("--")?;
        let name = long.split('=').next().unwrap_or_default();
        let value =
            !long.contains('=') && takes_value(command, |option| option.get_long() == Some(name));
        let taken = at..=at + usize::from(value);
        let others = args
            .iter()
            .enumerate()
            .filter(|(index, _)| !taken.contains(index));
        let others: Vec<_> = others.map(|(_, word)| word).collect();
        (!name.is_empty() && !asks(&others)).then(|| format!("--{name}"))
    })
}

fn form(command: &Command, name: &str) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let usage = usage.strip_prefix(command.get_name()).unwrap_or(usage);
    format!("the form is profkit {name}{usage}")
}

/// Returns the hint that an option lacks its value, if the word after it is a file and was taken for the value.
fn value_missing(argument: &str, value: &str) -> Option<String> {
    let is_file = std::path::Path::new(value).exists();
    is_file.then(|| format!("{value} is a file: the value of {argument} is missing before it"))
}

/// Returns the option that stands directly before a word of the command line, with a space after the option; `None` if
/// there is none.
fn option_before(args: &[OsString], word: &str) -> Option<String> {
    let at = args.iter().position(|one| one == word)?;
    let before = args.get(at.checked_sub(1)?)?.to_str()?;
    before.starts_with('-').then(|| format!("{before} "))
}

/// Returns why a value is not accepted: what is wrong with a number, or the message of the function that parses the
/// value.
fn problem(error: &clap::Error, value: &str) -> String {
    let Some(source) = error.source() else {
        return format!("`{value}` is not a valid value");
    };
    let number = source
        .downcast_ref::<ParseIntError>()
        .map(ParseIntError::kind);
    match number {
        Some(IntErrorKind::Zero) => format!("`{value}` is too small: at least 1 is needed"),
        Some(IntErrorKind::PosOverflow) => format!("`{value}` is too large"),
        Some(IntErrorKind::NegOverflow) => format!("`{value}` is too small"),
        Some(_) => format!("`{value}` is not a whole number"),
        None if source.is::<ParseFloatError>() => format!("`{value}` is not a number"),
        None => source.to_string(),
    }
}

/// Returns the subcommand that the arguments name, and the words of its name, for example `mip` and `merge`. Output
/// options are allowed before the name of the subcommand.
fn command_of<'a>(root: &'a Command, args: &[OsString]) -> (&'a Command, Vec<&'a str>) {
    let mut command = root;
    let mut names = Vec::new();
    let mut words = args.iter().skip(1);
    while let Some(word) = words.next() {
        let option = word.to_str().and_then(|word| word.strip_prefix("--"));
        match option.and_then(|option| option.split('=').next()) {
            Some("color") => {
                if !word.to_string_lossy().contains('=') {
                    words.next();
                }
                continue;
            }
            Some("no-pager") => continue,
            _ => {}
        }
        let Some(next) = word.to_str().and_then(|name| command.find_subcommand(name)) else {
            break;
        };
        names.push(next.get_name());
        command = next;
    }
    (command, names)
}

/// Compiles the regular expressions of an option that may be repeated.
pub fn patterns(option: &str, texts: &[String]) -> exit::Result<Vec<regex::bytes::Regex>> {
    let compiled = texts.iter().map(|text| pattern(option, Some(text)));
    let compiled = compiled.collect::<exit::Result<Vec<_>>>()?;
    Ok(compiled.into_iter().flatten().collect())
}

/// Compiles the regular expression of an option. It may match anywhere in a name. Names are bytes and need not be
/// UTF-8.
pub fn pattern(option: &str, text: Option<&str>) -> exit::Result<Option<regex::bytes::Regex>> {
    let Some(text) = text else { return Ok(None) };
    let built = regex::bytes::RegexBuilder::new(text).unicode(false).build();
    built.map(Some).map_err(|error| {
        // The text of a regex error shows the expression in several lines; the last line holds the reason.
        let error = error.to_string();
        let reason = error.lines().next_back().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        Failure::usage(format_args!(
            "{option} `{text}`: not a regular expression: {reason}"
        ))
        .with_hint(r"write a backslash before a character that stands for itself, as in \(")
    })
}
