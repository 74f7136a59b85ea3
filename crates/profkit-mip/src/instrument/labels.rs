//! Names of the labels that the instrumenter makes.

/// Prefix of all labels that this crate makes, after the target's prefix of local labels.
pub(super) const LABEL: &str = "profkit_mip_";

/// Names of the labels of one instrumented function.
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

    /// The function's start.
    pub fn start(self) -> String {
        self.name("f")
    }

    /// The function's end.
    pub fn end(self) -> String {
        self.name("e")
    }

    /// The start of a block. 0 is the first block that has a byte in the record.
    pub fn block(self, block: usize) -> String {
        format!("{}_{block}", self.name("b"))
    }

    /// The function's record.
    pub fn record(self) -> String {
        format!("{}{LABEL}r{}", self.data_prefix, self.index)
    }

    /// The function's map entry, where that needs a label.
    pub fn map(self) -> String {
        format!("{}{LABEL}m{}", self.data_prefix, self.index)
    }

    /// A label for the back end itself, such as that of a cold stub. `what` must be none of f, e, r and b.
    pub fn other(self, what: &str) -> String {
        self.name(what)
    }
}
