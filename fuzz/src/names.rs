//! Fuzzes demangling.
use profkit_object::demangle::{self, MOST};
use profkit_object::readable;

/// Demangles each word of any text. A word is a row of characters that a symbol may have.
///
/// # Panics
/// If a demangled name is longer than the largest length; if the name that is demangled with hashes does not begin with
/// the name that is demangled without them, and the symbol is not one of Rust; or if the printed form has a control
/// character.
pub(crate) fn names(data: &[u8]) {
    let in_symbol =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$@;:".contains(byte) || *byte >= 0x80;
    let words = data.split(|byte| !in_symbol(byte));
    for word in words.filter(|word| word.len() > 2).take(MOST_WORDS) {
        for name in [word, &[b"_Z".as_slice(), word].concat()] {
            let shown = readable::display(name);
            assert!(!shown.contains(char::is_control), "{shown:?}");
            let _ = (
                readable::namespace_of(name),
                readable::crate_of(name),
                readable::file_of(name),
            );
            let Ok(symbol) = std::str::from_utf8(name) else {
                continue;
            };
            let Some(plain) = demangle::symbol(symbol, false) else {
                continue;
            };
            assert!(plain.len() <= MOST, "{} bytes", plain.len());
            let with_hashes = demangle::symbol(symbol, true);
            let has_hash = with_hashes
                .as_ref()
                .is_some_and(|text| text.starts_with(&plain));
            assert!(has_hash || rust(symbol), "{plain:?}, {with_hashes:?}");
        }
    }
}

/// The number of words that are demangled. More would make the target slow.
const MOST_WORDS: usize = 200;

fn rust(symbol: &str) -> bool {
    symbol.contains("_R") || symbol.contains("17h")
}
