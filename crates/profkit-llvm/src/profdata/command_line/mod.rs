//! LLVM's command-line syntax (`llvm/lib/Support/CommandLine.cpp`), as far as llvm-profdata 22 uses it: response files,
//! a table of options per subcommand, and a parser with LLVM's error messages.
mod options;
mod parse;
mod response;
mod suggest;

pub use options::{Commands, FORMAT, KIND, OPTIONS, OptionKind, OptionSpec, SHOW_KIND};
pub use parse::{HelpKind, Outcome, Parsed, file_name, parse};
