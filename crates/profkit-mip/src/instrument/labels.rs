//! Makes the names of the labels that the instrumenter inserts into assembly.

/// The text with which all labels of this crate begin, after the target's prefix of local labels.
pub(super) const LABEL: &str = "profkit_mip_";

/// Makes the names of the labels for one instrumented function.
#[derive(Clone, Copy, Debug)]
pub struct Labels {
    pub(super) prefix: &'static str,
    pub(super) data_prefix: &'static str,
    pub(super) index: usize,
}

impl Labels {
    fn name(self, what: &str) -> String {
        format!("{}{LABEL}{what}{}", self.prefix, self.index)
    }

    /// The label at the start of the function.
    pub fn start(self) -> String {
        self.name("f")
    }

    /// The label at the end of the function.
    pub fn end(self) -> String {
        self.name("e")
    }

    /// The label at the start of a block. Block 0 is the first of the blocks that have a byte in the record.
    pub fn block(self, block: usize) -> String {
        format!("{}_{block}", self.name("b"))
    }

    /// The label of the function's record.
    pub fn record(self) -> String {
        format!("{}{LABEL}r{}", self.data_prefix, self.index)
    }

    /// The label of the function's map entry. Only Mach-O needs it.
    pub fn map(self) -> String {
        format!("{}{LABEL}m{}", self.data_prefix, self.index)
    }

    /// A label of a back end. `what` is in its name, and must not be f, e, r, b or m, as in other labels.
    pub fn other(self, what: &str) -> String {
        self.name(what)
    }
}
