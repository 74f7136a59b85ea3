//! The profile that llvm-bolt reads: how often control went from one place of a function to another.
use super::functions::Functions;
use super::{Line, Number};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A function by its index, and an offset in it. `None` is a place in no function.
type Spot = Option<(usize, u64)>;

#[derive(Default)]
struct Sums {
    lines: BTreeMap<(Spot, Spot), Number>,
    /// For each function, by block: the counts of ranges that begin and that end there.
    runs: BTreeMap<usize, BTreeMap<usize, (u128, u128)>>,
    outside: u64,
    impossible: u64,
}

/// What became of the counts of a program.
pub struct Fdata {
    pub text: String,
    /// The sum of the counts of branches with no end in a function.
    pub outside: u64,
    /// The sum of the counts of ranges that do not fit the code.
    pub impossible: u64,
    /// The sum of the counts that were left out because the name of a function cannot be read.
    pub nameless: u64,
    /// The number of these functions.
    pub nameless_functions: u64,
}

impl Sums {
    fn add(&mut self, from: Spot, to: Spot, number: Number) {
        if from.is_none() && to.is_none() {
            self.outside = self.outside.saturating_add(number.count);
            return;
        }
        let sum = self.lines.entry((from, to)).or_default();
        sum.count = sum.count.saturating_add(number.count);
        sum.mispredicted = sum.mispredicted.saturating_add(number.mispredicted);
    }

    fn branch(
        &mut self,
        functions: &Functions<'_, '_>,
        from: Option<u64>,
        to: Option<u64>,
        number: Number,
    ) {
        // The code after a call is counted by the ranges, so BOLT needs no returns.
        if from.is_some_and(|from| functions.returns(from)) {
            return;
        }
        let place = |address: Option<u64>| address.and_then(|address| functions.place(address));
        self.add(place(from), place(to), number);
    }

    fn range(
        &mut self,
        functions: &Functions<'_, '_>,
        from: Option<Option<u64>>,
        (start, end): (u64, u64),
        count: u64,
    ) {
        let Some((function, first, last)) = functions.run(from, start, end) else {
            self.impossible = self.impossible.saturating_add(count);
            return;
        };
        let changes = self.runs.entry(function).or_default();
        changes.entry(first).or_default().0 += u128::from(count);
        changes.entry(last).or_default().1 += u128::from(count);
    }

    /// Adds the steps from block to block of all ranges. Ranges can be long and many, so each block is passed once.
    fn add_steps(&mut self, functions: &Functions<'_, '_>) {
        for (function, changes) in std::mem::take(&mut self.runs) {
            let mut running = 0;
            let mut changes = changes.into_iter().peekable();
            while let Some((block, (begin, end))) = changes.next() {
                running += begin;
                running -= end;
                let next = changes.peek().map_or(block, |(next, _)| *next);
                let count = u64::try_from(running).unwrap_or(u64::MAX);
                for block in (block..next).filter(|_| count > 0) {
                    if let Some((last, next)) = functions.step(function, block) {
                        let number = Number {
                            count,
                            mispredicted: 0,
                        };
                        self.add(Some((function, last)), Some((function, next)), number);
                    }
                }
            }
        }
    }
}

/// Makes the profile of a program. Samples count only if there are no branches.
pub fn fdata(
    functions: &Functions<'_, '_>,
    lines: &BTreeMap<Line, Number>,
    has_branches: bool,
) -> Fdata {
    let mut sums = Sums::default();
    let mut samples = BTreeMap::new();
    for (line, &number) in lines {
        let count = number.count;
        match *line {
            Line::Trace(from, to, last) => {
                sums.branch(functions, from, Some(to), number);
                sums.range(functions, Some(from), (to, last), count);
            }
            Line::Range(start, end) => sums.range(functions, None, (start, end), count),
            Line::Branch(from, to) => sums.branch(functions, from, to, number),
            Line::Sample(_) if has_branches => {}
            Line::Sample(place) => match functions.place(place) {
                Some(place) => {
                    let sum: &mut u64 = samples.entry(place).or_default();
                    *sum = sum.saturating_add(count);
                }
                None => sums.outside = sums.outside.saturating_add(count),
            },
        }
    }
    sums.add_steps(functions);
    let spot = |spot: Spot| match spot {
        Some((function, offset)) => format!("1 {} {offset:x}", escaped(&functions.name(function))),
        None => "0 [unknown] 0".to_owned(),
    };
    let mut text = String::new();
    let mut nameless = Nameless {
        functions,
        found: BTreeSet::new(),
        count: 0,
    };
    for ((from, to), number) in &sums.lines {
        if nameless.leaves_out(&[*from, *to], number.count) {
            continue;
        }
        let (from, to) = (spot(*from), spot(*to));
        let _ = writeln!(text, "{from} {to} {} {}", number.mispredicted, number.count);
    }
    if !samples.is_empty() {
        text.push_str("no_lbr\n");
    }
    for (place, count) in samples {
        if nameless.leaves_out(&[Some(place)], count) {
            continue;
        }
        let _ = writeln!(text, "{} {count}", spot(Some(place)));
    }
    Fdata {
        text,
        outside: sums.outside,
        impossible: sums.impossible,
        nameless: nameless.count,
        nameless_functions: nameless.found.len() as u64,
    }
}

/// What is left out because the name of a function cannot be read.
struct Nameless<'f, 'i, 'data> {
    functions: &'f Functions<'i, 'data>,
    found: BTreeSet<usize>,
    count: u64,
}

impl Nameless<'_, '_, '_> {
    /// Whether the line with these places is left out. Its count is added if it is.
    fn leaves_out(&mut self, places: &[Spot], count: u64) -> bool {
        let functions = places.iter().flatten().map(|(function, _)| *function);
        let mut is_any = false;
        for function in functions.filter(|&index| !self.functions.has_name(index)) {
            self.found.insert(function);
            is_any = true;
        }
        if is_any {
            self.count = self.count.saturating_add(count);
        }
        is_any
    }
}

/// Blanks separate the fields of a line.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace(' ', "\\ ")
}
