//! The `profkit` command. All code is in the library beside this file, so that tests and fuzz targets can call it.
use std::process::ExitCode;

fn main() -> ExitCode {
    profkit_cli::run(std::env::args_os().collect())
}
