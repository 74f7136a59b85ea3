//! Writes outputs. LLVM truncates the output file before the new content is ready. profkit writes a file completely or
//! not at all, and a failed write makes the command fail.
use crate::STDIN;
use crate::lines::Lines;
use crate::messages::{Fault, Session};
use profkit_data::bytes::Sink;
use profkit_data::{Error, ErrorKind, path_from_bytes};
use profkit_merge::files::{self, Content, OutputError, OutputProblem, write_to};
use std::io;

/// The destination of text or of a profile.
#[derive(Debug)]
pub enum Output {
    /// Standard output.
    Standard,
    /// A file.
    File(files::Output),
}

/// Checks that an output can be written; `-` is standard output.
pub fn create(session: &Session<'_>, name: &[u8], content: Content) -> Result<Output, Fault> {
    if name.is_empty() {
        // An empty path cannot name a file. LLVM reports the error of a file that does not exist.
        return Err(Fault::io(name, &io::Error::from_raw_os_error(2)));
    }
    // For inputs, the name `-` stands for standard input. Here it stands for standard output.
    if name == STDIN {
        return if content == Content::Binary && session.stdout_is_terminal() {
            Err(fault_of_terminal())
        } else {
            Ok(Output::Standard)
        };
    }
    let output = files::Output::new(&path_from_bytes(name), content);
    output
        .map(|output| Output::File(output.as_is(true)))
        .map_err(|error| fault(name, &error))
}

/// Writes text to an output.
///
/// # Errors
/// The error of `print`, or the reason why the text cannot be written. Text that was already printed to standard output
/// stays there; a file stays as it was before.
pub fn write(
    session: &Session<'_>,
    output: Output,
    name: &[u8],
    print: impl FnOnce(&mut Lines<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    write_bytes(session, output, name, |sink| {
        let mut lines = Lines::new(sink);
        let printed = print(&mut lines);
        lines.finish()?;
        Ok(printed)
    })
}

/// Opens an output, and calls `write` to write to it. `write` returns a result inside a result. The outer error is an
/// error of the sink. The inner error is another reason to stop the tool.
pub fn write_bytes(
    session: &Session<'_>,
    output: Output,
    name: &[u8],
    write: impl FnOnce(&mut dyn Sink) -> Result<Result<(), Fault>, Error>,
) -> Result<(), Fault> {
    let mut stopped = None;
    let fill = |sink: &mut dyn Sink| {
        write(sink)?.map_err(|fault| {
            stopped = Some(fault);
            ErrorKind::WriteFailed.error("stopped")
        })
    };
    let written = match output {
        Output::Standard => write_to("standard output", &mut **session.stdout(), fill),
        Output::File(output) => output.write(fill),
    };
    match (written, stopped) {
        (_, Some(fault)) => Err(fault),
        (Err(error), None) => Err(fault(name, &error)),
        (Ok(_), None) => Ok(()),
    }
}

fn fault(name: &[u8], error: &OutputError) -> Fault {
    match error.problem() {
        OutputProblem::Terminal => fault_of_terminal(),
        OutputProblem::Data(error) => Fault::profile(name, error),
        _ => match error.system() {
            Some(system) => Fault::io(name, system),
            None => Fault::new(error.to_string()),
        },
    }
}

fn fault_of_terminal() -> Fault {
    Fault::new("cannot write a non-text format profile to the terminal")
}
