//! The `profkit` command. Everything is in the library beside it, so that tests and fuzz targets reach it.
use std::process::ExitCode;

fn main() -> ExitCode {
    profkit_cli::run(std::env::args_os().collect())
}
