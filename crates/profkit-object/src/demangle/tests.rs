#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]
use super::*;
use object::{Object as _, ObjectSymbol as _};
use profkit_testkit::{links_cxx, or_skip, repo_root, require_or_skip};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Symbols that are demangled in one pass, and their texts.
const PLAIN: [(&str, &str); 27] = [
    ("_Z3fooi", "foo(int)"),
    ("_Z3foov", "foo()"),
    ("_ZN2ns5countE", "ns::count"),
    (
        "_ZN2ns3Box3putEOS0_RKS0_",
        "ns::Box::put(ns::Box&&, ns::Box const&)",
    ),
    ("_ZNK2ns3Box4sizeEv", "ns::Box::size() const"),
    ("_ZNVKO2ns3Box4sizeEv", "ns::Box::size() const volatile &&"),
    ("_ZN2ns3BoxC2ERKS0_", "ns::Box::Box(ns::Box const&)"),
    (
        "_ZN2ns3BoxIiLj4EED0Ev",
        "ns::Box<int, (unsigned int)4>::~Box()",
    ),
    (
        "_ZN12_GLOBAL__N_14workEPKcz",
        "(anonymous namespace)::work(char const*, ...)",
    ),
    (
        "_Z4copyPVKcS_",
        "copy(char const volatile*, char const volatile)",
    ),
    (
        "_ZN2ns3maxINS_4ItemEEET_S2_RKS2_PS2_",
        "ns::Item ns::max<ns::Item>(ns::Item, ns::Item const&, ns::Item*)",
    ),
    (
        "_ZNSt6vectorISt10unique_ptrIiSt14default_deleteIiEESaIS3_EE9push_backEOS3_",
        "std::vector<std::unique_ptr<int, std::default_delete<int> >, std::allocator<std::unique_ptr<int, std::default_delete<int> > > >::push_back(std::unique_ptr<int, std::default_delete<int> >&&)",
    ),
    (
        "_ZNSt8functionIFvPKcEEC1EOS3_",
        "std::function<void (char const*)>::function(std::function<void (char const*)>&&)",
    ),
    (
        "_ZN1f1gILb1ELb0ELi4ELin5ELl7ELNS_6ColourE3ELc99EEEvv",
        "void f::g<true, false, 4, -5, (long)7, (f::Colour)3, (char)99>()",
    ),
    ("_ZN1AcvbEv", "A::operator bool()"),
    ("_ZNK1AcvPKcEv", "A::operator char const*() const"),
    ("_ZN1AixEm", "A::operator[](unsigned long)"),
    ("_ZN1AclEv", "A::operator()()"),
    ("_ZN1AnwEm", "A::operator new(unsigned long)"),
    ("_ZlsRSoRK1A", "operator<<(std::ostream&, A const&)"),
    (
        "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
        "std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> >(std::basic_ostream<char, std::char_traits<char> >&, char const*)",
    ),
    (
        "_ZNSs6appendERKSsSaIcESiSd",
        "std::string::append(std::string const&, std::allocator<char>, std::basic_istream<char, std::char_traits<char> >, std::basic_iostream<char, std::char_traits<char> >)",
    ),
    (
        "_Z7lettersahstjlmxynofdegwbDnDsDi",
        "letters(signed char, unsigned char, short, unsigned short, unsigned int, long, unsigned long, long long, unsigned long long, __int128, unsigned __int128, float, double, long double, __float128, wchar_t, bool, std::nullptr_t, char16_t, char32_t)",
    ),
    // The following are what `llvm-cxxfilt` prints. `cpp_demangle` leaves out a parameter or a space, or puts the type into a name.
    ("_ZN1AC2IPiEET_S2_", "A::A<int*>(int*, int*)"),
    ("_Z4workRN1A1BERKNS_1CE", "work(A::B&, A::C const&)"),
    ("_Z4workPK1APKNS_1BE", "work(A const*, A::B const*)"),
    (
        "_Z4eachSt8functionIF1ARKS0_EE",
        "each(std::function<A (A const&)>)",
    ),
];

/// Symbols that `cpp_demangle` demangles, and their texts.
const OTHERS: [(&str, &str); 9] = [
    ("_Z3runPFivE", "run(int (*)())"),
    ("_Z3runM1AFvvE", "run(void (A::*)())"),
    ("_Z3runRA3_i", "run(int (&) [3])"),
    (
        "_ZZ3runvENKUlvE_clEv",
        "run()::{lambda()#1}::operator()() const",
    ),
    ("_ZN1A1fIJicEEEvDpOT_", "void A::f<int, char>(int, char&&)"),
    ("_ZN1A1gB5cxx11Ev", "A::g[abi:cxx11]()"),
    ("_ZTV1A", "{vtable(A)}"),
    ("_ZNK3foocvT_IiEEv", "foo::operator int<int>() const"),
    (
        "_ZThn8_N1AD1Ev",
        "{virtual override thunk({offset(-8)}, A::~A())}",
    ),
];

#[test]
fn forms_of_one_pass() {
    for (symbol, text) in PLAIN {
        assert_eq!(itanium::demangle(symbol).as_deref(), Some(text), "{symbol}");
    }
}

#[test]
fn other_forms_are_left_to_the_tree() {
    for (name, text) in OTHERS {
        assert_eq!(itanium::demangle(name), None, "{name}");
        assert_eq!(symbol(name, false).as_deref(), Some(text), "{name}");
    }
    for name in [
        "",
        "_Z",
        "_ZN",
        "_ZNE",
        "_Z3fo",
        "_Z3foo",
        "_Z0v",
        "_ZS_",
        "_Z1fS_",
        "_Z1fT_",
        "_ZN1AC1E1",
        "_Z1fvi",
        "_ZStE",
    ] {
        let _ = symbol(name, false);
    }
}

#[test]
fn damaged_symbols_are_no_panic() {
    for (symbol, _) in PLAIN {
        for end in 0..symbol.len() {
            let _ = itanium::demangle(&symbol[..end]);
        }
        for at in 2..symbol.len() {
            for letter in [
                "E", "I", "N", "S", "S_", "S9_", "T_", "0", "9", "99", "C1", "v", "K", "F", "L",
                "\u{e9}", "",
            ] {
                let damaged = [&symbol[..at], letter, &symbol[at + 1..]].concat();
                let _ = itanium::demangle(&damaged);
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

/// Removes the differences of style between the texts of `llvm-cxxfilt` and of this crate.
fn alike(text: &str) -> String {
    let mut text = text
        .replace("decltype(nullptr)", "std::nullptr_t")
        .replace(
            "std::basic_istream<char, std::char_traits<char> >",
            "std::istream",
        )
        .replace(
            "std::basic_iostream<char, std::char_traits<char> >",
            "std::iostream",
        )
        .replace("< <", "<<");
    while text.contains("> >") {
        text = text.replace("> >", ">>");
    }
    for (kind, suffix) in [
        ("unsigned int", "u"),
        ("unsigned long", "ul"),
        ("long", "l"),
    ] {
        while let Some((before, after)) = text.split_once(&format!("({kind})")) {
            let digits = after
                .find(|one: char| !one.is_ascii_digit() && one != '-')
                .unwrap_or(after.len());
            text = format!("{before}{}{suffix}{}", &after[..digits], &after[digits..]);
        }
    }
    text
}

#[test]
fn one_pass_gives_the_texts_of_llvms_tool() {
    let llvm = require_or_skip!(22);
    or_skip!(links_cxx(llvm.clangxx(), &[]));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("symbols.o");
    let compiled = Command::new(llvm.clangxx())
        .args(["-std=c++17", "-O0", "-c", "-o"])
        .arg(&file)
        .arg(repo_root().join("tests/programs/symbols.cpp"))
        .status()
        .expect("the compiler");
    assert!(compiled.success());
    let bytes = std::fs::read(&file).expect("the object file");
    let object = object::File::parse(&*bytes).expect("an object file");
    let symbols: Vec<&str> = object
        .symbols()
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| name.starts_with("_Z"))
        .collect();
    let ours: Vec<(&str, String)> = symbols
        .iter()
        .filter_map(|&symbol| Some((symbol, itanium::demangle(symbol)?)))
        .collect();
    assert!(
        ours.len() > 1000 && ours.len() * 5 > symbols.len() * 4,
        "{} of {}",
        ours.len(),
        symbols.len()
    );
    let mut tool = Command::new("llvm-cxxfilt-22")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("llvm-cxxfilt-22");
    let lines: String = ours
        .iter()
        .map(|(symbol, _)| format!("{symbol}\n"))
        .collect();
    let mut stdin = tool.stdin.take().expect("a pipe");
    let writer =
        std::thread::spawn(move || stdin.write_all(lines.as_bytes()).expect("the tool reads"));
    let output = tool.wait_with_output().expect("it ends");
    writer.join().expect("the writer");
    let theirs = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(theirs.lines().count(), ours.len());
    for ((symbol, ours), theirs) in ours.iter().zip(theirs.lines()) {
        // `llvm-cxxfilt` fails for conversion operators whose type has template arguments: it takes these for arguments
        // of the operator. It then prints the symbol unchanged.
        if theirs != *symbol {
            assert_eq!(alike(ours), alike(theirs), "{symbol}");
        }
    }
}
