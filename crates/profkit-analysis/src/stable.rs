//! Profiles that stay the same from run to run: counts rounded, counts of an older profile kept where the difference is
//! noise, no traces, and the paths of the machine named.
//!
//! A count of one batch of runs cannot be rounded so that another batch always gives the same result: near the border of
//! two steps, one more execution decides. Where an older profile is given, its count is kept if the new one is within one
//! step of it. So the law is: if no count is more than one step from the old one, the result is the old profile.
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::{FunctionId, FunctionTable, InstrProfile, RecordId, ValueData};
use profkit_data::sample::{SampleName, SampleProfile, scale};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// How a profile is made stable.
///
/// ```
/// use profkit_analysis::stable::Stable;
/// use profkit_data::instr::{InstrProfile, InstrReader};
///
/// let read = |text: &'static [u8]| InstrProfile::read(&mut InstrReader::open(text)?);
/// let mut new = read(b":ir\nmain\n12\n2\n1003\n7\n")?;
/// let done = Stable { bits: 4 }.instr(&mut new, Some(&read(b":ir\nmain\n12\n2\n960\n8\n")?));
/// let record = new.tables[0].functions().next().and_then(|main| main.records().next());
/// assert_eq!(record.map(|it| it.counts.to_vec()), Some(vec![960, 7]));
/// assert_eq!((done.changed, done.kept), (1, 1));
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stable {
    /// The number of significant bits that a count keeps, from 1. Smaller counts stay as they are; a larger one changes by
    /// at most one part in 2 to the power of `bits`.
    pub bits: u32,
}

/// What was done to a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stabilised {
    /// The number of counts that were rounded, or replaced by those of the older profile.
    pub changed: u64,
    /// The number of counts that are those of the older profile and would be others without it.
    pub kept: u64,
    /// The number of temporal traces that were left out.
    pub traces: u64,
    /// The number of names that begin with an absolute path, which is that of the machine that compiled them.
    pub with_paths: u64,
    /// The first of these names in the order of the profile.
    pub first_with_path: Option<Vec<u8>>,
}

impl Stable {
    /// Rounds the counters and the counts of values, and leaves the temporal traces out. Marks for hot and warm functions
    /// stay. `like` is an older profile whose counts are kept where the new ones are within one step.
    pub fn instr(&self, profile: &mut InstrProfile, like: Option<&InstrProfile>) -> Stabilised {
        let mut done = Stabilised {
            traces: profile.traces.traces.len() as u64,
            ..Stabilised::default()
        };
        profile.traces = Default::default();
        let old = like.map(records).unwrap_or_default();
        for table in &mut profile.tables {
            let mut ids = Vec::with_capacity(table.record_count());
            for (at, function) in (0..).zip(table.functions()) {
                done.name(function.name());
                let name = function.name_ref();
                ids.extend(table.record_ids(FunctionId(at)).map(|id| (name, id)));
            }
            for (name, id) in ids {
                self.record(table, id, name, &old, &mut done);
            }
        }
        profile.vtable_names.iter().for_each(|name| done.name(name));
        done
    }

    fn record(
        &self,
        table: &mut FunctionTable,
        id: RecordId,
        name: NameRef,
        old: &Records<'_>,
        done: &mut Stabilised,
    ) {
        let Some(record) = table.record(id).filter(|record| !record.is_pseudo()) else {
            return;
        };
        let (old, old_values) = match old.get(&(name, record.func_hash)) {
            Some((counts, values)) if counts.len() == record.counts.len() => (*counts, *values),
            _ => (&[][..], None),
        };
        for (at, count) in (0..).zip(table.counts_mut(id).into_iter().flatten()) {
            self.count(count, old.get(at).copied(), done);
        }
        let Some(values) = table.values_mut(id) else {
            return;
        };
        for (kind, values) in values.kinds_mut() {
            let old = old_values.and_then(|old| old.kind(kind));
            for (at, site) in (0..).zip(values.sites_mut()) {
                for entry in &mut *site {
                    let old = old.filter(|old| at < old.site_count()).and_then(|old| {
                        let mut entries = old.site(at).iter();
                        entries.find(|old| old.value == entry.value)
                    });
                    self.count(&mut entry.count, old.map(|old| old.count), done);
                }
                // Noise orders values that are about as frequent.
                site.sort_by_key(|entry| (Reverse(entry.count), entry.value));
            }
        }
    }

    /// Rounds the counts of a sample profile.
    pub fn samples(&self, profile: &mut SampleProfile) -> Stabilised {
        let mut done = Stabilised::default();
        let bits = self.bits;
        scale(profile, |count| rounded(count, bits));
        for function in profile.functions() {
            if let SampleName::Text(name) = profile.names.get(function.samples.name) {
                done.name(name);
            }
        }
        done
    }

    fn count(&self, count: &mut u64, old: Option<u64>, done: &mut Stabilised) {
        let alone = rounded(*count, self.bits);
        let new = match old {
            Some(old) if count.abs_diff(old) <= step(old, self.bits) => old,
            _ => alone,
        };
        done.changed += u64::from(new != *count);
        done.kept += u64::from(new != alone);
        *count = new;
    }
}

impl Stabilised {
    fn name(&mut self, name: &[u8]) {
        let is_windows =
            matches!(name, [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
        let has_path = (name.starts_with(b"/") || is_windows)
            && name
                .iter()
                .skip(2)
                .any(|&byte| byte == b';' || byte == b':');
        if has_path {
            self.with_paths += 1;
            self.first_with_path.get_or_insert_with(|| name.to_vec());
        }
    }
}

type Records<'p> = FxHashMap<(NameRef, FuncHash), (&'p [u64], Option<&'p ValueData>)>;

fn records(profile: &InstrProfile) -> Records<'_> {
    let functions = profile.tables.iter().flat_map(FunctionTable::functions);
    let records = functions.flat_map(|function| {
        let name = function.name_ref();
        let records = function.records().filter(|record| !record.is_pseudo());
        records.map(move |record| ((name, record.func_hash), (record.counts, record.values)))
    });
    records.collect()
}

/// The difference between neighbours among the numbers with this many significant bits, near `count`; 0 if all numbers
/// near it have no more bits.
fn step(count: u64, bits: u32) -> u64 {
    let dropped = (u64::BITS - count.leading_zeros()).saturating_sub(bits);
    if dropped == 0 { 0 } else { 1 << dropped }
}

/// The nearest number with this many significant bits, of two the larger one unless it does not fit.
fn rounded(count: u64, bits: u32) -> u64 {
    let step = step(count, bits);
    if step == 0 {
        return count;
    }
    let below = count & !(step - 1);
    if count - below < step / 2 {
        return below;
    }
    below.checked_add(step).unwrap_or(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::instr::InstrReader;
    use proptest::prelude::*;

    fn read(text: &str) -> InstrProfile {
        InstrProfile::read(&mut InstrReader::open(text.as_bytes()).unwrap()).unwrap()
    }

    fn counts(profile: &InstrProfile) -> Vec<u64> {
        let functions = profile.tables.iter().flat_map(FunctionTable::functions);
        let records = functions.flat_map(|function| function.records().collect::<Vec<_>>());
        records.flat_map(|record| record.counts.to_vec()).collect()
    }

    #[test]
    fn counts_keep_their_highest_bits() {
        let cases = [
            (0, 0),
            (7, 7),
            (15, 15),
            (17, 18),
            (24, 24),
            (31, 32),
            (1003, 1024),
        ];
        for (count, expected) in cases {
            assert_eq!(rounded(count, 4), expected, "{count}");
        }
        assert_eq!(rounded(u64::MAX, 4), 0xf << 60);
        assert_eq!(rounded(u64::MAX, 64), u64::MAX);
    }

    #[test]
    fn marks_and_small_counts_stay() {
        let mut profile = read(&format!(
            ":ir\nf\n1\n2\n{}\n0\n\ng\n2\n1\n3\n",
            u64::MAX - 1
        ));
        let before = counts(&profile);
        let done = Stable { bits: 4 }.instr(&mut profile, None);
        assert_eq!((counts(&profile), done.changed), (before, 0));
    }

    #[test]
    fn names_with_paths_of_the_machine_are_found() {
        let names = ["/home/a/x.c;f", "C:\\x.c:g", "x.c;h", "main", "/", "/no"];
        let records: String = names
            .iter()
            .map(|name| format!("{name}\n1\n1\n1\n\n"))
            .collect();
        let done = Stable { bits: 4 }.instr(&mut read(&format!(":ir\n{records}")), None);
        assert_eq!(done.with_paths, 2);
        assert_eq!(done.first_with_path.as_deref(), Some(&b"/home/a/x.c;f"[..]));
    }

    #[test]
    fn values_of_a_site_are_ordered_by_rounded_counts() {
        let text = |first: u64, second: u64| {
            read(&format!(
                ":ir\nmain\n1\n1\n900\n1\n0\n1\n2\ng:{first}\nf:{second}\n\nf\n2\n1\n5\n\ng\n3\n1\n5\n"
            ))
        };
        let site = |mut profile: InstrProfile| {
            Stable { bits: 3 }.instr(&mut profile, None);
            let record = profile.tables[0].record(RecordId(0)).unwrap();
            record.values.unwrap().kind(0).unwrap().entries().to_vec()
        };
        assert_eq!(site(text(100, 101)), site(text(101, 100)));
    }

    proptest! {
        #[test]
        fn noise_within_a_step_gives_the_old_profile(
            olds in prop::collection::vec(any::<u64>(), 1..20),
            noise in prop::collection::vec(-1000..=1000i64, 20),
            bits in 1..20u32,
        ) {
            let olds: Vec<u64> = olds.into_iter().map(|it| it >> (it % 64)).map(|it| it >> 4).collect();
            let text = |counts: &[u64]| {
                let lines: Vec<_> = counts.iter().map(ToString::to_string).collect();
                read(&format!(":ir\nmain\n1\n{}\n{}\n", counts.len(), lines.join("\n")))
            };
            let mut old = text(&olds);
            Stable { bits }.instr(&mut old, None);
            let olds = counts(&old);
            let noisy: Vec<u64> = olds.iter().zip(&noise).map(|(&old, noise)| {
                let most = i64::try_from(step(old, bits) / 1000).unwrap();
                old.saturating_add_signed(most * noise)
            }).collect();
            let mut new = text(&noisy);
            Stable { bits }.instr(&mut new, Some(&old));
            prop_assert_eq!(counts(&new), olds);
        }

        #[test]
        fn rounding_is_near_monotone_and_done_once(one: u64, other: u64, bits in 1..64u32) {
            let round = |count| rounded(count, bits);
            prop_assert_eq!(round(round(one)), round(one));
            prop_assert!(one > other || round(one) <= round(other));
            prop_assert!(round(one).abs_diff(one) <= step(one, bits));
        }
    }
}
