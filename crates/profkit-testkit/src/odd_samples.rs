//! Generates sample profiles with all unusual things that the text form allows: names with blanks and colons,
//! discriminators, many targets, vtables, lines out of order and repeated, huge counts. For ordinary profiles use
//! `sample_text`.
use crate::Rng;
use std::fmt::Write as _;

/// The properties of a generated unusual sample profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OddSamples {
    /// Whether the profile has calling contexts instead of inlined functions.
    pub contexts: bool,
    /// Whether the functions have checksums, as in profiles with pseudo probes.
    pub probes: bool,
    /// Whether the functions have attributes.
    pub attributes: bool,
    /// Whether the profile has vtables. They are at locations that have samples.
    pub vtables: bool,
}

impl OddSamples {
    /// Returns every combination of these properties.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..16u8).map(|bits| OddSamples {
            contexts: bits & 1 != 0,
            probes: bits & 2 != 0,
            attributes: bits & 4 != 0,
            vtables: bits & 8 != 0,
        })
    }
}

const NAMES: [&str; 12] = [
    "main",
    "_Z3foov",
    "_Z3barii",
    "std::vector<int, std::allocator<int> >::push_back(int const&)",
    "a::b<c d>",
    "_ZL6helperv.__uniq.1234.llvm.42",
    "_Z1av",
    "_Z2aav",
    "x",
    "zlib.part.0",
    "operator new(unsigned long)",
    "_Z9last_onev",
];
/// The indexes of names without a colon. In a calling context, a colon would end the name.
const PLAIN: [usize; 8] = [0, 1, 2, 5, 6, 7, 8, 9];

/// Returns the text of a generated sample profile. The same seed gives the same text.
pub fn odd_sample_text(shape: OddSamples, seed: u64) -> String {
    let mut odd = Odd {
        shape,
        rng: Rng::new(seed),
        text: String::new(),
    };
    for _ in 0..2 + odd.rng.below(12) {
        odd.function();
    }
    odd.text
}

struct Odd {
    shape: OddSamples,
    rng: Rng,
    text: String,
}

impl Odd {
    fn name(&mut self) -> usize {
        if self.shape.contexts {
            PLAIN[self.rng.below(PLAIN.len())]
        } else {
            self.rng.below(NAMES.len())
        }
    }

    fn count(&mut self) -> u64 {
        let exponent = [1, 4, 8, 20, 40][self.rng.below(5)];
        self.rng.below(1 << exponent) as u64
    }

    fn place(&mut self) -> String {
        let line = self.rng.below(40);
        match self.rng.below(4) {
            0 if !self.shape.probes => format!("{line}.{}", [1, 2, 70_000][self.rng.below(3)]),
            _ => line.to_string(),
        }
    }

    fn function(&mut self) {
        let name = self.name();
        let mut head = NAMES[name].to_owned();
        if self.shape.contexts {
            let mut context = String::new();
            for _ in 0..self.rng.below(4) {
                let caller = self.name();
                let place = self.place();
                let _ = write!(context, "{}:{place} @ ", NAMES[caller]);
            }
            head = format!("[{context}{head}]");
        }
        let (total, entries) = (self.count(), self.count());
        let _ = writeln!(self.text, "{head}:{total}:{entries}");
        self.body(name, 1);
    }

    fn body(&mut self, name: usize, depth: usize) {
        let indent = " ".repeat(depth);
        for _ in 0..self.rng.below(7) {
            let (place, samples) = (self.place(), self.count());
            let _ = write!(self.text, "{indent}{place}: {samples}");
            for _ in 0..[0, 0, 1, 2, 4][self.rng.below(5)] {
                let (target, count) = (self.rng.below(NAMES.len()), self.count());
                let _ = write!(self.text, " {}:{count}", NAMES[target]);
            }
            self.text.push('\n');
            if self.shape.vtables && self.rng.below(3) == 0 {
                let _ = writeln!(
                    self.text,
                    "{indent}{place}: vtables _ZTV1b:{} _ZTV1a:{} ",
                    1 + samples / 2,
                    1 + samples / 3
                );
            }
        }
        if !self.shape.contexts && depth < 5 {
            for _ in 0..self.rng.below(3) {
                let (place, callee, total) = (self.place(), self.name(), self.count());
                let _ = writeln!(self.text, "{indent}{place}: {}:{total}", NAMES[callee]);
                self.body(callee, depth + 1);
            }
        }
        if self.shape.probes {
            let _ = writeln!(self.text, "{indent}!CFGChecksum: {}", (name + 1) << 32);
        }
        if self.shape.attributes {
            let _ = writeln!(self.text, "{indent}!Attributes: {}", 1 + name % 4);
        }
    }
}
