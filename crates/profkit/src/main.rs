//! The `profkit` command.
fn main() {}
