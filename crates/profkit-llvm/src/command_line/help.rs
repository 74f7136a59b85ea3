//! The list of options in the text of `--help`.
use super::HelpKind;
use super::spec::{Commands, OptionSpec, Tool};
use std::fmt::Write;

/// Writes the options of a subcommand. `title` returns the title of an option's group. Consecutive options with the
/// same title are written below one title.
///
/// # Errors
/// None, because writing to a string cannot fail.
pub fn options_help(
    text: &mut String,
    tool: &Tool,
    command: Commands,
    kind: HelpKind,
    title: impl Fn(&OptionSpec) -> &'static str,
) -> std::fmt::Result {
    text.push_str("OPTIONS:\n");
    let mut options: Vec<&OptionSpec> = tool
        .options
        .iter()
        .filter(|spec| spec.commands.intersects(command) && !spec.later)
        .filter(|spec| kind.hidden || !spec.hidden)
        .collect();
    if kind.list {
        options.sort_by_key(|spec| spec.name);
    }
    let left: Vec<String> = options.iter().map(|spec| left_column(spec)).collect();
    let width = left.iter().map(String::len).max().unwrap_or(0);
    let mut group = "";
    for (left, spec) in left.iter().zip(&options) {
        let title = if kind.list { "" } else { title(spec) };
        if title != group {
            writeln!(text, "\n{title}\n")?;
            group = title;
        }
        let about = match spec.alias_of {
            Some(name) => format!("Alias for --{name}"),
            None => spec.about.to_owned(),
        };
        writeln!(text, "  {left:<width$} - {about}")?;
    }
    Ok(())
}

fn left_column(spec: &OptionSpec) -> String {
    let dashes = if spec.name.len() == 1 { "-" } else { "--" };
    match spec.value {
        "" => format!("{dashes}{}", spec.name),
        value => format!("{dashes}{}=<{value}>", spec.name),
    }
}
