//! Reads and writes bytes. Every binary reader uses the checked cursor, and every writer uses the sink.
mod cursor;
mod sink;

pub use cursor::{Cursor, Endian};
pub use sink::{Sink, assert_planned};

use std::fmt;

/// A number of bytes in a message: "1 byte" or "12 bytes".
pub(crate) struct Bytes<N>(pub N);

impl<N: fmt::Display + PartialEq + From<u8>> fmt::Display for Bytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.0 == N::from(1) {
            "byte"
        } else {
            "bytes"
        };
        write!(f, "{} {unit}", self.0)
    }
}
