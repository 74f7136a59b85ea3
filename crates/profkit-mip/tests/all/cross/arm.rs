//! Tests the instrumentation of 32-bit Arm, in both instruction sets.
use super::check::{CALLS, FIXED, STORE, UNARY, check_all};
use super::generated::check_generated;
use super::machine::{ARM, Machine, THUMB, Tools};
use profkit_mip::instrument::Mode;
use profkit_testkit::short_or_whole;

const MODES: [(Mode, bool); 5] = [
    (STORE, true),
    (CALLS, true),
    (STORE, false),
    (UNARY, true),
    (CALLS, false),
];

#[test]
fn arm_random_programs() {
    let count = short_or_whole(2, 4);
    check_generated(&ARM, 200..200 + count, &MODES);
    check_generated(&THUMB, 203..203 + count, &MODES);
}

fn builds(machine: &Machine, modes: [(Mode, bool); 8]) {
    let [a, b, c, d, e, f, g, h] = modes;
    let (clang, old, gcc) = (Tools::Clang(22), Tools::Clang(16), Tools::Gcc);
    check_all(
        machine,
        &[
            (clang, "machine.c", &["-O0"], FIXED, a.0, a.1),
            (
                clang,
                "machine.c",
                &["-Os", "-ffunction-sections", "-g"],
                FIXED,
                b.0,
                b.1,
            ),
            (old, "machine.c", &["-O2", "-fno-pie"], FIXED, c.0, c.1),
            (clang, "machine.c", &["-O3", "-fno-pie"], FIXED, d.0, d.1),
            (gcc, "machine.c", &["-O2", "-fno-pie"], FIXED, e.0, e.1),
            (gcc, "machine.c", &["-Os", "-g"], FIXED, f.0, f.1),
            (gcc, "machine.c", &["-O2", "-fPIE"], &["-pie"], g.0, g.1),
            (clang, "machine.c", &["-O2", "-fPIE"], &["-pie"], h.0, h.1),
        ],
    );
}

/// The mode of each of the eight builds.
fn each(first: usize) -> [(Mode, bool); 8] {
    std::array::from_fn(|build| MODES[(first + build) % MODES.len()])
}

#[test]
fn arm_programs() {
    builds(&ARM, each(0));
}

#[test]
fn thumb_programs() {
    builds(&THUMB, each(0));
}

#[test]
fn arm_programs_with_exceptions() {
    for machine in [&ARM, &THUMB] {
        check_all(
            machine,
            &[
                (Tools::Clang(22), "thrown.cpp", &["-O2"], FIXED, CALLS, true),
                (Tools::Clang(22), "thrown.cpp", &["-O0"], FIXED, STORE, true),
                (Tools::Gcc, "thrown.cpp", &["-O2"], FIXED, STORE, true),
            ],
        );
    }
}
