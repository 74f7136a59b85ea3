//! Reads and writes bytes. Every binary reader uses the checked cursor, and every writer uses the sink.
mod cursor;
mod sink;

pub use cursor::{Cursor, Endian};
pub use sink::{Sink, assert_planned};
