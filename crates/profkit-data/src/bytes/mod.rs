//! Reading and writing of bytes: the checked cursor that every binary reader uses, and the sink that every writer uses.
mod cursor;
mod sink;

pub use cursor::{Cursor, Endian};
pub use sink::{Sink, assert_planned};
