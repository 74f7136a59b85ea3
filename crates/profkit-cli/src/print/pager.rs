//! Standard output, which goes through a pager if it is a terminal and the text has more lines than the terminal.
use super::uses_pager;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The exit code of a shell that does not find the program.
const NOT_FOUND: i32 = 127;
/// The text is kept until this number of bytes is written, in case the shell does not find the pager. A pipe holds
/// fewer bytes, so after this number the pager must have been found and have read some of the text.
const MOST_KEPT: usize = 2 << 20;

#[derive(Debug)]
pub struct Pager {
    stdout: StdoutLock<'static>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// All text goes to standard output, without a pager.
    Direct,
    /// The text that was written so far fits on the terminal. The fields are this text and the number of rows of the
    /// terminal that are still free.
    Short { text: Vec<u8>, rows: usize },
    /// The pager runs. `kept` is the text that was written so far, in case the shell does not find the pager. It
    /// becomes `None` as soon as the pager must have been found.
    Pages {
        pager: Child,
        to: ChildStdin,
        kept: Option<Vec<u8>>,
    },
    /// The user left the pager. The command continues, because its exit code depends on the rest of its work.
    Left { pager: Child },
}

impl Pager {
    /// Makes the writer for standard output. A pager is started only when the text does not fit on the terminal.
    pub fn new() -> Self {
        let stdout = io::stdout().lock();
        let dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
        let size = terminal_size::terminal_size_of(&stdout).filter(|_| stdout.is_terminal());
        let state = match size {
            Some((_, height)) if uses_pager() && !dumb => State::Short {
                text: Vec::new(),
                rows: usize::from(height.0).saturating_sub(1),
            },
            _ => State::Direct,
        };
        Pager { stdout, state }
    }
}

/// The pager of the user: `$PAGER`, or less. `None` if the user wants none.
fn command() -> Option<Command> {
    let wanted = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let words: Vec<&str> = wanted.split_whitespace().collect();
    let (program, arguments) = words.split_first()?;
    if words == ["cat"] {
        return None;
    }
    let needs_shell = wanted.contains(|one: char| "|&;<>()$`\\\"'*?[#~=%".contains(one));
    let mut command = if needs_shell {
        let mut shell = Command::new("sh");
        shell.args(["-c", &wanted]);
        shell
    } else {
        let mut plain = Command::new(program);
        plain.args(arguments);
        plain
    };
    // Options of less: F makes it end without a key press if the text fits on the terminal, R shows colours, X leaves
    // the text on the terminal.
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    command.stdin(Stdio::piped());
    Some(command)
}

/// Starts the pager. `None` if the user wants no pager, or if the pager cannot be started: the text is then printed
/// without a pager.
fn start() -> Option<(Child, ChildStdin)> {
    let mut pager = command()?.spawn().ok()?;
    let to = pager.stdin.take()?;
    // Ctrl-C is meant for the pager. Without a handler, Ctrl-C would end this program, and the shell and the pager
    // would read the same keys.
    let _ = signal_hook::flag::register(
        signal_hook::consts::SIGINT,
        Arc::new(AtomicBool::new(false)),
    );
    Some((pager, to))
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Direct => return self.stdout.write(bytes),
            State::Left { .. } => {}
            State::Pages { to, kept, .. } => match to.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    self.leave()?;
                    if matches!(self.state, State::Direct) {
                        return self.stdout.write(bytes);
                    }
                }
                Ok(count) => {
                    *kept = kept.take().filter(|text| text.len() < MOST_KEPT);
                    if let Some(text) = kept {
                        text.extend(bytes.iter().take(count));
                    }
                    return Ok(count);
                }
                Err(error) => return Err(error),
            },
            State::Short { text, rows } => {
                text.extend_from_slice(bytes);
                *rows = rows.saturating_sub(memchr::memchr_iter(b'\n', bytes).count());
                if *rows == 0 {
                    let text = std::mem::take(text);
                    self.state = match start() {
                        Some((pager, to)) => State::Pages {
                            pager,
                            to,
                            kept: Some(Vec::new()),
                        },
                        None => State::Direct,
                    };
                    self.write_all(&text)?;
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Short { text, .. } => {
                let text = std::mem::take(text);
                self.state = State::Direct;
                self.stdout.write_all(&text)?;
                self.stdout.flush()
            }
            State::Direct => self.stdout.flush(),
            State::Pages { to, .. } => match to.flush() {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                result => result,
            },
            State::Left { .. } => Ok(()),
        }
    }
}

impl Pager {
    /// Closes the pipe to the pager. If the shell did not find the pager, prints the kept text without a pager.
    fn leave(&mut self) -> io::Result<()> {
        let State::Pages {
            mut pager,
            to,
            kept,
        } = std::mem::replace(&mut self.state, State::Direct)
        else {
            return Ok(());
        };
        drop(to);
        if let Some(text) = kept
            && pager.wait()?.code() == Some(NOT_FOUND)
        {
            super::say("note: $PAGER names no program");
            return self.stdout.write_all(&text);
        }
        self.state = State::Left { pager };
        Ok(())
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        // Errors are ignored here: a command flushes the pager before the pager is dropped, and reports the errors of
        // that flush.
        let _ = self.flush();
        let _ = self.leave();
        if let State::Left { pager } = &mut self.state {
            let _ = pager.wait();
        }
        let _ = self.stdout.flush();
    }
}
