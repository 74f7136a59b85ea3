//! Compares profkit with LLVM's tools on a selection of real profiles. `cargo xtask conformance` compares all of them.
use profkit_testkit::conformance::{Conformance, Outcome, Scope};
use profkit_testkit::matrix::{Compiler, Mode, Program, sets};
use profkit_testkit::skip;
use std::path::Path;

/// The modes that are compared for every release. The full form compares the other modes too; they use the same code
/// paths.
const MODES: [Mode; 6] = [
    Mode::Fe,
    Mode::Ir,
    Mode::CsIr,
    Mode::BlockCoverage,
    Mode::Temporal,
    Mode::Fe32,
];

#[test]
fn same_as_llvm_on_every_release() {
    let conformance = Conformance::new(Path::new(env!("CARGO_BIN_EXE_profkit")), Scope::Short);
    let plain = Program::named("plain");
    let of_interest = sets().into_iter().filter(|set| {
        let everywhere = set.program == plain && MODES.contains(&set.mode);
        let once = set.compiler == Compiler::Clang(22)
            && matches!(
                (set.program.name, set.mode),
                ("shapes", Mode::Vtables) | ("conditions", Mode::Mcdc) | ("host", Mode::Ir)
            );
        everywhere || once || set.compiler == Compiler::Rustc
    });
    let mut differences = Vec::new();
    for set in of_interest {
        match set.build() {
            Ok(raws) => differences.extend(
                conformance
                    .check(&raws)
                    .into_iter()
                    .filter(|comparison| matches!(comparison.outcome, Outcome::Different(_)))
                    .map(|comparison| comparison.to_string()),
            ),
            Err(why) => skip(&format!("{set}: {why}")),
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
