//! Function names for people: demangled, and safe to print.
pub use profkit_data::printable;
use std::borrow::Cow;
use std::fmt::{self, Write};

/// The largest length of a name in bytes. Longer names are not demangled, and demangled names are cut at this length,
/// because demangling a malicious name can produce a text of any size.
const MOST: usize = 16 << 10;

/// Returns a function name as it is printed: demangled, unless `mangled` is true. The file before the name of a local
/// function (`file.c;name`, up to LLVM 16 `file.c:name`) is kept. Control characters and bytes that are not UTF-8 are
/// escaped.
///
/// ```
/// use profkit_analysis::names;
///
/// assert_eq!(names::display(b"_ZN2ns5parseEi", false), "ns::parse(int)");
/// assert_eq!(names::display(b"_ZN2ns5parseEi", true), "_ZN2ns5parseEi");
/// assert!(names::is_named(b"file.cpp;_ZN2ns5parseEi", "ns::parse"));
/// ```
pub fn display(name: &[u8], mangled: bool) -> Cow<'_, str> {
    if !mangled && let Some(demangled) = demangle(name) {
        return Cow::Owned(demangled);
    }
    printable(name)
}

/// Returns the demangled form of a name, if the name is mangled.
pub fn demangle(name: &[u8]) -> Option<String> {
    if name.len() > MOST {
        return None;
    }
    let text = std::str::from_utf8(name).ok()?;
    let (prefix, symbol) = split_local(text);
    let demangled = demangle_symbol(symbol)?;
    Some(printable(format!("{prefix}{demangled}").as_bytes()).into_owned())
}

/// Whether `wanted` is a name of this function: the name as in the profile, without the source file, demangled, or
/// demangled without parameters.
pub fn is_named(name: &[u8], wanted: &str) -> bool {
    let Ok(text) = std::str::from_utf8(name) else {
        return false;
    };
    let (prefix, symbol) = split_local(text);
    if text == wanted || symbol == wanted {
        return true;
    }
    let Some(demangled) = demangle_symbol(symbol) else {
        return false;
    };
    let wanted = wanted.strip_prefix(prefix).unwrap_or(wanted);
    demangled == wanted
        || demangled
            .strip_prefix(wanted)
            .is_some_and(|rest| rest.starts_with('('))
}

/// Whether the mangled or the demangled form of a name contains a text.
pub fn contains(name: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(name).contains(text)
        || demangle(name).is_some_and(|demangled| demangled.contains(text))
}

/// The symbol of a function: its name without the file that LLVM puts before the name of a local function.
pub fn without_file(name: &[u8]) -> &[u8] {
    match std::str::from_utf8(name) {
        Ok(text) => split_local(text).1.as_bytes(),
        Err(_) => name,
    }
}

/// Splits a local function's name from the file that LLVM puts before it: `dir/file.c;` or `file.c:`.
fn split_local(name: &str) -> (&str, &str) {
    if let Some(end) = name.rfind(';') {
        return name.split_at(end + 1);
    }
    // The colon that LLVM inserts follows a file extension. Any other colon is part of an Objective-C selector or a
    // demangled name.
    match name.find(':') {
        Some(end)
            if name.get(..end).is_some_and(|file| file.contains('.'))
                && !name.starts_with(['-', '+'])
                && name
                    .get(end + 1..)
                    .is_some_and(|rest| !rest.starts_with(':')) =>
        {
            name.split_at(end + 1)
        }
        _ => ("", name),
    }
}

fn demangle_symbol(symbol: &str) -> Option<String> {
    let mut out = Capped(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        // The alternate form `{:#}` of a demangled Rust name has no hash at its end.
        write!(out, "{rust:#}").ok()?;
        return Some(out.0);
    }
    if !symbol.starts_with("_Z") && !symbol.starts_with("__Z") {
        return None;
    }
    // Compiler passes append suffixes (.llvm.123, .part.0), which are not part of the mangled name.
    let (stem, suffix) = match symbol.find('.') {
        Some(end) => symbol.split_at(end),
        None => (symbol, ""),
    };
    let cpp = cpp_demangle::Symbol::new(stem).ok()?;
    cpp.structured_demangle(&mut out, &cpp_demangle::DemangleOptions::default())
        .ok()?;
    out.write_str(suffix).ok()?;
    Some(out.0)
}

/// A text that is cut at [`MOST`] bytes.
struct Capped(String);

impl fmt::Write for Capped {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MOST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_languages_are_demangled() {
        for (name, shown) in [
            ("main", "main"),
            ("_Z3fooi", "foo(int)"),
            ("file.cpp;_ZL3barv", "file.cpp;bar()"),
            ("dir/file.c:helper", "dir/file.c:helper"),
            ("file.cpp:_ZN2ns3barEv", "file.cpp:ns::bar()"),
            ("_Z3fooi.llvm.123", "foo(int).llvm.123"),
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
            ),
            ("_RNvC6crate_4main", "crate_::main"),
            ("-[Foo bar:baz:]", "-[Foo bar:baz:]"),
            ("_Zjunk", "_Zjunk"),
            ("a\u{1b}[2J", "a\\u{1b}[2J"),
        ] {
            assert_eq!(display(name.as_bytes(), false), shown);
        }
        assert_eq!(display(b"_Z3fooi", true), "_Z3fooi");
        assert_eq!(display(b"a\xff", false), "a\\xff");
    }

    #[test]
    fn functions_are_found_under_each_of_their_names() {
        let name = b"file.cpp;_ZN2ns3barEi";
        for wanted in [
            "file.cpp;_ZN2ns3barEi",
            "_ZN2ns3barEi",
            "file.cpp;ns::bar(int)",
            "ns::bar(int)",
            "ns::bar",
        ] {
            assert!(is_named(name, wanted), "{wanted}");
        }
        assert!(!is_named(name, "ns::ba"));
        assert!(contains(name, "s::ba"));
    }

    #[test]
    fn a_name_that_explodes_is_left_as_it_is() {
        // Each substitution in this mangled name doubles the length of the demangled name.
        let mut name = "_Z1fI1aE".to_owned();
        for _ in 0..40 {
            name.push_str("S_I");
        }
        assert!(display(name.as_bytes(), false).len() <= MOST);
    }
}
