//! `show` on sound profiles.
use super::harness::{Pair, compare_all};
use super::profiles::{TEXTS, add_fixture, real};
use profkit_testkit::require_or_skip;

const ALL: &str = "show --all-functions --counts --ic-targets --memop-sizes --show-vtables --binary-ids --profile-version --detailed-summary";

#[test]
fn texts_are_shown_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    let mut lines = Vec::new();
    for (name, text) in TEXTS {
        pair.add(name, text);
        for options in [
            ALL,
            "show --text --all-functions",
            "show --topn=2 --hot-func-list --value-cutoff=2 --temporal-profile-traces",
        ] {
            lines.push(format!("{options} {name}"));
        }
    }
    for options in [
        "--function=oo --counts",
        "--function=oo --text",
        "--covered",
        "--covered --text",
        "--list-below-cutoff --value-cutoff=3",
        "--list-below-cutoff --value-cutoff=3 --text --function=bar",
        "--showcs --all-functions --counts",
        "--detailed-summary-cutoffs=1,999999,500000,123456",
        "--detailed-summary --detailed-summary-cutoffs=1,999999,500000,123456 --detailed-summary-cutoffs=10",
        "--all-functions --function=x",
        "--topn=100 --hot-func-list=1",
        "-o out --counts --all-functions",
        "--text -output=out --function=foo",
    ] {
        for name in [
            "fe.proftext",
            "ir.proftext",
            "cs.proftext",
            "pseudo.proftext",
        ] {
            lines.push(format!("show {options} {name}"));
        }
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}

#[test]
fn real_profiles_are_shown_alike() {
    let llvm = require_or_skip!(22);
    let mut pair = Pair::new(&llvm);
    let mut lines = Vec::new();
    for folder in ["raw", "indexed"] {
        for name in real(folder, "clang-22")
            .into_iter()
            .chain(real(folder, "rustc"))
        {
            add_fixture(&mut pair, &name);
            lines.push(format!("{ALL} {name}"));
            // An allowed difference: if a raw file holds several profiles, LLVM keeps only the names of the last
            // profile.
            if !name.contains("host.profraw") {
                lines.push(format!(
                    "show --topn=5 --hot-func-list --temporal-profile-traces {name}"
                ));
            }
            lines.push(format!("show --text --all-functions {name}"));
        }
    }
    for name in real("raw", "fe-plain") {
        add_fixture(&mut pair, &name);
        lines.push(format!("show {name}"));
    }
    compare_all(&pair, lines.iter().map(String::as_str));
}
