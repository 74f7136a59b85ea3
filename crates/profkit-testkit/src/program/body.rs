//! Generates the bodies of functions: statements that use a fixed set of local variables.
use super::features::{self, Helpers};
use crate::Rng;
use std::fmt::Write as _;

/// The number of local variables in a function. All have the type `uint64_t` and are set before they are used.
const VARIABLES: usize = 5;

struct Body<'a> {
    rng: &'a mut Rng,
    helpers: &'a mut Helpers,
    text: String,
    index: usize,
    total: usize,
    labels: usize,
    /// The number of calls in the body so far. A body may contain only a few, because the number of executed calls
    /// multiplies with each level of calls.
    calls: usize,
}

/// Generates the function `fINDEX`, which other files can call. Adds the helper functions that it needs to `helpers`.
pub fn function(rng: &mut Rng, index: usize, total: usize, helpers: &mut Helpers) -> String {
    let mut body = Body {
        rng,
        helpers,
        text: String::new(),
        index,
        total,
        labels: 0,
        calls: 0,
    };
    body.write();
    body.text
}

impl Body<'_> {
    fn write(&mut self) {
        let attribute = match self.rng.below(8) {
            0 | 1 => "NOINLINE ",
            2 => "__attribute__((cold)) ",
            3 => "__attribute__((hot)) ",
            4 => "__attribute__((aligned(64))) ",
            _ => "",
        };
        let big_frame = self.rng.below(6) == 0;
        let index = self.index;
        let _ = writeln!(
            self.text,
            "{attribute}uint64_t f{index}(uint64_t a, uint64_t b, uint32_t depth) {{"
        );
        let seeds: Vec<u64> = (0..VARIABLES).map(|_| self.rng.bits()).collect();
        for (number, seed) in seeds.iter().enumerate() {
            let from = if number % 2 == 0 { "a" } else { "b" };
            let _ = writeln!(self.text, "  uint64_t v{number} = {from} ^ {seed:#x}ull;");
        }
        let words = 1usize << (3 + self.rng.below(3));
        let _ = writeln!(
            self.text,
            "  uint32_t array[{words}]; double d = (double)(a & 0xffff);\n  \
             for (unsigned i = 0; i < {words}; i++) array[i] = (uint32_t)(a >> (i & 31)) + i;"
        );
        if big_frame {
            let size = 4096 + self.rng.below(20000);
            let _ = writeln!(
                self.text,
                "  volatile unsigned char big[{size}]; big[0] = 1; big[{size} - 1] = (unsigned char)a; v0 += big[{size} - 1];"
            );
        }
        self.text.push_str("  if (spent()) return a ^ (b >> 1);\n");
        let statements = 4 + self.rng.below(7);
        for _ in 0..statements {
            self.statement(1, words);
        }
        let sum = "v0 ^ v1 + v2 ^ v3 - v4 ^ array[a & 7] ^ of_double(d)";
        if self.rng.below(4) == 0 && self.index + 1 < self.total {
            // Compilers can make a tail call of this.
            let callee = self.later();
            let _ = writeln!(
                self.text,
                "  return f{callee}(mix({sum}), v1, depth / 2);\n}}\n"
            );
        } else {
            let _ = writeln!(self.text, "  return mix({sum});\n}}\n");
        }
    }

    /// Chooses one of the functions after the current one. There must be at least one.
    fn later(&mut self) -> usize {
        self.index + 1 + self.rng.below(self.total - self.index - 1)
    }

    fn variable(&mut self) -> String {
        format!("v{}", self.rng.below(VARIABLES))
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.rng.below(5) {
                0 => format!("{:#x}ull", self.rng.bits() >> self.rng.below(60)),
                1 => "a".to_owned(),
                2 => "b".to_owned(),
                _ => self.variable(),
            };
        }
        let left = self.expression(depth - 1);
        let right = self.expression(depth - 1);
        match self.rng.below(14) {
            0 => format!("({left} + {right})"),
            1 => format!("({left} - {right})"),
            2 => format!("({left} * {right})"),
            3 => format!("({left} ^ {right})"),
            4 => format!("({left} & {right})"),
            5 => format!("({left} | {right})"),
            6 => format!("({left} << ({right} & 63))"),
            7 => format!("({left} >> ({right} & 63))"),
            8 => format!("({left} / ({right} | 1))"),
            9 => format!("({left} % ({right} | 1))"),
            10 => format!("(({left} < {right}) ? {left} : ~{right})"),
            11 => format!("(uint64_t)(uint32_t)({left} * 3u + {right})"),
            12 => format!("memory[({left} ^ {right}) & 63]"),
            _ => format!("(uint64_t)(({left} & 1) && !({right} & 2))"),
        }
    }

    fn statement(&mut self, depth: usize, words: usize) {
        let pad = "  ".repeat(depth);
        let kind = self.rng.below(if depth >= 3 { 5 } else { 15 });
        match kind {
            0 | 1 => {
                let (target, value) = (self.variable(), self.expression(2));
                let _ = writeln!(self.text, "{pad}{target} = {value};");
            }
            2 => {
                let (index, value) = (self.expression(1), self.expression(2));
                let _ = writeln!(
                    self.text,
                    "{pad}array[{index} & {}] += (uint32_t){value};",
                    words - 1
                );
            }
            3 => {
                let (index, value) = (self.expression(1), self.expression(1));
                let _ = writeln!(self.text, "{pad}memory[{index} & 63] ^= {value};");
            }
            4 => {
                let value = self.expression(1);
                let factor = self.rng.below(7);
                let _ = writeln!(
                    self.text,
                    "{pad}d = d * 0.5 + (double)({value} & 0xfff) * {factor}.25;"
                );
            }
            5 => {
                let condition = self.expression(2);
                let _ = writeln!(self.text, "{pad}if ({condition} & 4) {{");
                self.statement(depth + 1, words);
                let _ = writeln!(self.text, "{pad}}} else {{");
                self.statement(depth + 1, words);
                let _ = writeln!(self.text, "{pad}}}");
            }
            6 => {
                let bound = 1 + self.rng.below(7);
                let _ = writeln!(
                    self.text,
                    "{pad}for (unsigned i{depth} = 0; i{depth} < {bound}; i{depth}++) {{"
                );
                self.statement(depth + 1, words);
                let left = self.expression(1);
                let exit = if self.rng.below(2) == 0 {
                    "break"
                } else {
                    "continue"
                };
                let _ = writeln!(
                    self.text,
                    "{pad}  if (({left} + i{depth}) % 11 == 3) {exit};"
                );
                self.statement(depth + 1, words);
                let _ = writeln!(self.text, "{pad}}}");
            }
            7 => self.switch(depth, words, &pad),
            8 | 9 if self.calls < 3 && self.index + 1 < self.total => {
                self.calls += 1;
                let (target, callee) = (self.variable(), self.later());
                let (first, second) = (self.expression(1), self.expression(1));
                let _ = writeln!(
                    self.text,
                    "{pad}{target} ^= f{callee}({first}, {second}, depth);"
                );
            }
            10 if self.calls < 3 => {
                self.calls += 1;
                let (target, first) = (self.variable(), self.expression(1));
                let index = self.index;
                let _ = writeln!(
                    self.text,
                    "{pad}if (depth > 0) {target} += f{index}({first}, b, depth - 1);"
                );
            }
            11 if self.calls < 3 && self.index + 1 < self.total => {
                self.calls += 1;
                let size = 1usize << self.rng.below(4);
                let callees: Vec<String> =
                    (0..size).map(|_| format!("f{}", self.later())).collect();
                let (target, chosen) = (self.variable(), self.expression(1));
                let _ = writeln!(
                    self.text,
                    "{pad}{{ static plain_fn *const table[] = {{ {} }};\n{pad}  \
                     {target} += table[{chosen} & {}](b, a, depth / 2); }}",
                    callees.join(", "),
                    size - 1
                );
            }
            12 => {
                let label = self.labels;
                self.labels += 1;
                let condition = self.expression(1);
                let _ = writeln!(
                    self.text,
                    "{pad}if (({condition} & 3) == 1) goto skip{label};"
                );
                self.statement(depth + 1, words);
                let _ = writeln!(self.text, "{pad}skip{label}:;");
            }
            _ => {
                let (target, argument) = (self.variable(), self.expression(1));
                let name = features::any(self.rng, self.helpers);
                let _ = writeln!(self.text, "{pad}{target} ^= {name}({argument}, b);");
            }
        }
    }

    /// Generates a switch statement. Its case values are so close that most compilers make a jump table, and some cases
    /// fall through.
    fn switch(&mut self, depth: usize, words: usize, pad: &str) {
        let cases = 4 + self.rng.below(12);
        let value = self.expression(1);
        let _ = writeln!(self.text, "{pad}switch ({value} % {}) {{", cases + 2);
        for case in 0..cases {
            let _ = writeln!(self.text, "{pad}case {case}:");
            if depth < 2 && self.rng.below(3) == 0 {
                self.statement(depth + 2, words);
            } else {
                let (target, constant) = (self.variable(), self.rng.bits() >> 20);
                let _ = writeln!(
                    self.text,
                    "{pad}  {target} = {target} * {case} + {constant:#x}ull;"
                );
            }
            if self.rng.below(4) != 0 {
                let _ = writeln!(self.text, "{pad}  break;");
            }
        }
        let _ = writeln!(self.text, "{pad}default: v0++;\n{pad}}}");
    }
}
