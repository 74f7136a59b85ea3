//! What every command has in common: help with an example, completions, man pages.
use clap::{Command, CommandFactory};
use profkit_cli::cli::Cli;

fn walk(command: &mut Command, path: &str, check: &mut impl FnMut(&str, &mut Command)) {
    check(path, command);
    // The parser makes `help` itself.
    let ours = command
        .get_subcommands_mut()
        .filter(|sub| sub.get_name() != "help");
    for sub in ours {
        let path = format!("{path} {}", sub.get_name());
        walk(sub, &path, check);
    }
}

#[test]
fn the_help_of_every_command_has_an_example_that_names_it() {
    let mut seen = 0;
    walk(&mut Cli::command(), "profkit", &mut |path, command| {
        let help = command.render_long_help().to_string();
        let (_, examples) = help
            .split_once("\nExample")
            .unwrap_or_else(|| panic!("no example in the help of {path}:\n{help}"));
        assert!(examples.contains(&format!("{path} ")), "{path}: {examples}");
        seen += 1;
    });
    assert!(seen >= 5, "{seen}");
}

#[test]
fn every_option_of_every_command_is_explained() {
    walk(&mut Cli::command(), "profkit", &mut |path, command| {
        assert!(command.get_about().is_some(), "{path}");
        for argument in command.get_arguments() {
            let id = argument.get_id();
            assert!(argument.get_help().is_some(), "{path}: {id}");
        }
    });
}

#[test]
fn the_definitions_contradict_nothing() {
    Cli::command().debug_assert();
}

/// The words that a shell makes of a line. Quotes hold blanks together.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for character in line.chars() {
        match quote {
            Some(end) if character == end => quote = None,
            None if matches!(character, '\'' | '"') => quote = Some(character),
            None if character == ' ' => words.push(std::mem::take(&mut word)),
            _ => word.push(character),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn examples_parse() {
    walk(&mut Cli::command(), "profkit", &mut |_, command| {
        let help = command.render_long_help().to_string();
        // The examples of a help text end at an empty line. The lines after it are skipped: they may begin with the
        // name of a command too, but are not examples.
        let examples = help.split_once("\nExample").map_or("", |(_, rest)| rest);
        let examples = examples.split("\n\n").next().unwrap_or_default();
        for line in examples.lines() {
            // A pipe or a redirection ends a command, so each part of the line is parsed by itself.
            for part in line.split(['|', '>']).map(str::trim) {
                let words = words_of(part);
                if !part.starts_with("profkit ") || part.starts_with("profkit llvm-profdata") {
                    continue;
                }
                let parsed = Cli::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{part}: {}", parsed.unwrap_err());
            }
        }
    });
}
