//! Merges profiles of real programs with llvm-profdata and with profkit. The two outputs must have the same bytes.
use crate::common::{Files, indexed, text, threads};
use profkit_data::instr::indexed::IndexedProfile;
use profkit_merge::{Policy, ValueWeights};
use profkit_testkit::matrix::{Compiler, Mode, Set, Unavailable};
use profkit_testkit::{Llvm, fixture, require_or_skip, skip, some_or_all, succeed};
use std::path::Path;
use std::process::Command;

const SETS: [(Mode, &str); 10] = [
    (Mode::Ir, "shapes"),
    (Mode::Ir, "host"),
    (Mode::CsIr, "layers"),
    (Mode::Fe, "conditions"),
    (Mode::FeValues, "shapes"),
    (Mode::FunctionEntry, "plain"),
    (Mode::BlockCoverage, "conditions"),
    (Mode::Mcdc, "conditions"),
    (Mode::Temporal, "shapes"),
    (Mode::Vtables, "shapes"),
];

fn tool(llvm: &Llvm, folder: &Path, files: &Files, extra: &[&str]) -> Vec<u8> {
    let out = folder.join("out.profdata");
    let mut command = Command::new(llvm.profdata());
    command.arg("merge").args(extra).arg("-o").arg(&out);
    for (index, (_, weight, bytes)) in files.0.iter().enumerate() {
        let path = folder.join(format!("{index}.profraw"));
        std::fs::write(&path, bytes).unwrap();
        command.arg(format!("--weighted-input={weight},{}", path.display()));
    }
    succeed(&mut command);
    std::fs::read(out).unwrap()
}

fn compare(release: u32, version: u32) {
    let llvm = require_or_skip!(release);
    let folder = tempfile::tempdir().unwrap();
    for (mode, program) in some_or_all(SETS, 4) {
        let set = Set::new(Compiler::Clang(release), mode, program);
        let raws = match set.build() {
            Ok(built) => built.raws,
            Err(Unavailable::Lacks(_)) => continue,
            Err(other) => {
                skip(&format!("{set}: {other}"));
                continue;
            }
        };
        let read = |index: usize| (format!("{index}"), std::fs::read(&raws[index]).unwrap());
        for order in [&[0, 1, 2][..], &[2, 0, 1, 1, 0], &[1]] {
            for weights in [&[1, 1, 1, 1, 1], &[3, 1, 2, 1, 7]] {
                let files = Files::new(order.iter().map(|&index| read(index))).weighted(weights);
                let equal_weights = weights[1..] == weights[..4];
                for count in [1, 2, 3] {
                    let j = count.to_string();
                    // LLVM's writers do not pass names of virtual tables to each other.
                    let keeps_names = mode == Mode::Vtables && count == 1;
                    let theirs = || {
                        let mut extra = vec!["-j", &*j];
                        extra.extend(keeps_names.then_some("--keep-vtable-symbols"));
                        tool(&llvm, folder.path(), &files, &extra)
                    };
                    // With several threads, LLVM may swap inputs, so its output varies. Ours must be one of several of
                    // its outputs.
                    let attempts = if count == 1 { 1 } else { 8 };
                    let mut seen = vec![theirs()];
                    let mut is_theirs = |ours: &[u8]| {
                        while !seen.iter().any(|theirs| theirs == ours) && seen.len() < attempts {
                            seen.push(theirs());
                        }
                        seen.iter().any(|theirs| theirs == ours)
                    };
                    let what = format!("{set} {order:?} {weights:?} -j {count}");
                    for slow in [false, true] {
                        let options = threads(count).no_fast_path(slow);
                        let llvm_way = options.clone().policy(Policy::Llvm);
                        let llvm_way = llvm_way.keep_vtable_names(keeps_names);
                        let ours = files.merge(&llvm_way).unwrap();
                        assert!(ours.report.is_clean(), "{what}: {:?}", ours.report.events);
                        let ours = indexed(&ours.profiles[0].profile, version);
                        assert!(is_theirs(&ours), "{what}, LLVM's policy, slow {slow}");
                        // If the weights differ, `Exact` gives another result than LLVM, which does not multiply the
                        // counts of values that are new to a site. So only `AsLlvm` is compared.
                        let rules = if equal_weights {
                            &[ValueWeights::Exact, ValueWeights::AsLlvm][..]
                        } else {
                            &[ValueWeights::AsLlvm]
                        };
                        for &rule in rules {
                            let options = options.clone().value_weights(rule);
                            let mut ours = files.merge(&options).unwrap();
                            let ours = &mut ours.profiles[0].profile;
                            // The tolerant policy always keeps the names of virtual tables.
                            assert_eq!(!ours.vtable_names.is_empty(), mode == Mode::Vtables);
                            if !keeps_names {
                                ours.vtable_names.clear();
                            }
                            let ours = indexed(ours, version);
                            assert!(is_theirs(&ours), "{what}, {rule:?}, slow {slow}");
                        }
                    }
                }
                let theirs = tool(&llvm, folder.path(), &files, &["--text", "-j", "1"]);
                let options = threads(1).policy(Policy::Llvm);
                let ours = files.merge(&options).unwrap();
                let ours = text(&ours.profiles[0].profile);
                assert!(ours.into_bytes() == theirs, "{set}, text");
            }
        }
    }
}

#[test]
fn real_programs_merge_to_the_bytes_of_llvm_22() {
    compare(22, 13);
}

#[test]
fn real_programs_merge_to_the_bytes_of_llvm_19() {
    compare(19, 12);
}

#[test]
fn names_of_virtual_tables_come_in_the_order_of_llvm() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    let with_names = |class: &str, count: usize| {
        let plain = Files::new([("plain", fixture("raw/clang-22-ir-plain.profraw"))]);
        let mut profile = plain.merge(&threads(1)).unwrap().profiles.remove(0).profile;
        let names = (0..count).map(|number| format!("_ZTV{}{class}{number}", class.len() + 3));
        profile.vtable_names = names.map(String::into_bytes).collect();
        (class.to_owned(), indexed(&profile, 13))
    };
    let files = Files::new([
        with_names("Shape", 3),
        with_names("Visitor", 200),
        with_names("Node", 47),
        with_names("Visitor", 90),
    ]);
    let names = |bytes: &[u8]| {
        let names = IndexedProfile::parse(bytes)
            .unwrap()
            .vtable_names()
            .unwrap();
        let names = names
            .in_order()
            .map(|(_, name)| String::from_utf8(name.to_vec()).unwrap());
        names.collect::<Vec<_>>()
    };
    for writers in [1, 2, 3] {
        let j = writers.to_string();
        let theirs = tool(
            &llvm,
            folder.path(),
            &files,
            &["--keep-vtable-symbols", "-j", &j],
        );
        let options = threads(writers)
            .policy(Policy::Llvm)
            .keep_vtable_names(true);
        let ours = files.merge(&options).unwrap();
        let ours = names(&indexed(&ours.profiles[0].profile, 13));
        // The order of a hash table hardly depends on that of insertion, which varies with LLVM's threads.
        assert_eq!(ours, names(&theirs), "-j {j}");
        assert!(ours.len() > 2);
    }
}
