//! Samples: the positions of their parts, their call chains and branch stacks.
mod branches;
mod chain;
mod plan;

pub use branches::{Branch, Branches};
pub use chain::{CallChain, Mode};
pub(crate) use plan::Plan;

/// A sample. Parts that the event does not record are 0 or empty.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sample<'data> {
    /// The offset of the record.
    pub offset: u64,
    /// The index of the event in [`Events::list`](crate::Events::list).
    pub event: usize,
    /// The mode of the processor.
    pub mode: Mode,
    /// The address of the instruction at which the sample was taken.
    pub address: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The time, in nanoseconds of the recording's clock. `None` if the event does not record times.
    pub time: Option<u64>,
    /// The processor.
    pub cpu: u32,
    /// The period of the sample, which is the number of events that the sample stands for.
    pub period: u64,
    /// The call chain, which shows the functions that were active.
    pub chain: CallChain<'data>,
    /// The branch stack: the last branches that the processor took.
    pub branches: Branches<'data>,
}
