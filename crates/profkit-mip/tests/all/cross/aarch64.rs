//! AArch64.
use super::check::{CALLS, FIXED, STORE, UNARY, check, check_all, options};
use super::generated::check_generated;
use super::machine::{AARCH64, Build, Tools, source};
use profkit_mip::instrument::Mode;
use profkit_testkit::short_or_whole;

#[test]
fn aarch64_functions() {
    let sum = check_all(
        &AARCH64,
        &[
            (
                Tools::Clang(22),
                "machine.c",
                &["-O0", "-fno-pie"],
                FIXED,
                STORE,
                false,
            ),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O2", "-fno-pie", "-mbranch-protection=standard", "-g"],
                FIXED,
                UNARY,
                false,
            ),
            (
                Tools::Clang(16),
                "machine.c",
                &["-Os", "-fno-pie", "-ffunction-sections"],
                FIXED,
                STORE,
                false,
            ),
            (
                Tools::Clang(22),
                "thrown.cpp",
                &["-O1", "-fpatchable-function-entry=3,1"],
                FIXED,
                STORE,
                false,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-O2", "-mbranch-protection=standard"],
                FIXED,
                STORE,
                false,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-Os", "-fpatchable-function-entry=2", "-g"],
                FIXED,
                UNARY,
                false,
            ),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O2", "-fPIE"],
                &["-pie"],
                STORE,
                false,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-O2", "-fPIE"],
                &["-pie"],
                UNARY,
                false,
            ),
        ],
    );
    if let Some((functions, _)) = sum {
        assert!(functions > 150, "{functions}");
    }
}

#[test]
fn aarch64_calls() {
    let ring = |slots| Mode::Calls {
        return_addresses: Some(slots),
    };
    check_all(
        &AARCH64,
        &[
            (
                Tools::Clang(22),
                "machine.c",
                &["-O0", "-fno-pie"],
                FIXED,
                CALLS,
                false,
            ),
            (
                Tools::Clang(22),
                "thrown.cpp",
                &["-O2", "-mbranch-protection=standard", "-ffunction-sections"],
                FIXED,
                CALLS,
                false,
            ),
            (Tools::Gcc, "machine.c", &["-O2"], FIXED, CALLS, false),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O2", "-fPIE"],
                &["-pie"],
                CALLS,
                false,
            ),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O1", "-fno-pie", "-mbranch-protection=standard"],
                FIXED,
                ring(64),
                false,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-O1", "-mbranch-protection=pac-ret+leaf"],
                FIXED,
                ring(100),
                false,
            ),
        ],
    );
}

#[test]
fn aarch64_blocks() {
    let sum = check_all(
        &AARCH64,
        &[
            (
                Tools::Clang(22),
                "machine.c",
                &["-O0", "-fno-pie"],
                FIXED,
                STORE,
                true,
            ),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O2", "-fno-pie", "-mbranch-protection=standard", "-g"],
                FIXED,
                STORE,
                true,
            ),
            (
                Tools::Clang(16),
                "machine.c",
                &["-Os", "-fno-pie", "-mno-outline-atomics"],
                FIXED,
                CALLS,
                true,
            ),
            (
                Tools::Clang(22),
                "thrown.cpp",
                &["-O1", "-ffunction-sections"],
                FIXED,
                UNARY,
                true,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-O2", "-mno-outline-atomics"],
                FIXED,
                STORE,
                true,
            ),
            (
                Tools::Gcc,
                "machine.c",
                &["-Os", "-g", "-mbranch-protection=standard"],
                FIXED,
                CALLS,
                true,
            ),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O3", "-fPIE"],
                &["-pie"],
                STORE,
                true,
            ),
        ],
    );
    if let Some((_, blocks)) = sum {
        assert!(blocks > 1000, "{blocks}");
    }
}

#[test]
fn aarch64_large_code_model() {
    let sources = [source("machine.c")];
    profkit_testkit::or_skip!(AARCH64.works(Tools::Clang(22), &sources));
    let folder = tempfile::tempdir().unwrap();
    let build = Build {
        machine: &AARCH64,
        tools: Tools::Clang(22),
        options: &["-O1", "-fno-pie", "-mcmodel=large", "-fno-jump-tables"],
        link: FIXED,
        sources: &sources,
        folder: folder.path(),
    };
    let mut options = options(CALLS, true);
    options.large_code_model = true;
    check(&build, &options);
}

#[test]
fn aarch64_random_programs() {
    let modes = [(STORE, true), (CALLS, true), (UNARY, true), (CALLS, false)];
    check_generated(&AARCH64, short_or_whole(100..101, 100..102), &modes);
}
