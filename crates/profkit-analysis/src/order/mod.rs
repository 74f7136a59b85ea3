//! Function order: which functions a linker should place first, so that the start of a program touches few pages.
//!
//! [`by_mean`] sorts by the mean ordinal of the first call; one profile of many runs is enough for that. [`balanced`]
//! needs the runs one by one, and places functions together that are needed at the same time.
mod balanced;
mod pages;
mod traces;

#[cfg(test)]
mod tests;

pub use balanced::{Partitioning, balanced};
pub use pages::{Footprint, footprint};
pub use traces::{RunError, Trace, Utilities, page_fault_area, trace, traces_of_run, utilities};

use profkit_data::mip::{Function, FunctionId, MipProfile};
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use std::fmt;

/// The linker that reads the order file, which decides the form of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OrderFile {
    /// `--symbol-ordering-file` of lld for ELF: symbol names.
    #[default]
    Lld,
    /// `--section-ordering-file` of gold: names of sections. With `-ffunction-sections`, compilers give each function a
    /// section that is named after it.
    Gold,
    /// `-order_file` of ld64 and of lld for Mach-O: symbol names, with the leading underscore that symbols have in
    /// Mach-O.
    MachO,
}

/// The names of sections that GCC and clang give to functions with `-ffunction-sections`. The name depends on whether
/// the compiler expects the function to be hot. The profile does not show this, so all possible names are written. A
/// name without a section has no effect.
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

/// Compares the fractions sum / runs: a / b < c / d if a · d < c · b.
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
        for name in names {
            let prefixes: &[&[u8]] = if self == OrderFile::Gold {
                &GOLD_PREFIXES
            } else {
                &[b""]
            };
            for prefix in prefixes {
                out.extend_from_slice(prefix);
                out.extend_from_slice(name);
                out.push(b'\n');
            }
        }
        out
    }
}

impl fmt::Display for OrderFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OrderFile::Lld => "lld's --symbol-ordering-file",
            OrderFile::Gold => "gold's --section-ordering-file",
            OrderFile::MachO => "-order_file",
        })
    }
}
