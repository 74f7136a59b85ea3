//! Demangles symbols of C++ and Rust: converts them to names as people write them.
mod itanium;
#[cfg(test)]
mod tests;
mod v0;

pub(crate) use v0::crate_of as crate_of_v0;

use std::fmt::{self, Write};

/// The largest length in bytes of a symbol, and of its demangled name. A symbol is not demangled if one of the two is
/// longer. The limit is needed because demangling a malicious symbol can produce a text of any size.
pub const MOST: usize = 16 << 10;

/// Returns the demangled form of a symbol; `None` if it is not mangled, or is too long ([`MOST`]). With `hashes`, Rust
/// names keep the hash at their end.
///
/// ```
/// use profkit_object::demangle;
///
/// assert_eq!(demangle::symbol("_ZN2ns5parseEi", false).as_deref(), Some("ns::parse(int)"));
/// assert_eq!(demangle::symbol("main", false), None);
/// ```
pub fn symbol(symbol: &str, hashes: bool) -> Option<String> {
    if symbol.len() > MOST {
        return None;
    }
    // Without a hash, a name in the older scheme of Rust is one of C++.
    if let Some(rust) = rustc_demangle::try_demangle(symbol)
        .ok()
        .filter(|_| is_rust(symbol))
    {
        let mut out = Capped(String::with_capacity(2 * symbol.len()));
        // The alternate form `{:#}` of a demangled Rust name has no hash at its end.
        let written = if hashes {
            write!(out, "{rust}")
        } else {
            write!(out, "{rust:#}")
        };
        written.ok()?;
        return Some(out.0);
    }
    itanium_symbol(symbol, itanium::Style::Gnu)
}

/// Returns the demangled form of a C++ symbol with the words of LLVM's tools: `'lambda'(int)` where GNU's and
/// [`symbol`] have `{lambda(int)#1}`. `None` if it is no symbol of C++, or is too long ([`MOST`]).
///
/// ```
/// use profkit_object::demangle;
///
/// let text = demangle::as_llvm("_ZZ3runvENKUlvE_clEv");
/// assert_eq!(text.as_deref(), Some("run()::'lambda'()::operator()() const"));
/// ```
pub fn as_llvm(symbol: &str) -> Option<String> {
    let is_short = symbol.len() <= MOST;
    is_short
        .then(|| itanium_symbol(symbol, itanium::Style::Llvm))
        .flatten()
}

fn itanium_symbol(symbol: &str, style: itanium::Style) -> Option<String> {
    // Mach-O puts an underscore before each symbol.
    let symbol = match symbol.starts_with("__Z") {
        true => symbol.get(1..)?,
        false => symbol,
    };
    // Compiler passes append suffixes (.llvm.123, .part.0), and symbol tables versions (@GLIBCXX_3.4), which are not part of the mangled name.
    let (stem, suffix) = match symbol.find(['.', '@']) {
        Some(end) => symbol.split_at(end),
        None => (symbol, ""),
    };
    let mut out = Capped(String::with_capacity(2 * stem.len()));
    itanium::demangle(stem, style, &mut out)?;
    out.write_str(suffix).ok()?;
    Some(out.0)
}

/// Whether a mangled name is a Rust name: in Rust's own scheme, or in the C++ scheme with the hash that rustc appends.
pub(crate) fn is_rust(symbol: &str) -> bool {
    let hash_at_end = || {
        let (_, hash) = symbol.rsplit_once("17h")?;
        let (hash, rest) = hash.split_at_checked(16)?;
        Some(rest.starts_with('E') && hash.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    symbol.starts_with("_R") || symbol.starts_with("_ZN") && hash_at_end() == Some(true)
}

/// Returns a number that is equal for Rust symbols whose demangled names differ only in a hash, and differs for others,
/// unless they begin with the same names, `most` of them. `None` if the symbol is not a Rust name, too long ([`MOST`]), or damaged
/// as far as it is read. Symbols of the older scheme never have the number of one of the new scheme.
pub(crate) fn instance_key(symbol: &[u8], most: u32) -> Option<u64> {
    if symbol.len() > MOST {
        return None;
    }
    if symbol.starts_with(b"_R") {
        return v0::key(symbol, most);
    }
    let symbol = std::str::from_utf8(symbol).ok()?;
    let (stem, hash) = symbol.rsplit_once("17h").filter(|_| is_rust(symbol))?;
    let suffix = shown_suffix(hash.as_bytes().get(17..)?);
    Some(mix(mix(1, hash_of(stem.as_bytes())), hash_of(suffix)))
}

/// What the demangled name shows of the text that follows a mangled name.
fn shown_suffix(suffix: &[u8]) -> &[u8] {
    match memchr::memmem::find(suffix, b".llvm.") {
        Some(end) if !suffix.is_empty() => suffix.get(..end).unwrap_or_default(),
        _ => suffix,
    }
}

/// The hash of a text that is shown as it is.
pub(crate) fn text_key(text: &str) -> u64 {
    mix(2, hash_of(text.as_bytes()))
}

/// The hash of a text.
#[inline]
fn hash_of(text: &[u8]) -> u64 {
    let long = |word: &[u8; 8]| u64::from_le_bytes(*word);
    let short = |word: &[u8; 4]| u64::from(u32::from_le_bytes(*word));
    let mut hash = text.len() as u64;
    let mut rest = text;
    while let Some((pair, after)) = rest.split_first_chunk::<16>()
        && let ([first, second], _) = pair.as_chunks::<8>()
    {
        hash = multiply(hash ^ long(first), long(second));
        rest = after;
    }
    // The two words of what is left may overlap.
    if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        multiply(hash ^ long(first), long(last))
    } else if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        multiply(hash ^ short(first), short(last))
    } else {
        let last = rest
            .iter()
            .fold(0, |last, &byte| last << 8 | u64::from(byte));
        multiply(hash, last)
    }
}

/// A number in which each bit depends on all bits of two words.
#[inline]
fn multiply(one: u64, other: u64) -> u64 {
    let (low, high) = (one ^ 0x9e37_79b9_7f4a_7c15).carrying_mul(other ^ 0xd6e8_feb8_6659_fd93, 0);
    low ^ high
}

/// Adds a number to a hash. Each step is reversible, so that two hashes that differ stay different while the same is
/// added to both.
#[inline]
fn mix(key: u64, what: u64) -> u64 {
    let product = (key ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

/// A text of at most [`MOST`] bytes. Writing more is an error.
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
