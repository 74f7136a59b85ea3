//! Function order: which functions a linker should place first, so that the start of a program touches few pages.
//!
//! [`by_mean`] sorts functions by the mean ordinal of their first call, and needs only one profile of many runs.
//! [`balanced`] needs a trace of each run, and places functions together that are needed at the same time.
mod balanced;
mod pages;
mod startup;
mod traces;

#[cfg(test)]
mod tests;

pub use balanced::{Partitioning, balanced};
pub use pages::{Footprint, footprint};
pub use startup::{Startup, StartupInput, StartupOrder, StartupText};
pub use traces::{RunError, Trace, Utilities, page_fault_area, trace, traces_of_run, utilities};

use profkit_data::mip::{Function, FunctionId, MipProfile};
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use std::fmt;

/// The linker that reads the order file. The linker decides the form of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OrderFile {
    /// For `--symbol-ordering-file` of lld for ELF. Each line is the name of a symbol.
    #[default]
    Lld,
    /// For `--section-ordering-file` of gold. Each line is the name of a section. With `-ffunction-sections`, compilers
    /// give each function a section that is named after it.
    Gold,
    /// A linker script for GNU ld's option `-T`. The script places the sections of the functions before all other code.
    GnuLd,
    /// For `-order_file` of ld64 and of lld for Mach-O. Each line is the name of a symbol, with the leading underscore
    /// that symbols have in Mach-O.
    MachO,
    /// For `/ORDER:@FILE` of Microsoft's linker and of lld-link. Each line is the name of a symbol. Each function must
    /// be in a section of its own (`/Gy`, `-ffunction-sections`).
    Coff,
}

/// The prefixes of the section names that GCC and clang give to functions with `-ffunction-sections`. The prefix
/// depends on how hot the compiler expects the function to be. The profile does not show which prefix a function got,
/// so the name is written with each prefix. The linker ignores names that no section has.
const GOLD_PREFIXES: [&[u8]; 4] = [
    b".text.",
    b".text.hot.",
    b".text.startup.",
    b".text.unlikely.",
];

/// Returns the functions that any run called, sorted by the mean ordinal of their first call.
///
/// Means are compared exactly, without division or overflow. Functions of equal means stay in the order of the profile,
/// which is link order. Functions that were called only in runs without ordinals (coverage records no order) come last,
/// in the order of the profile.
///
/// ```
/// use profkit_analysis::order::{OrderFile, by_mean, names};
/// use profkit_data::mip::{Function, MipProfile};
///
/// let function = |name: &str, order_sum| Function {
///     name: name.into(), calls: 1, called_runs: 1, order_sum, order_runs: 1, ..Function::default()
/// };
/// let profile = MipProfile { functions: vec![function("late", 9), function("early", 2)].into_iter().collect(), ..MipProfile::default() };
/// let order = by_mean(&profile);
/// let names = names(&profile, &order);
/// assert_eq!(OrderFile::Lld.write(&names.names), b"early\nlate\n");
/// ```
pub fn by_mean(profile: &MipProfile) -> Vec<FunctionId> {
    let functions = &profile.functions;
    let mut order: Vec<FunctionId> = functions.ids().collect();
    order.retain(|&id| functions[id].is_covered());
    order.sort_by(|&one, &other| compare_means(&functions[one], &functions[other]));
    order
}

/// Compares the mean ordinals of two functions as fractions of sum and number of runs: a / b < c / d if a · d < c · b.
fn compare_means(one: &Function, other: &Function) -> Ordering {
    let fraction = |function: &Function| {
        (
            u128::from(function.order_sum),
            u128::from(function.order_runs),
        )
    };
    let ((sum, runs), (other_sum, other_runs)) = (fraction(one), fraction(other));
    match (runs == 0, other_runs == 0) {
        // The product of two 64-bit numbers fits 128 bits.
        (false, false) => (sum * other_runs).cmp(&(other_sum * runs)),
        (left, right) => left.cmp(&right),
    }
}

/// Returns the names of the functions in the order. A name that several functions have is listed only at its first
/// position, because a linker cannot tell these functions apart (`static` functions of several files).
pub fn names<'p>(profile: &'p MipProfile, order: &[FunctionId]) -> Names<'p> {
    let mut seen = FxHashSet::default();
    let mut names = Names {
        names: Vec::new(),
        repeated: 0,
    };
    for &id in order {
        let function = &profile.functions[id];
        if seen.insert(&*function.name) {
            names.names.push(&function.name);
        } else {
            names.repeated += 1;
        }
    }
    names
}

/// The result of [`names`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names<'p> {
    /// The names, in order.
    pub names: Vec<&'p [u8]>,
    /// The number of functions that are not listed, because an earlier function has the same name.
    pub repeated: usize,
}

impl OrderFile {
    /// The contents of the order file.
    pub fn write(self, names: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        if self == OrderFile::GnuLd {
            out.extend_from_slice(GNU_LD_HEAD);
        }
        for name in names {
            match self {
                OrderFile::Gold => {
                    for prefix in GOLD_PREFIXES {
                        out.extend_from_slice(&[prefix, *name, b"\n"].concat());
                    }
                }
                OrderFile::GnuLd => {
                    let sections = GOLD_PREFIXES.map(|prefix| [prefix, *name].concat());
                    out.extend_from_slice(b"    *(");
                    out.extend_from_slice(&sections.join(b" ".as_slice()));
                    out.extend_from_slice(b")\n");
                }
                OrderFile::Lld | OrderFile::MachO | OrderFile::Coff => {
                    out.extend_from_slice(name);
                    out.push(b'\n');
                }
            }
        }
        if self == OrderFile::GnuLd {
            out.extend_from_slice(GNU_LD_END);
        }
        out
    }

    /// Returns the symbol of a function from the name that the compiler knows. Mach-O puts an underscore before such
    /// names, unless the name begins with the byte 1: then the rest is already the symbol. Methods of Objective-C, such
    /// as `-[Class method:]`, are symbols as they are.
    pub fn decorate(self, name: &[u8]) -> Vec<u8> {
        match (name.strip_prefix(b"\x01"), self) {
            (Some(symbol), _) => symbol.to_vec(),
            (None, OrderFile::MachO) if !is_method(name) => [b"_", name].concat(),
            (None, _) => name.to_vec(),
        }
    }

    /// Returns the symbol in a line of an order file of any linker. A line for gold is the name of a section. A line
    /// for `-order_file` may have an architecture and an object file before the symbol.
    pub(crate) fn symbol_of_line(line: &[u8]) -> &[u8] {
        let section = GOLD_PREFIXES.iter().rev();
        let symbol = section
            .filter_map(|prefix| line.strip_prefix(*prefix))
            .next();
        let symbol = symbol.unwrap_or(line);
        let is_object = |part: &[u8]| {
            let known = [b"arm64".as_slice(), b"arm64e", b"armv7", b"x86_64", b"i386"];
            known.contains(&part) || part.ends_with(b".o") || part.ends_with(b".o)")
        };
        let mut rest = symbol;
        while let Some(colon) = memchr::memchr(b':', rest)
            && let (part, [_, after @ ..]) = rest.split_at(colon)
            && is_object(part)
        {
            rest = after;
        }
        rest
    }
}

/// Whether a name is that of an Objective-C method.
fn is_method(name: &[u8]) -> bool {
    name.starts_with(b"-[") || name.starts_with(b"+[")
}

const GNU_LD_HEAD: &[u8] = b"/* For ld -T FILE, with code compiled by -ffunction-sections. */\nSECTIONS\n{\n  .text.ordered :\n  {\n";
const GNU_LD_END: &[u8] = b"  }\n}\nINSERT BEFORE .text;\n";

impl fmt::Display for OrderFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OrderFile::Lld => "lld's --symbol-ordering-file",
            OrderFile::Gold => "gold's --section-ordering-file",
            OrderFile::GnuLd => "GNU ld's -T",
            OrderFile::MachO => "-order_file",
            OrderFile::Coff => "/ORDER",
        })
    }
}
