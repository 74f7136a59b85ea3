//! Every C++ symbol of large libraries is demangled as LLVM's and GNU's tools do it.
use object::{Object as _, ObjectSymbol as _};
use profkit_object::demangle;
use profkit_testkit::{or_skip, require_or_skip, skip};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a tool prints for each symbol; `Err` if it cannot be started.
fn printed_by(tool: &Path, symbols: &str) -> Result<Vec<String>, String> {
    let mut child = Command::new(tool)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", tool.display()))?;
    let mut input = child.stdin.take().unwrap();
    let symbols = symbols.to_owned();
    let writer = std::thread::spawn(move || input.write_all(symbols.as_bytes()));
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    Ok(text.lines().map(str::to_owned).collect())
}

/// The C++ symbols of a library, without versions and suffixes.
fn symbols_of(path: &Path, list: &mut BTreeSet<String>) {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    for symbol in file.dynamic_symbols().chain(file.symbols()) {
        let name = symbol.name().unwrap();
        if name.starts_with("_Z") && !name.contains(['.', '@']) {
            list.insert(name.to_owned());
        }
    }
}

/// A name of c++filt in the words of ours: blanks do not count, and old classes of the standard library have short names.
fn compact(name: &str) -> String {
    let mut text: String = name.chars().filter(|&one| one != ' ').collect();
    for (long, short) in [
        (
            "std::basic_string<char,std::char_traits<char>,std::allocator<char>>",
            "std::string",
        ),
        (
            "std::basic_istream<char,std::char_traits<char>>",
            "std::istream",
        ),
        (
            "std::basic_ostream<char,std::char_traits<char>>",
            "std::ostream",
        ),
        (
            "std::basic_iostream<char,std::char_traits<char>>",
            "std::iostream",
        ),
    ] {
        text = text.replace(long, short);
    }
    text
}

/// Why a name differs from that of LLVM's tool; `None` if it must not.
fn reason_of_llvm(symbol: &str, theirs: &str) -> Option<&'static str> {
    if symbol == theirs {
        return Some(
            "llvm-cxxfilt does not read it: an entity for transactional memory, or a pack as GCC wrote it before",
        );
    }
    // `S_` may stand for `T_` of another function; LLVM takes the argument of that one.
    let refers_to_parameters = symbol.contains("T_") && symbol.contains('S');
    if refers_to_parameters && (symbol.contains('Z') || symbol.contains("TnP")) {
        return Some(
            "a reference stands for a template parameter that was first used in another function",
        );
    }
    None
}

/// Why a name differs from that of c++filt; `None` if it must not.
fn reason_of_gnu(symbol: &str, theirs: &str) -> Option<&'static str> {
    if symbol == theirs {
        return Some("c++filt does not read it");
    }
    let is_expression = ["XadL_Z", "IX", "EX"]
        .iter()
        .any(|code| symbol.contains(code))
        || theirs.contains("decltype");
    if is_expression {
        return Some("an expression: c++filt puts brackets around names and operands");
    }
    if theirs.contains(", ,") || theirs.contains("(, ") {
        return Some("c++filt keeps the comma of an empty pack");
    }
    if theirs.contains("auto:") {
        return Some(
            "a reference stands for `T&`, which is `auto&` in a lambda; ours and LLVM's take the `T` of the function",
        );
    }
    if symbol.contains("Ut_") {
        return Some("c++filt names a constructor without name after the class around it");
    }
    None
}

#[test]
fn names_of_large_libraries_are_those_of_both_tools() {
    let llvm = require_or_skip!(22);
    let folder = PathBuf::from(format!("/usr/lib/llvm-{}", llvm.release()));
    let cxxfilt = folder.join("bin/llvm-cxxfilt");
    let system = Path::new("/usr/lib/x86_64-linux-gnu");
    let libraries = [
        system.join("libstdc++.so.6"),
        system.join("libLLVM-22.so"),
        folder.join("lib/libclang-22.so.1"),
        folder.join("lib/libclang-cpp.so.22.1"),
    ];
    let mut symbols = BTreeSet::new();
    for library in libraries.iter().filter(|path| path.exists()) {
        symbols_of(library, &mut symbols);
    }
    if symbols.len() < 5000 {
        skip("libstdc++.so.6 is not installed");
        return;
    }
    let text: String = symbols.iter().flat_map(|name| [name, "\n"]).collect();
    let of_llvm = or_skip!(printed_by(&cxxfilt, &text));
    let of_gnu = or_skip!(printed_by(Path::new("c++filt"), &text));
    let (mut differs_from_llvm, mut differs_from_gnu) = (0, 0);
    for ((symbol, llvm), gnu) in symbols.iter().zip(&of_llvm).zip(&of_gnu) {
        let as_llvm = demangle::as_llvm(symbol).unwrap_or_else(|| symbol.clone());
        let as_gnu = demangle::symbol(symbol, false).unwrap_or_else(|| symbol.clone());
        let equals_llvm = as_llvm == *llvm;
        let equals_gnu = compact(&as_gnu) == compact(gnu);
        if !equals_llvm {
            differs_from_llvm += 1;
            assert!(
                reason_of_llvm(symbol, llvm).is_some(),
                "{symbol}\n{llvm}\n{as_llvm}"
            );
        }
        if !equals_gnu {
            differs_from_gnu += 1;
            assert!(
                reason_of_gnu(symbol, gnu).is_some(),
                "{symbol}\n{gnu}\n{as_gnu}"
            );
        }
        // One of the two agrees, but where one does not read the symbol and the other misreads it.
        assert!(
            equals_llvm || equals_gnu || symbol == gnu || gnu.contains("auto:"),
            "{symbol}\n{llvm}\n{gnu}\n{as_llvm}\n{as_gnu}"
        );
    }
    println!(
        "of {} names, {differs_from_llvm} differ from llvm-cxxfilt's and {differs_from_gnu} from c++filt's",
        symbols.len()
    );
    // More would show that a reason covers a mistake.
    let most = 10 + symbols.len() / 200;
    assert!(
        differs_from_llvm <= most,
        "{differs_from_llvm} of {}",
        symbols.len()
    );
    assert!(
        differs_from_gnu <= most,
        "{differs_from_gnu} of {}",
        symbols.len()
    );
}
