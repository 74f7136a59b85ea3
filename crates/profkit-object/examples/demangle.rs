//! Demangles the symbols on standard input, one per line, with the words of GNU's tools or, with `llvm`, of LLVM's.
//!
//!     nm -j libstdc++.so.6 | cargo run -p profkit-object --example demangle -- llvm
use profkit_object::demangle;
use std::io::{BufWriter, Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_llvm = std::env::args().nth(1).as_deref() == Some("llvm");
    let mut symbols = String::new();
    std::io::stdin().read_to_string(&mut symbols)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for symbol in symbols.lines() {
        let text = match is_llvm {
            true => demangle::as_llvm(symbol),
            false => demangle::symbol(symbol, false),
        };
        writeln!(out, "{}", text.as_deref().unwrap_or(symbol))?;
    }
    Ok(())
}
