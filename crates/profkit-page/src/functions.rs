//! The functions on the HTML page of a profile, stored column by column.
use super::encode::{as_script, column, index, number, strings};
use profkit_analysis::heat::Heat;
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::ranking::FunctionNumbers;
use profkit_report::grouped;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

/// The flag of a function with context-sensitive counts.
pub const CONTEXT_SENSITIVE: u8 = 1;
/// The flag of a function that has a marker for hot or warm instead of counts.
pub const PSEUDO: u8 = 1 << 1;
/// The flag of a function whose marker says hot. Without this flag, the marker says warm.
pub const PSEUDO_HOT: u8 = 1 << 2;
/// The flag of an instance of a Rust function: those with equal names are one row.
const INSTANCE: u8 = 1 << 5;
/// The number of bits below the two bits that hold the class: never ran, cold, warm or hot.
const HEAT_SHIFT: u32 = 3;

/// A function of a page.
#[derive(Clone, Debug, Default)]
pub struct PageFunction {
    /// The name as in the profile; empty if the profile has only a hash.
    pub name: Vec<u8>,
    /// The name that people read. If this is the demangled `name`, the field is empty until [`FunctionList::finish`]
    /// sets it.
    pub shown: String,
    /// The function hash; in a sample profile, the checksum of the function.
    pub hash: u64,
    /// The MD5 hash of the name, for functions whose name is not known.
    pub guid: u64,
    /// The function's entry count, the sum of its counts, and its largest count.
    pub numbers: FunctionNumbers,
    /// A combination of [`CONTEXT_SENSITIVE`], [`PSEUDO`] and [`PSEUDO_HOT`].
    pub flags: u8,
    /// How often the function ran, compared with the rest of the program.
    pub heat: Heat,
    /// The index of the function's source file in [`FunctionList::files`], plus 1; 0 if it is not known.
    pub file: usize,
    /// The range of the function's bytes in [`FunctionList::details`].
    pub detail: Range<usize>,
    /// The range of the function's bytes in [`FunctionList::values`].
    pub value: Range<usize>,
    /// The range of the function's bytes in [`FunctionList::sources`].
    pub source: Range<usize>,
}

/// The functions of a page, and the encoded data about them.
#[derive(Clone, Debug, Default)]
pub struct FunctionList {
    /// The functions.
    pub functions: Vec<PageFunction>,
    /// The encoded counters, lines or blocks of all functions.
    pub details: Vec<u8>,
    /// Values of value sites.
    pub values: Vec<u8>,
    /// The encoded source lines of all functions, with their counts.
    pub sources: Vec<u8>,
    /// Names of call targets and of functions in traces.
    pub targets: Interner,
    /// Paths of source files.
    pub files: Interner,
}

/// Gives each string a number. The numbers begin at 1 and follow the order in which the strings are first used.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    numbers: FxHashMap<String, usize>,
    list: Vec<String>,
}

impl Interner {
    /// Returns the number of a string; a new string gets the next number.
    pub fn number(&mut self, text: &str) -> usize {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), self.list.len());
        self.list.len()
    }

    /// The strings in the order of their numbers; the first has number 1.
    pub fn list(&self) -> &[String] {
        &self.list
    }

    /// Encodes the strings as a data block of the page.
    pub fn block(&self) -> Vec<u8> {
        strings(self.list.iter().map(String::as_str))
    }
}

/// Blocks of data with their names.
pub type Blocks = Vec<(&'static str, Vec<u8>)>;

/// The absolute difference of two numbers, shifted left by one bit. The lowest bit is 1 if the first number is the
/// smaller one.
fn difference(one: u128, other: u128) -> u128 {
    let sign = u128::from(one < other);
    (one.abs_diff(other) << 1) | sign
}

/// What is left out of a page that would be too large. Each cut also leaves out everything that the cuts before it
/// leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// Nothing.
    Nothing,
    /// The source code of functions.
    Source,
    /// Symbols before demangling, and function hashes.
    Symbols,
    /// Counters, lines and values of functions that are not hot or warm.
    ColdDetails,
    /// All counters, lines and values.
    Details,
    /// Functions that did not run.
    Idle,
    /// Cold functions.
    Cold,
}

impl PageFunction {
    fn flags_with_heat(&self) -> u8 {
        let class = match self.heat {
            Heat::NeverRan => 0,
            Heat::Cold => 1,
            Heat::Warm => 2,
            Heat::Hot => 3,
        };
        let instance = match names::is_instance(&self.name) {
            true => INSTANCE,
            false => 0,
        };
        self.flags | class << HEAT_SHIFT | instance
    }
}

impl FunctionList {
    /// Demangles the names, and sorts the functions by name in the order that the script expects.
    pub fn finish(&mut self) {
        self.functions.par_iter_mut().for_each(|function| {
            if function.shown.is_empty() {
                function.shown = match function.name.as_slice() {
                    [] => format!("(unknown name, hash {:#018x})", function.hash),
                    name => names::spelled(name, Spelling::Demangled).into_owned(),
                };
            }
        });
        // The script compares UTF-16 units. For ASCII names this gives the order of bytes, which are faster to compare.
        let plain = self.functions.par_iter().all(|one| one.shown.is_ascii());
        let by_name = |one: &str, other: &str| {
            if plain {
                one.cmp(other)
            } else {
                as_script(one, other)
            }
        };
        self.functions.par_sort_by(|one, other| {
            by_name(&one.shown, &other.shown)
                .then_with(|| one.name.cmp(&other.name))
                .then_with(|| one.hash.cmp(&other.hash))
                .then_with(|| one.flags.cmp(&other.flags))
        });
    }

    /// Returns the `most` hottest functions of a list, as names with their sums. The instances of a Rust function are
    /// added up.
    pub fn hottest(list: &[&PageFunction], most: usize) -> Vec<(String, String, u128)> {
        let mut united: FxHashMap<&str, (u128, u64)> = FxHashMap::default();
        let mut rows = Vec::new();
        for one in list.iter().filter(|one| one.numbers.sum > 0) {
            if names::is_instance(&one.name) {
                let (sum, count) = united.entry(&one.shown).or_default();
                *sum += one.numbers.sum;
                *count += 1;
            } else {
                rows.push((one.shown.as_str(), one.numbers.sum, 1));
            }
        }
        rows.extend(
            united
                .iter()
                .map(|(name, (sum, count))| (*name, *sum, *count)),
        );
        rows.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(other.0)));
        let rows = rows.into_iter().take(most);
        rows.map(|(name, sum, count)| {
            let text = match count {
                1 => name.to_owned(),
                many => format!("{name} ({} instances)", grouped(many)),
            };
            (name.to_owned(), text, sum)
        })
        .collect()
    }

    /// Returns the functions that are left after a cut.
    pub fn kept(&self, cut: Cut) -> Vec<&PageFunction> {
        let all = self.functions.iter();
        all.filter(|function| match cut {
            Cut::Cold => function.heat > Heat::Cold,
            Cut::Idle => function.heat > Heat::NeverRan,
            _ => true,
        })
        .collect()
    }

    /// Returns the blocks that every page has: the names and numbers of the functions in `list`.
    pub fn columns(&self, list: &[&PageFunction]) -> Blocks {
        let numbers =
            |of: fn(&FunctionNumbers) -> u128| column(list.iter().map(|one| of(&one.numbers)));
        let mut blocks = vec![
            ("names", strings(list.iter().map(|one| one.shown.as_str()))),
            ("sum", numbers(|one| one.sum)),
            ("max", numbers(|one| difference(one.sum, one.max.into()))),
            (
                "entry",
                numbers(|one| difference(one.max.into(), one.entry.into())),
            ),
            (
                "flags",
                list.iter().map(|one| one.flags_with_heat()).collect(),
            ),
            ("targets", self.targets.block()),
        ];
        if list.iter().any(|one| one.file > 0) {
            blocks.push(("files", self.files.block()));
            blocks.push(("file", column(list.iter().map(|one| one.file as u128))));
        }
        blocks
    }

    /// Returns the blocks of symbols and function hashes.
    pub fn symbols(list: &[&PageFunction]) -> Blocks {
        let symbols: Vec<_> = list.iter().map(|one| symbol(one)).collect();
        let hashes = list.iter().flat_map(|one| one.hash.to_le_bytes());
        vec![
            ("mangled", strings(symbols.iter().map(|symbol| &**symbol))),
            ("hashes", hashes.collect()),
        ]
    }

    /// Returns the blocks of counters, lines and values: of all functions, or of those that are hot or warm.
    pub fn inside(&self, list: &[&PageFunction], all: bool) -> Blocks {
        let kept = |one: &&PageFunction| all || one.heat > Heat::Cold;
        let part = |names, bytes: &[u8], range: fn(&PageFunction) -> &Range<usize>| {
            lists(names, list, |one| {
                bytes.get(range(one).clone()).filter(|_| kept(&one))
            })
        };
        let details = part(["detail", "detail-sizes"], &self.details, |one| &one.detail);
        let values = part(["values", "values-sizes"], &self.values, |one| &one.value);
        details.into_iter().chain(values).collect()
    }

    /// Returns the blocks with the source code of the functions.
    pub fn source(&self, list: &[&PageFunction], lines: &[String]) -> Blocks {
        let of = |one: &PageFunction| self.sources.get(one.source.clone());
        let mut blocks = lists(["source", "source-sizes"], list, of);
        blocks.push(("source-lines", strings(lines.iter().map(String::as_str))));
        blocks
    }

    /// Adds a function. The lists of details and of values contain the bytes of all functions one after the other; the
    /// bytes that were appended since the previous function belong to this function.
    pub fn push(&mut self, mut function: PageFunction) {
        let before = self.functions.last();
        let start =
            |range: fn(&PageFunction) -> &Range<usize>| before.map_or(0, |one| range(one).end);
        function.detail = start(|one| &one.detail)..self.details.len();
        function.value = start(|one| &one.value)..self.values.len();
        self.functions.push(function);
    }

    /// Appends a list of counts to the details.
    pub fn push_counts(&mut self, counts: impl ExactSizeIterator<Item = u64>) {
        index(counts.len(), &mut self.details);
        for count in counts {
            number(count.into(), &mut self.details);
        }
    }
}

/// Returns two blocks: the lists of all functions one after the other, and the size of each list in bytes.
fn lists<'b>(
    [name, sizes_name]: [&'static str; 2],
    list: &[&PageFunction],
    of: impl Fn(&PageFunction) -> Option<&'b [u8]>,
) -> Blocks {
    let (mut all, mut sizes) = (Vec::new(), Vec::new());
    for one in list {
        match of(one).unwrap_or_default() {
            [] => {
                // A list without elements.
                all.push(0);
                index(1, &mut sizes);
            }
            bytes => {
                all.extend_from_slice(bytes);
                index(bytes.len(), &mut sizes);
            }
        }
    }
    vec![(name, all), (sizes_name, sizes)]
}

/// The symbol of a function; empty if it equals the name that people read.
fn symbol(function: &PageFunction) -> Cow<'_, str> {
    let symbol = names::printable(&function.name);
    if symbol == function.shown {
        Cow::Borrowed("")
    } else {
        symbol
    }
}
