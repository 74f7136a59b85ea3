#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
use super::*;

/// Symbols of many forms, and their texts.
const SYMBOLS: [(&str, &str); 16] = [
    ("_Z3foov", "foo()"),
    ("_ZN2ns5countE", "ns::count"),
    (
        "_ZN2ns3Box3putEOS0_RKS0_",
        "ns::Box::put(ns::Box&&, ns::Box const&)",
    ),
    (
        "_ZN12_GLOBAL__N_14workEPKcz",
        "(anonymous namespace)::work(char const*, ...)",
    ),
    (
        "_ZN2ns3maxINS_4ItemEEET_S2_RKS2_PS2_",
        "ns::Item ns::max<ns::Item>(ns::Item, ns::Item const&, ns::Item*)",
    ),
    ("_Z3foov.llvm.123", "foo().llvm.123"),
    ("__Z3foov", "foo()"),
    ("_Z3runPFivE", "run(int (*)())"),
    (
        "_ZZ3runvENKUlvE_clEv",
        "run()::{lambda()#1}::operator()() const",
    ),
    ("_ZN1A1gB5cxx11Ev", "A::g[abi:cxx11]()"),
    // `std::make_unique`, whose second pack is empty.
    (
        "_ZSt11make_uniqueI4NodeJEENSt9_MakeUniqIT_E15__single_objectEDpOT0_",
        "std::_MakeUniq<Node>::__single_object std::make_unique<Node>()",
    ),
    ("_Z1fIJicEEvDpOT_", "void f<int, char>(int&&, char&&)"),
    ("_ZN1AcvT_IiEEv", "A::operator int<int>()"),
    ("_Z1fILj8EEvv", "void f<8u>()"),
    ("_ZTV1A", "vtable for A"),
    ("_ZThn8_N1AD1Ev", "non-virtual thunk to A::~A()"),
];

#[test]
fn symbols_have_the_texts_that_people_write() {
    for (name, text) in SYMBOLS {
        assert_eq!(symbol(name, false).as_deref(), Some(text), "{name}");
    }
}

#[test]
fn damaged_symbols_are_no_panic() {
    for (name, _) in SYMBOLS {
        for end in 0..name.len() {
            let _ = symbol(&name[..end], false);
        }
        for at in 2..name.len() {
            for letter in [
                "E", "I", "N", "S_", "S9_", "T_", "99", "C1", "L", "\u{e9}", "",
            ] {
                let damaged = [&name[..at], letter, &name[at + 1..]].concat();
                let _ = symbol(&damaged, false);
            }
        }
    }
}

#[test]
fn texts_and_depth_have_limits() {
    // In this symbol, each part refers twice to the part before it, so the text doubles with each part.
    let mut doubling = "_Z1f1aI1bE".to_owned();
    for part in 0..60 {
        let number = match part {
            0 => String::new(),
            part => char::from_digit(part - 1, 36).map_or_else(
                || "ZZ".to_owned(),
                |digit| digit.to_ascii_uppercase().to_string(),
            ),
        };
        doubling.push_str(&format!("1aIS{number}_S{number}_E"));
    }
    for name in [
        doubling,
        format!("_Z1f{}i", "P".repeat(5000)),
        format!("_Z1f{}i", "1aI".repeat(5000)),
    ] {
        let text = symbol(&name, false);
        assert!(text.is_none_or(|text| text.len() <= MOST));
    }
}
