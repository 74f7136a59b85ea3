//! Sample profiles, and the layout of code, from counts by address.
pub use profkit_profgen::{
    BinaryOutcome, BoltForm, BoltProfile, CheckedCounts, Code, CountingTool, Density,
    Discriminators, Facts, LineOptions, MakeOptions, NamedProfile, Outcome, Problem, Program,
    ProgramOptions, Programs, UnusableBinary, make_profile,
};

/// Calling contexts.
pub mod contexts {
    pub use profkit_profgen::contexts::{ContextOptions, Contexts, PreinlineOptions, make_profile};
}

/// The order of blocks and functions.
pub mod layout {
    pub use profkit_profgen::layout::{
        CodeMap, FlowLosses, FunctionLayout, FunctionOrder, Layout, LayoutOptions, by_calls,
    };
}

/// The functions of recordings, with their callers.
pub mod stacks {
    pub use profkit_profgen::stacks::{
        EventStacks, FunctionSamples, FunctionStacks, NamesFrom, StackBinary, StackFrame,
        StackFunction, StackOptions,
    };
}
