//! Profiles cut down: to functions by name, to the hottest ones, to a size; without values or symbol lists; with names
//! that tell nothing.
mod choice;
mod heap;
mod instr;
mod mip;
mod redaction;
mod sample;
#[cfg(test)]
mod tests;

pub use redaction::Redaction;

use crate::selection::Selection;
use profkit_data::ids::NameRef;
use profkit_data::remap::Remapping;
use profkit_data::sample::SampleName;
use serde::Serialize;
use std::ops::AddAssign;
use std::str::FromStr;

/// What is kept of a profile. The steps are those of the fields, in this order; each works on what the one before it
/// left.
///
/// ```
/// use profkit_analysis::filter::Filter;
/// use profkit_data::instr::{InstrProfile, InstrReader};
///
/// let text = b":ir\nhot\n1\n1\n97\n\nwarm\n1\n1\n2\n\ncool\n1\n1\n1\n";
/// let mut profile = InstrProfile::read(&mut InstrReader::open(text)?)?;
/// let filter = Filter { hottest: Some("98%".parse()?), ..Filter::default() };
/// let filtered = filter.instr(&mut profile);
/// assert_eq!((filtered.kept.units, filtered.kept.counts, filtered.not_hottest.units), (2, 99, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Filter {
    /// The functions that are kept. A heap context is kept if one of the functions of its call stack is selected.
    pub keep: Selection,
    /// The functions that are left out. A heap context is left out if one of the functions of its call stack is selected.
    pub leave_out: Selection,
    /// Which functions are cold, and left out. Heap profiles have no such rule: compilers want their cold contexts.
    pub cold: Option<ColdRule>,
    /// How many of the hottest functions, or of the heap contexts with the most bytes, are kept.
    pub hottest: Option<Hottest>,
    /// Whether values are removed: targets of calls, virtual tables, sizes of memory operations; of a MIP profile the call
    /// edges.
    pub drop_values: bool,
    /// Whether the list of the program's symbols is removed.
    pub drop_symbols: bool,
    /// Names and paths become hashes.
    pub redact: Option<Redaction>,
    /// New names for the functions of heap and MIP profiles; those of other profiles get them while they are merged.
    pub rename: Remapping,
}

impl Default for Filter {
    /// Keeps everything.
    fn default() -> Self {
        Filter {
            keep: Selection::everything(),
            leave_out: Selection::default(),
            cold: None,
            hottest: None,
            drop_values: false,
            drop_symbols: false,
            redact: None,
            rename: Remapping::default(),
        }
    }
}

/// Which functions are cold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColdRule {
    /// Those that compilers take for cold by the profile's summary ([`Heat`](crate::heat::Heat)), and those that never
    /// ran. In a MIP profile without numbers of calls only the latter.
    Summary,
    /// Those whose largest count is at most this.
    AtMost(u64),
}

/// How many of the hottest functions are kept. Of functions with equal sums of counts, the one whose name comes first in
/// byte order is the hotter one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hottest {
    /// This many.
    Count(u64),
    /// The fewest that together have at least this share of the sum of all counts, in millionths.
    Millionths(u32),
}

impl FromStr for Hottest {
    type Err = String;

    /// Reads a number of functions such as `500`, or a share such as `99.9%`, with up to four decimal places.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "found `{text}`, expected a number of functions such as 500, or a share from 0% to 100% such as 99.9%, with at most four decimal places"
            )
        };
        let Some(percent) = text.strip_suffix('%') else {
            return text.parse().map(Hottest::Count).map_err(|_| wrong());
        };
        let (whole, places) = percent.split_once('.').unwrap_or((percent, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || places.len() > 4 || !digits(whole) || !digits(places) {
            return Err(wrong());
        }
        let number: u32 = format!("{whole}{places:0<4}")
            .parse()
            .map_err(|_| wrong())?;
        let share = Some(number).filter(|&number| number <= 1_000_000);
        share.map(Hottest::Millionths).ok_or_else(wrong)
    }
}

/// A number of functions or contexts, and the sum of their counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// The number of functions or contexts.
    pub units: u64,
    /// The sum of their counters or samples; of heap contexts the allocated bytes.
    pub counts: u128,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        self.units += other.units;
        self.counts += other.counts;
    }
}

/// What a unit of [`Filtered`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A function of an instrumentation or sample profile; its counts are counters or samples.
    #[default]
    Function,
    /// A function in one calling context of a sample profile.
    CallingContext,
    /// An allocation context of a heap profile; its counts are bytes.
    HeapContext,
}

/// What was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Filtered {
    /// What the numbers count.
    pub unit: Unit,
    /// What is left.
    pub kept: Amount,
    /// What was left out by name.
    pub by_name: Amount,
    /// What was left out because it is cold.
    pub cold: Amount,
    /// What was left out because it is not among the hottest.
    pub not_hottest: Amount,
    /// What was left out so that the file does not exceed its size.
    pub by_size: Amount,
    /// The number of removed values: targets of calls, virtual tables, sizes.
    pub values: u64,
    /// The number of removed names of the list of the program's symbols.
    pub symbols: u64,
    /// Whether names are redacted, so that no compiler can use the profile.
    pub redacted: bool,
}

impl Filtered {
    /// The sum of all counts before the cut.
    pub fn all(&self) -> Amount {
        let mut all = self.kept;
        for cut in [self.by_name, self.cold, self.not_hottest, self.by_size] {
            all += cut;
        }
        all
    }

    /// Whether the profile is as it was.
    pub fn is_unchanged(&self) -> bool {
        self.all() == self.kept && self.values == 0 && self.symbols == 0 && !self.redacted
    }
}

impl Filter {
    /// Whether names select functions.
    fn selects(&self) -> bool {
        !self.keep.all || !self.leave_out.is_empty()
    }

    fn keeps(&self, name: SampleName<'_>) -> bool {
        self.keep.selects_sample(name) && !self.leave_out.selects_sample(name)
    }
}

/// The name if it is known, else its hash.
fn known(name: &[u8], hash: NameRef) -> SampleName<'_> {
    match name {
        [] => SampleName::Guid(hash),
        name => SampleName::Text(name),
    }
}
