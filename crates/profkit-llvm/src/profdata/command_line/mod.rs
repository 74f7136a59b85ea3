//! LLVM's command-line syntax (`llvm/lib/Support/CommandLine.cpp`), as far as llvm-profdata 22 shows it: response
//! files, a table of options by subcommand, and a parser that says LLVM's words about what it does not understand.
mod options;
mod parse;
mod response;
mod suggest;

pub use options::{Commands, FORMAT, KIND, OPTIONS, OptionKind, OptionSpec, SHOW_KIND};
pub use parse::{HelpKind, Outcome, Parsed, file_name, parse};
