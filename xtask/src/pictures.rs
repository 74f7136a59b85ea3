//! `cargo xtask pictures`: makes pictures for the README that show what the command prints.
//!
//! Each picture is made from a real run on the fixtures, as SVG text without scripts. It shows the prompt, the command
//! and the output, in rows of one width. The same output gives the same bytes, so that `--check` can report a picture
//! that is out of date. For the recording of a terminal, `--check` ignores the times.
mod recording;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use profkit_testkit::{Llvm, repo_root, skip};

use crate::steps::built_profkit;

/// A picture of a terminal.
struct Screen {
    /// The file name of the picture without `.svg`.
    name: &'static str,
    commands: &'static [&'static str],
}

/// The pictures. Their commands work on copies of fixtures, which [`prepare`] makes.
const SCREENS: &[Screen] = &[
    Screen {
        name: "show",
        commands: &["profkit show plain.profdata"],
    },
    Screen {
        name: "doctor",
        commands: &["profkit doctor runs"],
    },
    Screen {
        name: "show-samples",
        commands: &["profkit show program.prof"],
    },
    Screen {
        name: "show-heap",
        commands: &["profkit show heap.memprofraw --binaries heap.debug --top 4"],
    },
    Screen {
        name: "show-mip",
        commands: &[
            "profkit mip merge -p program.mip mip/*.mipraw",
            "profkit show program.mip",
        ],
    },
];

const RECORDING: Screen = Screen {
    name: "merge",
    commands: &[
        "wc -c runs/*",
        "llvm-profdata-22 merge runs -o tests.profdata",
        "profkit merge runs -o tests.profdata",
        "profkit show tests.profdata | head -4",
    ],
};

/// The name of the flame graph, and the command that draws it. The dump in tests/fixtures/heap is a run of
/// tests/programs/heap_contexts.cpp, built by clang 22 with -O1 and `profkit_testkit::HEAP_FLAGS`; the debug info was
/// extracted by `objcopy --only-keep-debug`, without symbols and empty space.
const FLAME_GRAPH: (&str, &str) = (
    "flamegraph",
    "profkit show heap.memprofraw --binaries heap.debug --flamegraph flamegraph.svg",
);

/// The number of characters in a row. Longer lines are cut into several rows.
const COLUMNS: usize = 108;
/// The height of the terminal in rows.
const ROWS: usize = 1000;
/// The width of a character in hundredths of the picture's unit.
const CHARACTER: usize = 783;
/// The height of a row in the picture's unit.
const ROW: usize = 19;
const MARGIN: usize = 16;

/// Makes the pictures in `docs/pictures`. With `--check`, reports those that are out of date.
pub fn run(check: bool) -> Result<()> {
    if Llvm::find(22).is_none() && check {
        skip("the pictures are not checked: LLVM 22, which one of them shows, is not installed");
        return Ok(());
    }
    let profkit = built_profkit()?;
    let scratch = tempfile::tempdir()?;
    prepare(scratch.path())?;
    fs::create_dir(scratch.path().join("bin"))?;
    symlink(profkit, scratch.path().join("bin/profkit"))?;
    let mut pictures = Vec::new();
    for screen in SCREENS {
        let mut rows = Vec::new();
        for command in screen.commands {
            rows.push(Row::prompt(command));
            rows.extend(output(command, scratch.path())?.lines().flat_map(Row::cut));
        }
        pictures.push((screen.name, svg(screen.commands, &rows)));
    }
    let recorded = recording::record(RECORDING.commands, scratch.path())?;
    pictures.push((RECORDING.name, recorded));
    let (name, command) = FLAME_GRAPH;
    output(command, scratch.path())?;
    let drawn = fs::read_to_string(scratch.path().join(format!("{name}.svg")))
        .with_context(|| format!("{command} drew nothing"))?;
    pictures.push((name, drawn));

    let folder = repo_root().join("docs/pictures");
    fs::create_dir_all(&folder)?;
    let mut old = Vec::new();
    for (name, picture) in pictures {
        let path = folder.join(format!("{name}.svg"));
        if check {
            let there = fs::read_to_string(&path).unwrap_or_default();
            let is_same = match name == RECORDING.name {
                true => recording::without_times(&there) == recording::without_times(&picture),
                false => there == picture,
            };
            if !is_same {
                old.push(path.display().to_string());
            }
        } else {
            fs::write(&path, picture).with_context(|| path.display().to_string())?;
            println!("wrote {}", path.display());
        }
    }
    ensure!(
        old.is_empty(),
        "out of date: {}: `cargo xtask pictures` makes them again",
        old.join(", ")
    );
    Ok(())
}

/// Prepares the files that the commands use.
fn prepare(folder: &Path) -> Result<()> {
    let fixtures = repo_root().join("tests/fixtures");
    let runs = folder.join("runs");
    fs::create_dir(&runs)?;
    for (file, copy) in [
        ("readme/clang-22.profraw", "1.profraw"),
        ("readme/clang-22-truncated.profraw", "2.profraw"),
    ] {
        fs::copy(fixtures.join(file), runs.join(copy))?;
    }
    fs::create_dir(folder.join("mip"))?;
    for (file, copy) in [
        ("indexed/clang-22-ir-plain.profdata", "plain.profdata"),
        ("sample/llvm-22-nested-ext.sampleprof", "program.prof"),
        ("mip/mixed-empty.mip", "program.mip"),
        ("mip/mixed-1.mipraw", "mip/1.mipraw"),
        ("mip/mixed-2.mipraw", "mip/2.mipraw"),
    ] {
        fs::copy(fixtures.join(file), folder.join(copy))?;
    }
    for file in ["heap.memprofraw", "heap.debug"] {
        fs::copy(fixtures.join("heap").join(file), folder.join(file))?;
    }
    Ok(())
}

/// Returns the output of a command on a terminal as wide as the pictures. The terminal is so high that no pager is
/// started.
fn output(command: &str, folder: &Path) -> Result<String> {
    let line = format!("stty cols {COLUMNS} rows {ROWS} -onlcr\n{command}");
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .env("SHELL", "/bin/bash")
        .env("TERM", "xterm")
        .stdin(Stdio::null());
    let run = at_home(&mut script, folder)
        .output()
        .context("script (util-linux), which makes a terminal")?;
    String::from_utf8(run.stdout).with_context(|| command.to_string())
}

/// Returns a process that is ready to start: bash with `command`. The caller can read the output while it is written.
fn shell(command: &str, folder: &Path) -> Command {
    let mut shell = Command::new("bash");
    at_home(shell.args(["-c", command]), folder);
    shell
}

/// Sets the folder of a program, and variables so that it finds profkit in `PATH` and prints colours.
fn at_home<'c>(program: &'c mut Command, folder: &Path) -> &'c mut Command {
    let path = std::env::var("PATH").unwrap_or_default();
    program
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("CLICOLOR_FORCE", "1")
        .env("COLUMNS", COLUMNS.to_string())
        .env("LC_ALL", "C.UTF-8")
}

/// A piece of text in one style.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Piece {
    text: String,
    style: Style,
}

/// The style in which a terminal shows text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Style {
    bold: bool,
    dim: bool,
    /// The number of the colour, from 0 to 15; `None` for the default colour.
    colour: Option<u8>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Row(Vec<Piece>);

impl Row {
    fn prompt(command: &str) -> Row {
        let style = |bold, dim| Style {
            bold,
            dim,
            colour: None,
        };
        Row(vec![
            Piece {
                text: "$ ".into(),
                style: style(false, true),
            },
            Piece {
                text: command.into(),
                style: style(true, false),
            },
        ])
    }

    /// Returns the rows that show a line. Escape sequences become styles. A line that is too long continues in the next
    /// row; it is cut at a space if possible.
    fn cut(line: &str) -> Vec<Row> {
        let mut cells: Vec<(char, Style)> = Vec::new();
        let (mut style, mut rest) = (Style::default(), line);
        while let Some(c) = rest.chars().next() {
            if let Some((codes, after)) = rest
                .strip_prefix("\u{1b}[")
                .and_then(|codes| codes.split_once('m'))
            {
                style.apply(codes);
                rest = after;
                continue;
            }
            rest = &rest[c.len_utf8()..];
            cells.push((c, style));
        }
        let mut rows = Vec::new();
        while cells.len() > COLUMNS {
            let space = cells[..COLUMNS].iter().rposition(|&(c, _)| c == ' ');
            let more = cells.split_off(space.map_or(COLUMNS, |place| place + 1));
            rows.push(Row::of(&cells));
            cells = more;
        }
        rows.push(Row::of(&cells));
        rows
    }

    /// Returns a row with these characters.
    fn of(cells: &[(char, Style)]) -> Row {
        let piece = |cells: &[(char, Style)]| {
            let &(_, style) = cells.first()?;
            let text = cells.iter().map(|&(c, _)| c).collect();
            Some(Piece { text, style })
        };
        Row(cells
            .chunk_by(|(_, one), (_, other)| one == other)
            .filter_map(piece)
            .collect())
    }
}

impl Style {
    /// Changes the style by the numbers of an escape sequence, which semicolons separate.
    fn apply(&mut self, codes: &str) {
        for code in codes.split(';') {
            match code.parse::<u8>().unwrap_or(0) {
                0 => *self = Style::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                22 => (self.bold, self.dim) = (false, false),
                code @ 30..=37 => self.colour = Some(code - 30),
                code @ 90..=97 => self.colour = Some(code - 82),
                39 => self.colour = None,
                _ => {}
            }
        }
    }

    /// Returns the CSS classes of the style.
    fn classes(self) -> String {
        let mut classes = Vec::new();
        if self.bold {
            classes.push("b".to_string());
        }
        if self.dim {
            classes.push("d".to_string());
        }
        classes.extend(self.colour.map(|colour| format!("c{}", colour % 8)));
        classes.join(" ")
    }
}

/// The picture of a screen.
fn svg(commands: &[&str], rows: &[Row]) -> String {
    let mut text = svg_start(commands, rows.len(), "");
    for (row, number) in rows.iter().zip(1..) {
        if !row.0.is_empty() {
            text_of(&mut text, row, number);
            text.push('\n');
        }
    }
    text.push_str("</svg>\n");
    text
}

/// Returns the beginning of a picture with `rows` rows: its size, title, styles and background.
fn svg_start(commands: &[&str], rows: usize, style: &str) -> String {
    let width = COLUMNS * CHARACTER / 100 + 2 * MARGIN;
    let height = rows * ROW + 2 * MARGIN;
    format!(
        r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>{}</title>
<style>
rect {{ fill: #1d2128; }}
text {{ fill: #d8dce3; font: 13px "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; }}
.b {{ font-weight: bold; fill: #fff; }} .d {{ fill: #8a93a1; }}
.c0 {{ fill: #8a93a1; }} .c1 {{ fill: #ff7b72; }} .c2 {{ fill: #7ee787; }} .c3 {{ fill: #e3b341; }}
.c4 {{ fill: #79c0ff; }} .c5 {{ fill: #d2a8ff; }} .c6 {{ fill: #76e3ea; }} .c7 {{ fill: #fff; }}
{style}</style>
<rect width="{width}" height="{height}" rx="8"/>
"##,
        escaped(&commands.join("; "))
    )
}

/// Appends a row to the text of a picture. Rows are numbered from 1.
fn text_of(text: &mut String, Row(pieces): &Row, number: usize) {
    let y = MARGIN + number * ROW - 5;
    let characters: usize = pieces.iter().map(|piece| piece.text.chars().count()).sum();
    // The width of the row is stated, so that columns are aligned in every font.
    let length = characters * CHARACTER / 100;
    let _ = write!(
        text,
        r#"<text x="{MARGIN}" y="{y}" textLength="{length}" xml:space="preserve">"#
    );
    for piece in pieces {
        let (words, classes) = (escaped(&piece.text), piece.style.classes());
        let _ = match classes.is_empty() {
            true => write!(text, "{words}"),
            false => write!(text, r#"<tspan class="{classes}">{words}</tspan>"#),
        };
    }
    text.push_str("</text>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_long_lines() {
        let rows = Row::cut("\u{1b}[1;31merror\u{1b}[0m: x");
        let style = Style {
            bold: true,
            dim: false,
            colour: Some(1),
        };
        let pieces = vec![
            Piece {
                text: "error".into(),
                style,
            },
            Piece {
                text: ": x".into(),
                style: Style::default(),
            },
        ];
        assert_eq!(rows, [Row(pieces)]);
        assert_eq!(style.classes(), "b c1");
        assert_eq!(Row::cut(&"é".repeat(COLUMNS + 1)).len(), 2);
        let words = Row::cut(&format!("{} after", "é".repeat(COLUMNS - 3)));
        assert_eq!(
            words[1],
            Row::of(&Vec::from_iter(
                "after".chars().map(|c| (c, Style::default()))
            ))
        );
        assert_eq!(Row::cut("").len(), 1);
    }

    #[test]
    fn text_is_escaped() {
        let picture = svg(&["a < b"], &Row::cut("<&>"));
        assert!(picture.contains("<title>a &lt; b</title>") && picture.contains("&lt;&amp;&gt;"));
    }
}
