//! LLVM's command-line syntax (`llvm/lib/Support/CommandLine.cpp`), as far as its profile tools use it: response files, a
//! table of options per subcommand, and a parser with LLVM's error messages.
mod help;
mod parse;
mod response;
mod spec;
mod suggest;

pub use help::options_help;
pub use parse::{HelpKind, Outcome, Parsed, file_name, parse};
pub use spec::{Commands, OptionKind, OptionSpec, Tool, alias, hidden, later, option};
