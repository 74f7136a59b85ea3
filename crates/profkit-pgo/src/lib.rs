//! Internal to profkit, without a promise of stability.
//!
//! Profile-guided optimisation of a build that is a command line: the build is made with instrumentation, the program is
//! trained, the profile is merged for the compiler that will read it and compared with the build, and the build is made
//! with it. [`Plan`] is all that as data; [`run`] carries it out, and [`Plan::script`] prints it as a script of the shell.
//!
//! | file | content |
//! |---|---|
//! | `tools.rs` | the compilers: clang and rustc, and the releases of their LLVM |
//! | `plan.rs` | the steps, and what each sets in the environment |
//! | `kind.rs` | what a build is started by: how it is made to compile everything, and where it writes |
//! | `commands.rs` | the commands of profkit and perf that are steps: recordings, orders of functions |
//! | `script.rs` | the steps as a script |
//! | `wrappers.rs` | the programs that take the place of compilers in a build |
//! | `outputs.rs` | the programs and libraries that a build wrote |
//! | `run.rs` | carries out the steps |
//! | `left.rs` | processes that a training has left |
//! | `timing.rs` | runs a benchmark with both builds in turn |
//! | `answer.rs` | what came of it, for people and as JSON |
//! | `error.rs` | why it cannot go on |
#![cfg(unix)]
#![deny(missing_docs)]

mod answer;
mod commands;
mod error;
mod kind;
mod left;
mod outputs;
mod plan;
mod run;
mod script;
mod timing;
mod tools;
mod wrappers;

pub use commands::Recorder;
pub use error::{Error, Result};
pub use left::Running;
pub use plan::{Plan, Settings, Step, Training};
pub use run::{Event, Outcome, Profile, Shares, Sizes, run};
pub use timing::Times;
pub use tools::{Clang, Tools};
