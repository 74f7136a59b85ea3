//! Tests of the module `matrix`: the sets of raw profiles are built as they are described.
use profkit_testkit::matrix::{Compiler, Mode, RUNS, Set, Unavailable, all_sets};
use profkit_testkit::require_or_skip;

#[test]
fn a_set_has_one_raw_profile_a_run_and_is_built_once() {
    require_or_skip!(22);
    let set = Set::new(Compiler::Clang(22), Mode::Ir, "plain");
    let built = set.build().expect("clang 22 is there");
    assert_eq!(built.raws.len(), RUNS.len());
    let modified = |path| std::fs::metadata(path).expect("built").modified().ok();
    let before = modified(&built.raws[0]);
    let again = set.build().expect("clang 22 is there");
    assert_eq!(again.raws, built.raws);
    assert_eq!(modified(&again.raws[0]), before);
}

#[test]
fn a_shared_library_adds_a_second_profile_to_the_file() {
    require_or_skip!(22);
    let set = Set::new(Compiler::Clang(22), Mode::Fe, "host");
    let built = set.build().expect("clang 22 is there");
    let raw = std::fs::read(&built.raws[0]).expect("built");
    let magic = &raw[..8];
    assert_eq!(raw.windows(8).filter(|bytes| bytes == &magic).count(), 2);
}

#[test]
fn what_a_release_lacks_has_a_reason() {
    let set = Set::new(Compiler::Clang(16), Mode::Mcdc, "conditions");
    assert_eq!(
        set.build().expect_err("16 has no MC/DC"),
        Unavailable::Lacks("-fcoverage-mcdc came with LLVM 18")
    );
    assert!(all_sets().iter().all(|set| set.lacks().is_none()));
}
