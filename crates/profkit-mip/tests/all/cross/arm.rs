//! Tests the instrumentation of 32-bit Arm, in both instruction sets.
use super::check::{FIXED, STORE, check_all};
use super::generated::check_generated;
use super::machine::{ARM, THUMB, Tools};

#[test]
fn arm_random_programs() {
    check_generated(&ARM, 200..201, &[(STORE, false)]);
    check_generated(&THUMB, 203..204, &[(STORE, false)]);
}

#[test]
fn arm_functions() {
    check_all(
        &ARM,
        &[
            (Tools::Clang(22), "machine.c", &["-O0"], FIXED, STORE, false),
            (
                Tools::Clang(22),
                "machine.c",
                &["-Os", "-ffunction-sections", "-g"],
                FIXED,
                STORE,
                false,
            ),
            (Tools::Gcc, "machine.c", &["-O2"], FIXED, STORE, false),
            (
                Tools::Gcc,
                "machine.c",
                &["-O2", "-fPIE"],
                &["-pie"],
                STORE,
                false,
            ),
        ],
    );
}

#[test]
fn thumb_functions() {
    check_all(
        &THUMB,
        &[
            (Tools::Clang(22), "machine.c", &["-O0"], FIXED, STORE, false),
            (
                Tools::Clang(16),
                "machine.c",
                &["-O2", "-fno-pie"],
                FIXED,
                STORE,
                false,
            ),
            (Tools::Gcc, "machine.c", &["-Os", "-g"], FIXED, STORE, false),
            (
                Tools::Clang(22),
                "machine.c",
                &["-O2", "-fPIE"],
                &["-pie"],
                STORE,
                false,
            ),
        ],
    );
}
