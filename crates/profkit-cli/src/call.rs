//! Commands that another program calls: what they would print is a value, and the process goes on.
use crate::cli::Cli;
use crate::exit::{Cause, Failure, Result};
use crate::on_demand;
use clap::{ArgMatches, Args, Command};
use profkit_merge::RunOptions;
use profkit_merge::files::{Content, GivenInput, Output, OutputError, is_stdio};
use profkit_merge::part::Merger;
use profkit_report::merge::MergeReport;
use serde_json::Value;
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// A command and its arguments.
#[derive(Debug)]
pub struct Call {
    /// The name of the command, then its arguments: `show`, `a.profdata`. Only `merge`, `show`, `doctor`, `match`, `diff` and
    /// `export` can be called.
    pub args: Vec<OsString>,
    /// The inputs of `merge`, in place of those that a command line names.
    pub inputs: Vec<GivenInput>,
    /// Ends a merge early when another thread sets it.
    pub cancel: Arc<AtomicBool>,
}

/// How a call ended.
#[derive(Debug)]
pub struct Answer {
    /// The exit code of the command.
    pub code: u8,
    /// What the command would write to standard output: an answer, or the profile of a merge whose output is `-`.
    pub output: Vec<u8>,
    /// What the command would print on standard error, without the messages of `failure`.
    pub messages: String,
    /// The report of a merge as JSON, if it was made.
    pub report: Option<Vec<u8>>,
    /// The reason why the command stopped.
    pub failure: Option<Failure>,
}

type Bytes = Arc<Mutex<Vec<u8>>>;

struct State {
    inputs: Vec<GivenInput>,
    cancel: Arc<AtomicBool>,
    output: Bytes,
    messages: Bytes,
    report: Option<Vec<u8>>,
}

thread_local! {
    /// The call that runs on this thread.
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// Runs a command on this thread. A command never reads the arguments of the process, and installs no signal handlers.
pub fn call(call: Call) -> Answer {
    let args = call.args;
    kept(call.inputs, call.cancel, || execute(args))
}

/// Runs what is a part of another command like a call: what it would print is a value.
pub fn within(inputs: Vec<GivenInput>, run: impl FnOnce() -> Result) -> Answer {
    kept(inputs, Arc::default(), run)
}

fn kept(inputs: Vec<GivenInput>, cancel: Arc<AtomicBool>, run: impl FnOnce() -> Result) -> Answer {
    let (output, messages) = (Bytes::default(), Bytes::default());
    STATE.set(Some(State {
        inputs,
        cancel,
        output: Arc::clone(&output),
        messages: Arc::clone(&messages),
        report: None,
    }));
    let result = run();
    let report = STATE.take().and_then(|state| state.report);
    let code = crate::exit::code(&result);
    Answer {
        code,
        output: taken(&output),
        messages: String::from_utf8_lossy(&taken(&messages)).into_owned(),
        report,
        failure: result.err(),
    }
}

/// The arguments of a command that was given these words and no others.
pub fn matches_of<T: Args>(name: &'static str, words: &[&str]) -> Result<(T, ArgMatches)> {
    let parser = T::augment_args(Command::new(name));
    let matches = parser.try_get_matches_from([name].iter().chain(words));
    let parsed = matches.and_then(|matches| Ok((T::from_arg_matches(&matches)?, matches)));
    parsed.map_err(|error| Failure::usage(error.to_string().trim_end()))
}

/// A sum of nothing, with the options that decide what is added up: the words after `merge` on a command line.
///
/// # Errors
/// If the words are not options of `merge`, or the result would depend on the order of inputs.
pub fn merger(words: Vec<OsString>, run: RunOptions) -> Result<Merger> {
    let args = [OsString::from("merge")].into_iter().chain(words);
    let (cli, _) = parse(args.collect())?;
    cli.merger(run)
}

fn execute(args: Vec<OsString>) -> Result {
    let (cli, matches) = parse(args)?;
    cli.called(&matches)
}

fn parse(args: Vec<OsString>) -> Result<(Cli, ArgMatches)> {
    let args: Vec<OsString> = [OsString::from("profkit")]
        .into_iter()
        .chain(args)
        .collect();
    let mut parser = on_demand::parser(&args);
    crate::spelling::check(&parser, &args)?;
    match Cli::parse_with_matches(&mut parser, &args) {
        Ok(parsed) => Ok(parsed),
        Err(error) if error.use_stderr() && !crate::spelling::is_help(&error) => {
            Err(crate::spelling::failure(&error, &args))
        }
        Err(error) => Err(Failure::usage(error.to_string().trim_end())),
    }
}

fn taken(bytes: &Bytes) -> Vec<u8> {
    std::mem::take(&mut *bytes.lock().unwrap_or_else(PoisonError::into_inner))
}

fn with<T>(get: impl FnOnce(&mut State) -> T) -> Option<T> {
    STATE.with_borrow_mut(|state| state.as_mut().map(get))
}

/// Whether this thread runs a command for another program.
pub fn is_active() -> bool {
    STATE.with_borrow(Option::is_some)
}

/// The inputs of the call, unless there is none or it names inputs by its arguments.
pub fn take_inputs() -> Option<Vec<GivenInput>> {
    with(|state| std::mem::take(&mut state.inputs)).filter(|inputs| !inputs.is_empty())
}

pub fn has_inputs() -> bool {
    with(|state| !state.inputs.is_empty()).unwrap_or_default()
}

pub fn cancel() -> Option<Arc<AtomicBool>> {
    with(|state| Arc::clone(&state.cancel))
}

pub fn keep_report(report: &MergeReport<'_>) {
    with(|state| state.report = serde_json::to_vec(report).ok());
}

/// The output at a path: for `-`, the output of the call, or standard output.
pub fn output(path: &Path, content: Content) -> std::result::Result<Output, OutputError> {
    match with(|state| Arc::clone(&state.output)) {
        Some(bytes) if is_stdio(path) => Ok(Output::memory(bytes)),
        _ => Output::new(path, content),
    }
}

/// A standard stream of this process, or what a call has in its place.
#[derive(Debug)]
pub enum Stream<T> {
    Process(T),
    Call(Bytes),
}

impl<T> Stream<T> {
    pub fn stdout(stdout: impl FnOnce() -> T) -> Self {
        match with(|state| Arc::clone(&state.output)) {
            Some(bytes) => Stream::Call(bytes),
            None => Stream::Process(stdout()),
        }
    }

    pub fn stderr(stderr: impl FnOnce() -> T) -> Self {
        match with(|state| Arc::clone(&state.messages)) {
            Some(bytes) => Stream::Call(bytes),
            None => Stream::Process(stderr()),
        }
    }
}

impl<T: Write> Write for Stream<T> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Process(stream) => stream.write(text),
            Stream::Call(bytes) => {
                let mut bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.extend_from_slice(text);
                Ok(text.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Process(stream) => stream.flush(),
            Stream::Call(_) => Ok(()),
        }
    }
}

impl Answer {
    /// What the outputs of a merge cannot hold, as warnings.
    pub(crate) fn losses(&self) -> Vec<String> {
        let report = self.report.as_deref().unwrap_or_default();
        let report: Value = serde_json::from_slice(report).unwrap_or_default();
        let outputs = report.get("outputs").and_then(Value::as_array);
        let losses = outputs.into_iter().flatten().filter_map(|output| {
            let name = output.get("path")?.as_str()?;
            let losses = output.get("losses")?.as_array()?.iter();
            Some(
                losses.filter_map(move |loss| Some(format!("warning: {name}: {}", loss.as_str()?))),
            )
        });
        losses.flatten().collect()
    }

    /// The error of a file that stopped the command.
    pub fn cause(&self) -> Option<&Cause> {
        self.failure.as_ref()?.cause()
    }
}
