//! Function names for people: demangled, and safe to print. `profkit_analysis::names` is this module, and in the crate
//! `profkit` it is `profkit::analysis::names`.
use crate::demangle;
pub use profkit_data::printable;
use std::borrow::Cow;

/// Returns a function name as it is printed: demangled. The file before the name of a local
/// function is kept. The form is `file.c:name` in front-end profiles, and in all profiles up to LLVM 16. It is
/// `file.c;name` in IR profiles since LLVM 17. rustc writes the name of a codegen unit instead of a file
/// (`lib.1a2b-cgu.1;name`); this name is left out. Control characters and bytes that are not UTF-8 are escaped.
///
/// ```
/// use profkit_object::readable;
///
/// assert_eq!(readable::display(b"_ZN2ns5parseEi"), "ns::parse(int)");
/// assert_eq!(readable::display(b"lib.1a2b-cgu.1;_RNvC3lib3run"), "lib::run");
/// assert!(readable::is_named(b"file.cpp;_ZN2ns5parseEi", "ns::parse"));
/// ```
pub fn display(name: &[u8]) -> Cow<'_, str> {
    spelled(name, Spelling::Demangled)
}

/// How names are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spelling {
    /// Demangled.
    #[default]
    Demangled,
    /// Demangled, with the hashes that distinguish the instances of a Rust function.
    WithHashes,
    /// As in the profile.
    Mangled,
}

impl From<bool> for Spelling {
    /// Returns the spelling for an option `--mangled`: [`Spelling::Mangled`] if it is set.
    fn from(mangled: bool) -> Self {
        if mangled {
            Spelling::Mangled
        } else {
            Spelling::Demangled
        }
    }
}

/// Returns a function name as it is printed, in any [`Spelling`].
///
/// ```
/// use profkit_object::readable::{Spelling, spelled};
///
/// let name = b"_ZN3lib4push17h0123456789abcdefE";
/// assert_eq!(spelled(name, Spelling::WithHashes), "lib::push::h0123456789abcdef");
/// assert_eq!(spelled(name, Spelling::Demangled), "lib::push");
/// ```
pub fn spelled(name: &[u8], spelling: Spelling) -> Cow<'_, str> {
    let demangled = match spelling {
        Spelling::Mangled => None,
        Spelling::Demangled => demangle(name),
        Spelling::WithHashes => demangle_with_hashes(name),
    };
    demangled.map_or_else(|| printable(name), Cow::Owned)
}

/// Returns the demangled form of a name, if the name is mangled.
pub fn demangle(name: &[u8]) -> Option<String> {
    demangle_local(name, false)
}

/// Returns the demangled form of a name, if the name is mangled. Rust names keep the hash at their end.
pub fn demangle_with_hashes(name: &[u8]) -> Option<String> {
    demangle_local(name, true)
}

fn demangle_local(name: &[u8], hashes: bool) -> Option<String> {
    let text = std::str::from_utf8(name).ok()?;
    let (prefix, symbol) = split_local(text);
    // clang's number of the source file in names of local functions, which has up to 39 digits.
    let plain = Some(symbol).filter(|_| !hashes).and_then(without_unique);
    let symbol = plain.as_deref().unwrap_or(symbol);
    let demangled = demangle::symbol(symbol, hashes).or(plain.clone());
    let shown = if is_codegen_unit(prefix) {
        demangled.unwrap_or_else(|| symbol.to_owned())
    } else if prefix.is_empty() {
        demangled?
    } else {
        format!("{prefix}{}", demangled?)
    };
    match printable(shown.as_bytes()) {
        Cow::Borrowed(_) => Some(shown),
        Cow::Owned(escaped) => Some(escaped),
    }
}

/// Returns a symbol without its part `.__uniq.N`; `None` if it has none.
fn without_unique(symbol: &str) -> Option<String> {
    let (before, after) = symbol.split_once(".__uniq.")?;
    let rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
    Some(format!("{before}{rest}"))
}

/// Whether the text before the name of a local function is not a file, but the name of a codegen unit of rustc:
/// `lib.1a2b-cgu.1;`.
fn is_codegen_unit(prefix: &str) -> bool {
    let Some((_, number)) = prefix.rsplit_once("-cgu.") else {
        return false;
    };
    let number = number.trim_end_matches([';', ':']);
    !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
}

/// Returns the name that all instances of a Rust function share: the demangled name without the hash. `None` if the
/// name is not a Rust name.
///
/// ```
/// use profkit_object::readable::without_hash;
///
/// assert_eq!(without_hash(b"_ZN3lib4push17h0123456789abcdefE").as_deref(), Some("lib::push"));
/// assert_eq!(without_hash(b"_Z4pushi"), None);
/// ```
pub fn without_hash(name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(name).ok()?;
    let (_, symbol) = split_local(text);
    demangle::is_rust(symbol).then(|| demangle(name)).flatten()
}

/// Returns a number that all instances of a Rust function share, and no other function has: a hash of what
/// [`without_hash`] returns, which needs no text. `None` if the name is not a Rust name, or damaged.
///
/// ```
/// use profkit_object::readable::instance_key;
///
/// let [one, other] = ["0123456789abcdef", "fedcba9876543210"].map(|hash| format!("_ZN3lib4push17h{hash}E"));
/// assert_eq!(instance_key(one.as_bytes()), instance_key(other.as_bytes()));
/// assert_eq!(instance_key(b"_Z4pushi"), None);
/// ```
pub fn instance_key(name: &[u8]) -> Option<u64> {
    key(name, u32::MAX)
}

/// Returns a number that all instances of a Rust function share, and few other functions have. It is found in less time than
/// [`instance_key`], because only the beginning of the name is read. If the name is damaged after that, it has no instance key.
pub fn instance_hint(name: &[u8]) -> Option<u64> {
    key(name, 6)
}

fn key(name: &[u8], most: u32) -> Option<u64> {
    let is_candidate = match name {
        [b'_', b'R', ..]
        | [
            ..,
            b'1',
            b'7',
            b'h',
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            b'E',
        ] => true,
        // Only after a suffix that a pass of the compiler appends.
        [b'_', b'Z', ..] => memchr::memchr(b'.', name).is_some(),
        _ => memchr::memchr2(b';', b':', name).is_some(),
    };
    if !is_candidate {
        return None;
    }
    // Nearly all Rust names: they need no more.
    if name.starts_with(b"_R") && name.is_ascii() && memchr::memchr2(b';', b':', name).is_none() {
        return demangle::instance_key(name, most);
    }
    let text = std::str::from_utf8(name).ok()?;
    let (prefix, symbol) = split_local(text);
    if !demangle::is_rust(symbol) {
        return None;
    }
    let key = demangle::instance_key(symbol.as_bytes(), most)?;
    if prefix.is_empty() || is_codegen_unit(prefix) {
        return Some(key);
    }
    Some(key.rotate_left(1) ^ demangle::text_key(prefix))
}

/// Whether a function is a Rust function, of which a program may have several instances that differ only in a hash
/// ([`without_hash`]).
pub fn is_instance(name: &[u8]) -> bool {
    let text = std::str::from_utf8(name);
    text.is_ok_and(|text| demangle::is_rust(split_local(text).1))
}

/// Returns the source file that LLVM puts before the name of a local function; `None` if the name has none.
///
/// ```
/// use profkit_object::readable::file_of;
///
/// assert_eq!(file_of(b"src/file.cpp;_ZL3barv"), Some("src/file.cpp"));
/// assert_eq!(file_of(b"_Z3barv"), None);
/// ```
pub fn file_of(name: &[u8]) -> Option<&str> {
    let (prefix, _) = split_local(std::str::from_utf8(name).ok()?);
    let file = prefix.strip_suffix([';', ':'])?;
    (!file.is_empty() && !is_codegen_unit(prefix)).then_some(file)
}

/// Returns the crate of a Rust function; `None` for other functions. For a method, this is the crate that has the `impl`,
/// or the trait if the method is its default. Names in Rust's older scheme do not say so: for these, it is the crate of
/// the type to which the method belongs.
///
/// ```
/// use profkit_object::readable::crate_of;
///
/// assert_eq!(crate_of(b"_ZN3lib4push17h0123456789abcdefE").as_deref(), Some("lib"));
/// assert_eq!(crate_of(b"_ZN3lib4pushEi"), None);
/// ```
pub fn crate_of(name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(name).ok()?;
    let (_, symbol) = split_local(text);
    if let Some(of) = demangle::crate_of_v0(symbol) {
        return Some(of.to_owned());
    }
    let path = demangle::symbol(symbol, false).filter(|_| demangle::is_rust(symbol))?;
    path_of_type(&path)?.split("::").next().map(str::to_owned)
}

/// The functions of C that allocate memory.
const ALLOCATORS: [&str; 12] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "strdup",
    "strndup",
    "__strdup",
];

/// The crates of Rust's standard library.
const STANDARD_CRATES: [&str; 4] = ["alloc", "core", "std", "hashbrown"];

/// Whether a function belongs to the standard library of C++ or Rust, or allocates memory for the caller, as `malloc`
/// does. Functions of programs that only have types of such a library as parameters or template arguments do not.
///
/// ```
/// use profkit_object::readable::is_of_standard_library;
///
/// assert!(is_of_standard_library(b"_ZNSt6vectorIiSaIiEE9push_backEOi"));
/// assert!(is_of_standard_library(b"__interceptor_malloc"));
/// assert!(!is_of_standard_library(b"_ZN2ns3putESt6vectorIiSaIiEE"));
/// ```
pub fn is_of_standard_library(name: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(name) else {
        return false;
    };
    let (_, symbol) = split_local(text);
    if demangle::is_rust(symbol) {
        return crate_of(name).is_some_and(|of| STANDARD_CRATES.contains(&of.as_str()));
    }
    let Some(encoding) = symbol.strip_prefix("_Z") else {
        let plain = symbol.trim_start_matches('_');
        let plain = plain.strip_prefix("interceptor_").unwrap_or(plain);
        return ALLOCATORS.contains(&symbol)
            || ALLOCATORS.contains(&plain)
            || plain.starts_with("rust_alloc");
    };
    // `operator new` and `operator new[]`.
    if encoding.starts_with("nw") || encoding.starts_with("na") {
        return true;
    }
    // A local entity begins with the function that contains it; a nested name may begin with qualifiers.
    let scope = encoding.trim_start_matches('Z');
    let scope = match scope.strip_prefix('N') {
        Some(nested) => nested.trim_start_matches(['r', 'V', 'K', 'R', 'O']),
        None => scope,
    };
    let abbreviated = |letter: char| matches!(letter, 't' | 'a' | 'b' | 's' | 'i' | 'o' | 'd');
    scope
        .strip_prefix('S')
        .is_some_and(|rest| rest.starts_with(abbreviated))
        || scope.starts_with("9__gnu_cxx")
        || scope.starts_with("10__cxxabiv1")
}

/// Returns the path at the start of the demangled name of a Rust function. For a method of a trait
/// (`<lib::Type as core::Trait>::method`), this is the path of the type. If the type is a type parameter or a built-in
/// type, it is the path of the trait. `None` if the name has no path.
fn path_of_type(name: &str) -> Option<&str> {
    let (first, of_trait) = match name.split_once(" as ") {
        Some((first, rest)) if name.starts_with('<') => (first, Some(rest)),
        _ => (name, None),
    };
    [Some(first), of_trait]
        .into_iter()
        .flatten()
        .find_map(|text| {
            let text = text.trim_start_matches(['<', '&', '*', '[', '(']);
            let words = ["mut ", "const ", "dyn "].iter();
            let text = words.fold(text, |text, word| text.strip_prefix(word).unwrap_or(text));
            let end = text.find(|one: char| !(one.is_alphanumeric() || matches!(one, '_' | ':')));
            let path = text.get(..end.unwrap_or(text.len()))?;
            path.contains("::").then(|| path.trim_end_matches(':'))
        })
}

/// Returns the scope of a C++ or Rust function: the namespaces or modules and the types that contain the function,
/// without template arguments. `None` for names without a scope.
///
/// ```
/// use profkit_object::readable::namespace_of;
///
/// assert_eq!(namespace_of(b"_ZN4llvm11SmallVectorIiLj4EE4growEm").as_deref(), Some("llvm::SmallVector"));
/// assert_eq!(namespace_of(b"_ZN3lib4push17h0123456789abcdefE").as_deref(), Some("lib"));
/// assert_eq!(namespace_of(b"main"), None);
/// ```
pub fn namespace_of(name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(name).ok()?;
    let (_, symbol) = split_local(text);
    let demangled = demangle::symbol(symbol, false);
    scope(demangled.as_deref().unwrap_or(symbol))
}

/// Returns the scope of a demangled name: the text before the last `::` that is outside brackets, without the return
/// type and without template arguments. `None` if the name has no scope.
fn scope(path: &str) -> Option<String> {
    // The scope of `<lib::Type as core::Trait>::method` is the type.
    if path.starts_with('<') {
        return path_of_type(path).map(str::to_owned);
    }
    let kept = self::path(path);
    let (scope, _) = kept.rsplit_once("::")?;
    let scope = scope.trim_end_matches("::");
    (!scope.is_empty()).then(|| scope.to_owned())
}

/// Returns a demangled name without the return type, the parameters, and template arguments. A method of a trait in Rust
/// (`<lib::Type as core::Trait>::method`) has the path of the type before it.
pub fn path(path: &str) -> String {
    let mut kept = String::new();
    if path.starts_with('<')
        && let Some(of) = path_of_type(path)
    {
        kept.push_str(of);
    }
    let mut depth = 0u32;
    let mut rest = path;
    while let Some(one) = rest.chars().next() {
        if depth == 0 && rest.starts_with("(anonymous namespace)") {
            kept.push_str("(anonymous namespace)");
            rest = rest.get("(anonymous namespace)".len()..).unwrap_or("");
            continue;
        }
        // The signs of an operator, such as `<` or `(`, are not brackets here. The name of an operator is the last part
        // of the path.
        if depth == 0
            && rest.starts_with("operator")
            && (kept.is_empty() || kept.ends_with([':', ' ']))
        {
            kept.push_str("operator");
            break;
        }
        match one {
            '(' if depth == 0 => break,
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            // The text before this blank is the return type of a template function, so it is left out.
            ' ' if depth == 0 => kept.clear(),
            one if depth == 0 => kept.push(one),
            _ => {}
        }
        rest = rest.get(one.len_utf8()..).unwrap_or("");
    }
    // The content of brackets is left out. If the name ended with brackets (of generics or of a closure), it now ends
    // with the `::` before them, which is removed here.
    kept.truncate(kept.trim_end_matches("::").len());
    kept
}

/// Whether `wanted` is one of the names of this function: the name as in the profile, the name without the source file,
/// the demangled name as LLVM's or GNU's tools print it, or the demangled name without parameters. Blanks do not count.
pub fn is_named(name: &[u8], wanted: &str) -> bool {
    let Ok(text) = std::str::from_utf8(name) else {
        return false;
    };
    let (prefix, symbol) = split_local(text);
    if text == wanted || symbol == wanted {
        return true;
    }
    let Some(demangled) = demangle::symbol(symbol, false) else {
        return false;
    };
    let wanted = compact(wanted.strip_prefix(prefix).unwrap_or(wanted));
    let is_wanted = |text: &str| {
        let text = compact(text);
        let rest = text.strip_prefix(wanted.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
    };
    // Only with these words LLVM's tools print a name differently from GNU's.
    let words = ["'", "nullptr_t", "decltype", "auto", "complex", "vector["];
    is_wanted(&demangled)
        || words.iter().any(|word| wanted.contains(word))
            && demangle::as_llvm(symbol).is_some_and(|text| is_wanted(&text))
}

/// A name without what differs between tools: blanks, and the names of classes of the standard library that have short
/// names.
fn compact(name: &str) -> String {
    let mut text: String = name.chars().filter(|&one| one != ' ').collect();
    const TRAITS: &str = "char,std::char_traits<char>";
    for (short, template, more) in [
        ("std::string", "basic_string", ",std::allocator<char>"),
        ("std::istream", "basic_istream", ""),
        ("std::ostream", "basic_ostream", ""),
        ("std::iostream", "basic_iostream", ""),
    ] {
        if text.contains(template) {
            text = text.replace(&format!("std::{template}<{TRAITS}{more}>"), short);
        }
    }
    text
}

/// Whether a name contains `text` in its mangled or demangled form.
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
    // Most names have neither character, which a search from the beginning finds fastest.
    if memchr::memchr2(b';', b':', name.as_bytes()).is_none() {
        return ("", name);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The symbols of this program are of several crates, most of them generic functions.
    #[test]
    fn keys_are_equal_where_demangled_names_are_equal() {
        use object::{Object as _, ObjectSymbol as _};
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let program = object::File::parse(&*program).unwrap();
        let of_program = program.symbols().filter_map(|symbol| symbol.name().ok());
        let others = [
            "_RNvXs0_Cs4Jz2Mtfmu5I_1vRTAhj4_FhEhENtB5_1V1vB5_",
            "_RNvXs1_Cs4Jz2Mtfmu5I_1vINtB5_1WKj3_Kc78_ENtB5_1V1vB5_",
            "_RNvXs1_Cs4Jz2Mtfmu5J_1vINtB5_1WKj3_Kc78_ENtB5_1V1vB5_",
            "_RNvXs1_Cs4Jz2Mtfmu5J_1vINtB5_1WKj4_Kc78_ENtB5_1V1vB5_",
            "_RNvXs1_Cs4Jz2Mtfmu5J_1vINtB5_1WKj4_Kc78_ENtB5_1V1vCs1_3foo",
            "_RINvNtCs12_4core3ptr13drop_in_placeNtCs4f_1v4TypeEB4_",
            "_RINvNtCs13_4core3ptr13drop_in_placeNtCs4f3_1v4TypeECs3_3bin",
            "_RNCNvCs12_4main1f0B3_",
            "_RNCNvCs12_4main1fs_0B3_",
            "_RNCNvCs1_4main1fs_0B3_",
            "lib.1a2b-cgu.1;_RNCNvCs1_4main1fs_0B3_",
            "file.rs;_RNCNvCs1_4main1fs_0B3_",
            "_RNvCs1234_7mycrate3foo",
            "_RNvCs1234_7mycrate3foo.llvm.123",
            "_RNvCs1234_7mycrate3foo.cold",
            "_ZN3lib4push17h0123456789abcdefE",
            "_ZN3lib4push17h1123456789abcdefE.llvm.12",
            "_ZN3lib4push17h1123456789abcdefE.cold",
            "_ZN3lib3pop17h1123456789abcdefE",
        ];
        let mut keys = std::collections::HashMap::new();
        let mut texts = std::collections::HashMap::new();
        let mut hints = std::collections::HashMap::new();
        let mut count = 0;
        for name in of_program.chain(others) {
            let (text, key) = (without_hash(name.as_bytes()), instance_key(name.as_bytes()));
            assert_eq!(text.is_some(), key.is_some(), "{name}");
            let (Some(text), Some(key)) = (text, key) else {
                continue;
            };
            count += 1;
            let hint = hints.entry(key).or_insert(instance_hint(name.as_bytes()));
            assert!(
                hint.is_some() && *hint == instance_hint(name.as_bytes()),
                "{name}"
            );
            // The two manglings have keys of their own.
            let scheme = name.contains("_R");
            let known = texts.entry((scheme, text.clone())).or_insert((key, name));
            assert_eq!(known.0, key, "{text}: {name} and {}", known.1);
            let known = keys.entry(key).or_insert(text.clone());
            assert_eq!(*known, text, "{name}");
        }
        assert!(count > 1000, "{count}");
    }

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
            ("lib.1a2b-cgu.12;_RNvC3lib3run", "lib::run"),
            ("lib.1a2b-cgu.0:run", "run"),
            ("my-cgu.c;run", "my-cgu.c;run"),
            ("a\u{1b}[2J", "a\\u{1b}[2J"),
        ] {
            assert_eq!(display(name.as_bytes()), shown);
        }
        assert_eq!(spelled(b"_Z3fooi", Spelling::Mangled), "_Z3fooi");
        assert_eq!(display(b"a\xff"), "a\\xff");
    }

    #[test]
    fn scopes_of_demangled_names() {
        for (name, scope_of_it) in [
            ("main", None),
            ("foo(int)", None),
            ("ns::foo(std::vector<int, std::allocator<int>>)", Some("ns")),
            ("void ns::Box<a::b>::put<c::d>(e::f)", Some("ns::Box")),
            (
                "(anonymous namespace)::Triangle::area() const",
                Some("(anonymous namespace)::Triangle"),
            ),
            ("ns::operator<<(std::ostream&, ns::T)", Some("ns")),
            ("std::ostream& ns::T::operator()(int)", Some("ns::T")),
            ("operator new(unsigned long)", None),
            (
                "ns::f(int)::{lambda(int)#1}::operator()(int) const",
                Some("ns"),
            ),
            ("<lib::Type<T> as core::ops::Drop>::drop", Some("lib::Type")),
            (
                "<&mut lib::Type as core::fmt::Debug>::fmt",
                Some("lib::Type"),
            ),
            ("core::ptr::drop_in_place::<lib::Type>", Some("core::ptr")),
            ("lib::module::function::{{closure}}", Some("lib::module")),
        ] {
            assert_eq!(scope(name).as_deref(), scope_of_it, "{name}");
        }
    }

    #[test]
    fn paths_have_the_type_of_a_method() {
        for (name, path_of_it) in [
            ("void ns::Box<a::b>::put<c::d>(e::f)", "ns::Box::put"),
            (
                "<alloc::vec::Vec<u8> as std::io::Write>::write",
                "alloc::vec::Vec::write",
            ),
            ("<lib::Type>::new", "lib::Type::new"),
        ] {
            assert_eq!(path(name), path_of_it);
        }
    }

    #[test]
    fn crates_are_those_of_rust_names_alone() {
        for (name, of) in [
            ("_ZN3lib4push17h0123456789abcdefE", Some("lib")),
            (
                "_ZN51_$LT$lib..Type$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE",
                Some("lib"),
            ),
            ("_RNvC6crate_4main", Some("crate_")),
            // `<core::time::Duration as v::V>::v`, whose `impl` is in crate `v`.
            (
                "_RNvXCs4fqI2P2rA04_1vNtNtCs1234_4core4time8DurationNtB2_1V1v",
                Some("v"),
            ),
            ("_ZN3lib4pushEi", None),
            ("main", None),
        ] {
            assert_eq!(crate_of(name.as_bytes()).as_deref(), of, "{name}");
        }
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
        let pair = b"_Z3putSt4pairISt6vectorIiSaIiEEDnE";
        for wanted in [
            "put(std::pair<std::vector<int, std::allocator<int>>, std::nullptr_t>)",
            "put(std::pair<std::vector<int, std::allocator<int> >, decltype(nullptr)>)",
        ] {
            assert!(is_named(pair, wanted), "{wanted}");
        }
        let lambda = b"_ZZ3runvENKUlvE_clEv";
        assert!(is_named(lambda, "run()::'lambda'()::operator()() const"));
        assert!(is_named(lambda, "run()::{lambda()#1}::operator()"));
        assert!(contains(name, "s::ba"));
    }

    #[test]
    fn a_name_that_explodes_is_left_as_it_is() {
        // Each substitution in this mangled name doubles the length of the demangled name.
        let mut name = "_Z1fI1aE".to_owned();
        for _ in 0..40 {
            name.push_str("S_I");
        }
        assert!(display(name.as_bytes()).len() <= demangle::MOST);
    }
}
