//! Makes the names of the labels that the instrumenter inserts.

/// The prefix of all labels that this crate makes. The target's prefix of local labels stands before it.
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

    /// The label at the start of a block. Block 0 is the first block that has a byte in the record.
    pub fn block(self, block: usize) -> String {
        format!("{}_{block}", self.name("b"))
    }

    /// The label of the function's record.
    pub fn record(self) -> String {
        format!("{}{LABEL}r{}", self.data_prefix, self.index)
    }

    /// The label of the function's map entry, on targets where the entry needs a label.
    pub fn map(self) -> String {
        format!("{}{LABEL}m{}", self.data_prefix, self.index)
    }

    /// A label that a back end uses itself, such as the label of a cold stub. `what` must not be f, e, r or b, which
    /// other labels use.
    pub fn other(self, what: &str) -> String {
        self.name(what)
    }
}
