//! Runs a fuzz target under libFuzzer, which looks for inputs that reach new code. `PROFKIT_FUZZ_TARGET` names the
//! target. The arguments are those of libFuzzer. `cargo xtask fuzz` builds this program with the necessary
//! instrumentation and runs it.
#![no_main]
#![allow(
    clippy::panic,
    reason = "libFuzzer is told of a failure by a panic, which aborts"
)]

use profkit_fuzz::{TARGETS, Target};
use std::sync::OnceLock;

fn target() -> &'static Target {
    static TARGET: OnceLock<&Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var("PROFKIT_FUZZ_TARGET").unwrap_or_default();
        let target = TARGETS.iter().find(|target| target.name == name);
        target.unwrap_or_else(|| panic!("PROFKIT_FUZZ_TARGET: no target `{name}`"))
    })
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| (target().run)(data));
