//! Tables that become profiles, or counts of addresses.
use crate::exit::{self, Failure, finish};
use profkit_merge::files::Input;
use profkit_page::import::{ImportError, TableFile};
use std::panic::{set_hook, take_hook};
use std::process::exit;

/// Reads a table.
pub fn open_table(input: &Input) -> exit::Result<TableFile> {
    let open = || TableFile::open(input.name(), input.bytes()).map_err(|error| failure(&error));
    if cfg!(not(panic = "abort")) {
        return open();
    }
    // The readers of Parquet and Arrow panic on some damaged files, and in this build a panic ends the process.
    let name = input.name().to_owned();
    let hook = take_hook();
    set_hook(Box::new(move |_| {
        let damage = Failure::input(format_args!(
            "{name}: the file cannot be read: the reader of Parquet or Arrow gave up"
        ))
        .with_hint("the file is damaged: copy it or write it again");
        exit(finish(Err(damage)).into());
    }));
    let table = open();
    set_hook(hook);
    table
}

pub fn failure(error: &ImportError) -> Failure {
    Failure::input(error).with_hints(error.hint)
}
