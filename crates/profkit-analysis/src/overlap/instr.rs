//! How alike two instrumentation profiles are.
use super::compare::{FunctionDifference, PairOverlap, part};
use super::side::Side;
use profkit_abi::value_kind;
use profkit_data::instr::overlap::{CountSums, InstrOverlap, Stage, TestRecord, Verdict};

/// The rows of the functions that lower an overlap most. The others are forgotten on the way.
struct Rows {
    most: usize,
    rows: Vec<FunctionDifference>,
    /// The loss of the last row that stayed when the others were forgotten.
    least: f64,
}

/// The number of rows that are collected before all but the first are forgotten.
const COLLECTED: usize = 1024;

impl Rows {
    fn new(most: usize) -> Self {
        Rows {
            most,
            rows: Vec::new(),
            least: 0.0,
        }
    }

    /// Adds the row of a function, which has no name yet.
    fn push(&mut self, name: &[u8], row: FunctionDifference) {
        if self.most == 0 || !row.is_listed() || row.loss < self.least {
            return;
        }
        let name = name.to_vec();
        self.rows.push(FunctionDifference { name, ..row });
        if self.rows.len() >= COLLECTED.max(self.most.saturating_mul(2)) {
            self.rows.sort_by(FunctionDifference::order);
            self.rows.truncate(self.most);
            self.least = self.rows.last().map_or(0.0, |row| row.loss);
        }
    }
}

/// What the second profile has in common with the first one, and the rows of its functions.
fn of_test(
    base: &Side<'_>,
    test: &Side<'_>,
    stage: Stage,
    most: usize,
) -> (InstrOverlap, Vec<FunctionDifference>) {
    let mut overlap = InstrOverlap::new(base.figures.sums(stage), test.figures.sums(stage));
    let mut rows = Rows::new(most);
    let mut mismatched = (None, 0.0);
    base.look_up(|in_base| {
        test.each_record(stage, |(name, name_ref), record| {
            let before = overlap.common.counts;
            let verdict = overlap.add(in_base, &TestRecord::of(name_ref, record), most > 0);
            if most == 0 {
                return;
            }
            let unnamed = Vec::new();
            let share = |sums: &CountSums| Some(part(sums.counts, overlap.test.counts));
            let row = match &verdict {
                Verdict::Unique(sums) => FunctionDifference::new(unnamed, None, share(sums), 0.0),
                Verdict::Mismatched(sums) => {
                    // A function may have several records, which follow each other in the second profile. Its counts in
                    // the first profile are added up only once, at the first of these records.
                    if mismatched.0 != Some(name_ref) {
                        mismatched = (Some(name_ref), in_base.counts(name_ref));
                    }
                    let there = Some(part(mismatched.1, overlap.base.counts));
                    FunctionDifference::new(unnamed, there, share(sums), 0.0)
                }
                Verdict::Common(Some(inner)) => {
                    let base = Some(part(inner.base.counts, overlap.base.counts));
                    let common = overlap.common.counts - before;
                    let row = FunctionDifference::new(unnamed, base, share(&inner.test), common);
                    FunctionDifference {
                        inner: Some(inner.common.counts),
                        ..row
                    }
                }
                Verdict::Idle | Verdict::Common(None) => return,
            };
            rows.push(name, row);
        });
    });
    (overlap, rows.rows)
}

/// The functions that only the first profile has: their number, their share, and their rows.
fn of_base(
    base: &Side<'_>,
    test: &Side<'_>,
    stage: Stage,
    most: usize,
) -> (u64, f64, Vec<FunctionDifference>) {
    let (mut count, mut share, mut rows) = (0, 0.0, Rows::new(most));
    let whole = base.figures.sums(stage).counts;
    test.look_up(|in_test| {
        base.each_record(stage, |(name, name_ref), record| {
            if in_test.has(name_ref) {
                return;
            }
            let sums = CountSums::of_function(record.counts, record.values);
            let there = part(sums.counts, whole);
            count += 1;
            share += there;
            rows.push(
                name,
                FunctionDifference::new(Vec::new(), Some(there), None, 0.0),
            );
        });
    });
    (count, share, rows.rows)
}

pub(super) fn of_instr(base: &Side<'_>, test: &Side<'_>, most: usize) -> PairOverlap {
    // The second, context-sensitive stage if both profiles have functions of that stage only, otherwise the first stage.
    let stage = if base.figures.has_second_only() && test.figures.has_second_only() {
        Stage::ContextSensitive
    } else {
        Stage::Plain
    };
    let ((overlap, functions), (base_only, base_only_share, more)) = rayon::join(
        || of_test(base, test, stage, most),
        || of_base(base, test, stage, most),
    );
    let is_zero = overlap.base.is_zero() || overlap.test.is_zero();
    let mut pair = PairOverlap {
        overlap: (!is_zero).then_some(overlap.common.counts),
        common: overlap.common.entries,
        mismatched: overlap.mismatched.entries,
        mismatched_share: overlap.mismatched.counts,
        test_only: overlap.unique.entries,
        test_only_share: overlap.unique.counts,
        base_only,
        base_only_share,
        functions,
        ..PairOverlap::default()
    };
    pair.functions.extend(more);
    const KINDS: [&str; value_kind::COUNT] = [
        "call targets",
        "sizes of memory operations",
        "virtual tables",
    ];
    let values = overlap.base.values.into_iter().zip(overlap.test.values);
    for ((name, (base, test)), share) in KINDS.into_iter().zip(values).zip(overlap.common.values) {
        if base >= 1.0 && test >= 1.0 {
            pair.details.push((name, share));
        }
    }
    let later = Stage::ContextSensitive;
    let has_later = |side: &Side<'_>| side.kind.is_ir() && !side.figures.sums(later).is_zero();
    if has_later(base) && has_later(test) {
        let (later, _) = of_test(base, test, later, 0);
        pair.details
            .push(("context-sensitive counters", later.common.counts));
    }
    pair
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;
    use crate::diff::{DiffOptions, ProfileDiff};
    use crate::overlap::{ComparedProfile, Content};
    use profkit_data::ids::{FuncHash, NameRef};
    use profkit_data::instr::indexed::{IndexedWriteOptions, write};
    use profkit_data::instr::{
        FunctionTable, InstrKind, InstrProfile, NewRecord, ValueData, ValueEntry,
    };
    use std::ops::Range;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn next(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *seed >> 40
    }

    fn indexed(functions: Range<u64>, mut seed: u64, version: u32) -> Vec<u8> {
        let mut table = FunctionTable::new();
        for number in functions {
            let name = format!("function_{number}");
            let name_ref = NameRef::of(name.as_bytes());
            let function = table
                .push_function(name.as_bytes(), name_ref, number)
                .unwrap();
            for record in 0..1 + u64::from(number % 13 == 0) {
                let later = u64::from(number % 7 == 3) << 60;
                let hash =
                    4 * (number % 50) + 2 * record + u64::from(next(&mut seed).is_multiple_of(20));
                let idle = next(&mut seed).is_multiple_of(5);
                let counts: Vec<u64> = (0..number % 6 + 1)
                    .map(|_| if idle { 0 } else { next(&mut seed) % 500 })
                    .collect();
                let mut values = ValueData::default();
                if number % 4 == 0 {
                    let site = (0..next(&mut seed) % 5).map(|_| ValueEntry {
                        value: next(&mut seed) % 4,
                        count: next(&mut seed) % 50,
                    });
                    let site: Vec<_> = site.collect();
                    values.kind_mut(1).unwrap().push_site(site);
                }
                let record = NewRecord {
                    func_hash: FuncHash(hash | later),
                    counts: &counts,
                    values: Some(&values),
                    order: 2 * number + record,
                    ..NewRecord::default()
                };
                table.push_record(function, record).unwrap();
            }
        }
        let profile = InstrProfile {
            kind: InstrKind::IR | InstrKind::CONTEXT_SENSITIVE,
            tables: vec![table],
            ..InstrProfile::default()
        };
        let mut bytes = Vec::new();
        let options = IndexedWriteOptions::for_version(version);
        write(&profile, &options, &mut bytes).unwrap();
        bytes
    }

    /// Compares two files read in every way. Returns whether both were read in place.
    fn same(one: &[u8], two: &[u8]) -> bool {
        let in_memory = [one, two].map(ComparedProfile::open);
        let in_place = [one, two].map(|data| ComparedProfile::open_in_place(data, None));
        let ([Ok(one), Ok(two)], [Ok(other_one), Ok(other_two)]) = (&in_memory, &in_place) else {
            let errors = |read: &[profkit_data::Result<ComparedProfile<'_>>; 2]| {
                read.each_ref().map(|read| read.as_ref().err().cloned())
            };
            assert_eq!(errors(&in_memory), errors(&in_place));
            return false;
        };
        for rows in [0, 1000] {
            let expected = PairOverlap::of(one, two, rows);
            for (one, two) in [(other_one, two), (one, other_two), (other_one, other_two)] {
                assert_eq!(PairOverlap::of(one, two, rows), expected);
            }
        }
        for most in [0, 3, usize::MAX] {
            let options = DiffOptions {
                most,
                ..DiffOptions::default()
            };
            let diff =
                |one, two| ProfileDiff::of(one, two, &options).map_err(|why| why.to_string());
            let expected = diff(one, two);
            for (one, two) in [(other_one, two), (one, other_two), (other_one, other_two)] {
                assert_eq!(diff(one, two), expected);
            }
        }
        for (side, other) in [(one, other_one), (two, other_two)] {
            assert_eq!(side.size(), other.size());
            assert_eq!(side.describe(), other.describe());
            assert_eq!(side.damage.count, other.damage.count);
        }
        let in_place = |side: &ComparedProfile<'_>| matches!(side.content, Content::Indexed(_));
        in_place(other_one) && in_place(other_two)
    }

    #[test]
    fn profiles_that_are_read_in_their_files_are_compared_as_those_in_memory() {
        let sizes = [0..1, 0..60, 30..800, 400..2000];
        for (seed, one) in (0..).zip(&sizes) {
            for two in &sizes {
                for version in [9, 13] {
                    let one = indexed(one.clone(), seed, version);
                    let two = indexed(two.clone(), seed + 100, 12);
                    assert!(same(&one, &two));
                }
            }
        }
    }

    #[test]
    fn damaged_profiles_are_read_into_memory() {
        let sound = indexed(0..300, 1, 13);
        let (mut in_place, mut others) = (0, 0);
        for at in (0..sound.len()).step_by(397) {
            let mut bytes = sound.clone();
            bytes[at] ^= 1;
            match same(&bytes, &sound) {
                true => in_place += 1,
                false => others += 1,
            }
        }
        assert!(in_place > 0 && others > 0, "{in_place} {others}");
    }

    #[test]
    fn all_bytes_of_functions_are_given_back() {
        let bytes = indexed(0..3000, 1, 13);
        let given_back = AtomicU64::new(0);
        let release = |range: Range<u64>| {
            given_back.fetch_add(range.end - range.start, Ordering::Relaxed);
        };
        let profile = ComparedProfile::open_in_place(&bytes, Some(&release)).unwrap();
        assert!(given_back.swap(0, Ordering::Relaxed) > bytes.len() as u64 / 2);
        PairOverlap::of(&profile, &profile, 0).unwrap();
        assert!(given_back.load(Ordering::Relaxed) > bytes.len() as u64);
    }
}
