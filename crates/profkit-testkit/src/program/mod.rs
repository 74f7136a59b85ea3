//! Generates random C programs. The same seed always gives the same program.
//!
//! The programs contain constructs that compilers translate to unusual machine code: jump tables, tail calls, frames
//! with stack probes, static chains, cold parts, targets of `longjmp`, computed gotos and more. They have no undefined
//! or unspecified behaviour: integers are unsigned; shifts, divisors and indices are masked; no expression has two
//! calls; every loop is bounded; and a counter limits the number of calls. So a program must print the same with every
//! compiler and optimisation level. If an instrumenter changes the output, the instrumenter is wrong.
mod body;
pub mod counts;
mod differ;
mod features;

pub use differ::{MIP_MODES, MipMode, Outcome, Setting, compare, outcome};

use crate::Rng;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// A generated C program: its source files.
#[derive(Clone, Debug)]
pub struct Program {
    seed: u64,
    sources: Vec<(String, String)>,
}

/// The size of a generated program.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of source files, at least 1.
    pub files: usize,
    /// The number of functions per file that other files can call.
    pub functions: usize,
}

impl Default for Size {
    fn default() -> Self {
        Size {
            files: 3,
            functions: 7,
        }
    }
}

impl Program {
    /// Generates the program for a seed.
    pub fn generate(seed: u64, size: Size) -> Program {
        let mut rng = Rng::new(seed);
        let files = size.files.max(1);
        let total = files * size.functions.max(1);
        let mut sources = vec![("shared.h".to_owned(), header(&mut rng, total))];
        for file in 0..files {
            let text = part(&mut rng, file, files, total);
            sources.push((format!("part{file}.c"), text));
        }
        sources.push(("main.c".to_owned(), main_file(&mut rng, total)));
        Program { seed, sources }
    }

    /// The seed from which the program was generated.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The names and texts of the files. Files whose name ends in `.c` must be compiled.
    pub fn sources(&self) -> &[(String, String)] {
        &self.sources
    }

    /// Writes the files to an existing folder. Returns the paths of the files to compile.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_to(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for (name, text) in &self.sources {
            let path = folder.join(name);
            std::fs::write(&path, text)?;
            if name.ends_with(".c") {
                paths.push(path);
            }
        }
        Ok(paths)
    }
}

/// The name of a weak function that every file defines. Copies that are not used may stay in the program.
pub const WEAK_FUNCTION: &str = "shared_weak";

/// Returns the index of the file that contains function `index`. Neighbouring functions are in different files, so that
/// calls go from file to file.
fn file_of(index: usize, files: usize) -> usize {
    index % files
}

fn header(rng: &mut Rng, total: usize) -> String {
    let mut text = String::from(
        "#ifndef SHARED_H\n#define SHARED_H\n\
         #include <setjmp.h>\n#include <stdarg.h>\n#include <stdint.h>\n#include <stdio.h>\n\
         #include <stdlib.h>\n#include <string.h>\n\
         #define NOINLINE __attribute__((noinline))\n\
         typedef uint64_t plain_fn(uint64_t a, uint64_t b, uint32_t depth);\n\
         extern uint32_t fuel;\n\
         extern uint64_t events;\n\
         extern uint64_t memory[64];\n\
         static inline int spent(void) { if (fuel == 0) return 1; fuel--; return 0; }\n\
         static inline uint64_t mix(uint64_t x) { x ^= x >> 29; x *= 0xbf58476d1ce4e5b9ull; return x ^ (x >> 32); }\n\
         static inline uint64_t of_double(double d) {\n  if (!(d > -1e15 && d < 1e15)) return 77;\n  return (uint64_t)(int64_t)(d * 16.0);\n}\n",
    );
    // Every file defines the same weak function. The linker uses one definition. Depending on the compiler, the code of
    // the others is removed or not.
    let weak = rng.bits();
    let _ = writeln!(
        text,
        "__attribute__((weak)) NOINLINE uint64_t shared_weak(uint64_t x) {{ return mix(x ^ {weak:#x}ull); }}"
    );
    for index in 0..total {
        let _ = writeln!(text, "plain_fn f{index};");
    }
    text.push_str("#endif\n");
    text
}

fn part(rng: &mut Rng, file: usize, files: usize, total: usize) -> String {
    let mut text = String::from("#include \"shared.h\"\n");
    let mut helpers = features::Helpers::default();
    // A table of function pointers contains only functions after the current one, so that the call graph has no cycles
    // except bounded recursion.
    let mine: Vec<usize> = (0..total)
        .filter(|index| file_of(*index, files) == file)
        .collect();
    for index in mine {
        let function = body::function(rng, index, total, &mut helpers);
        text.push_str(&helpers.take_text());
        text.push_str(&function);
    }
    if rng.below(2) == 0 {
        let amount = rng.bits() >> 8;
        let _ = writeln!(
            text,
            "__attribute__((constructor)) static void at_start(void) {{ events += {amount:#x}ull; }}"
        );
    }
    // This function is never called. `--gc-sections` may remove it, and it must not get a count.
    let _ = writeln!(
        text,
        "NOINLINE uint64_t unused_{file}(uint64_t x) {{ return mix(x) + {file}u; }}"
    );
    text
}

fn main_file(rng: &mut Rng, total: usize) -> String {
    let mut text = String::from(
        "#include \"shared.h\"\nuint32_t fuel;\nuint64_t events;\nuint64_t memory[64];\n\
         static void at_end(void) { printf(\"end %016llx\\n\", (unsigned long long)events); }\n\
         int main(void) {\n  uint64_t sum = 1;\n  atexit(at_end);\n  \
         for (unsigned i = 0; i < 64; i++) memory[i] = mix(i + 1);\n",
    );
    for _ in 0..total.div_ceil(2) {
        let root = rng.below(total.div_ceil(2));
        let depth = rng.below(6);
        let _ = writeln!(
            text,
            "  fuel = {}; sum = mix(sum ^ f{root}(sum, {:#x}ull, {depth}));\n  \
             printf(\"f{root} %016llx\\n\", (unsigned long long)sum);",
            300 + rng.below(1500),
            rng.bits()
        );
    }
    text.push_str(
        "  for (unsigned i = 0; i < 64; i++) sum = mix(sum + memory[i]);\n  \
         sum ^= shared_weak(sum);\n  \
         printf(\"checksum %016llx events %016llx\\n\", (unsigned long long)sum, (unsigned long long)events);\n  \
         return (int)(sum % 3);\n}\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_program() {
        let text = |seed| format!("{:?}", Program::generate(seed, Size::default()).sources());
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }
}
