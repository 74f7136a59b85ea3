//! Demangles symbols of C++ and Rust: converts them to names as people write them.
#[cfg(test)]
mod tests;

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
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
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
    if !symbol.starts_with("_Z") && !symbol.starts_with("__Z") {
        return None;
    }
    // Compiler passes append suffixes (.llvm.123, .part.0), which are not part of the mangled name.
    let (stem, suffix) = match symbol.find('.') {
        Some(end) => symbol.split_at(end),
        None => (symbol, ""),
    };
    let mut out = Capped(String::with_capacity(2 * stem.len()));
    let cpp = cpp_demangle::Symbol::new(stem).ok()?;
    cpp.structured_demangle(&mut out, &cpp_demangle::DemangleOptions::default())
        .ok()?;
    out.write_str(suffix).ok()?;
    Some(out.0)
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
