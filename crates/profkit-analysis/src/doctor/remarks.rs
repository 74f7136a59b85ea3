//! What is odd about the records of a profile that is not damaged.
use profkit_data::ids::{FuncHash, NameRef};
use profkit_data::instr::{InstrKind, InstrProfile, Record, RecordRef, ValueData};
use profkit_merge::RecordVisitor;

/// Whether a value site with this number of values may lack others. LLVM's runtime records 24 values at a site unless the
/// program sets another number, and a merge keeps 255.
pub(crate) fn is_full_site(values: usize) -> bool {
    values == 24 || values >= 255
}

/// The numbers of records and value sites that are odd. Such records are kept: the program may have reset its counters
/// while it ran, or another tool may have made them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remarks {
    /// The number of records whose counters say that code of the function ran, but that it was never called. Only
    /// profiles whose first counter counts calls can say so.
    pub never_called: u64,
    /// The sum of the counters of these records.
    pub never_called_counts: u128,
    /// The number of records of IR profiles with the function hash 0, which LLVM does not compute.
    pub zero_hash: u64,
    /// The sum of the counters of these records.
    pub zero_hash_counts: u128,
    /// The number of records whose functions have no names, only their hashes ([`NameRef::from_stand_in`]).
    pub nameless: u64,
    /// The sum of the counters of these records.
    pub nameless_counts: u128,
    /// The number of value sites with as many values as the runtime or a merge keeps. Further values may be missing.
    pub full_sites: u64,
    /// The number of value sites that have values.
    pub sites: u64,
    /// The sum of the counters of all records.
    pub counts: u128,
}

/// Looks at the records of a result that is joined while it is written. Its kind is known later: see
/// [`Remarks::for_kind`].
impl RecordVisitor for Remarks {
    fn record(&mut self, record: &RecordRef<'_>) {
        // Inputs that have functions without names are not joined while they are written.
        self.add_ref(InstrKind::IR | InstrKind::ENTRY_FIRST, b"", record);
    }

    fn absorb(&mut self, other: Self) {
        self.never_called += other.never_called;
        self.never_called_counts += other.never_called_counts;
        self.zero_hash += other.zero_hash;
        self.zero_hash_counts += other.zero_hash_counts;
        self.nameless += other.nameless;
        self.nameless_counts += other.nameless_counts;
        self.full_sites += other.full_sites;
        self.sites += other.sites;
        self.counts += other.counts;
    }
}

impl Remarks {
    /// Leaves out what is not odd in a profile of this kind.
    #[must_use]
    pub fn for_kind(mut self, kind: InstrKind) -> Self {
        if !(kind.counts_calls() && kind.counts_executions()) {
            (self.never_called, self.never_called_counts) = (0, 0);
        }
        if !kind.contains(InstrKind::IR) {
            (self.zero_hash, self.zero_hash_counts) = (0, 0);
        }
        self
    }

    /// Looks at all records of a profile.
    pub fn of(profile: &InstrProfile) -> Self {
        let mut remarks = Remarks::default();
        let functions = profile.tables.iter().flat_map(|table| table.functions());
        for function in functions {
            for record in function.records() {
                remarks.add_ref(profile.kind, function.name(), &record);
            }
        }
        remarks
    }

    /// Adds a record of a profile of this kind.
    pub fn add(&mut self, kind: InstrKind, record: &Record) {
        if !record.is_pseudo() {
            let values = Some(&record.values);
            self.add_parts(kind, &record.name, record.func_hash, &record.counts, values);
        }
    }

    fn add_ref(&mut self, kind: InstrKind, name: &[u8], record: &RecordRef<'_>) {
        if !record.is_pseudo() {
            self.add_parts(kind, name, record.func_hash, record.counts, record.values);
        }
    }

    fn add_parts(
        &mut self,
        kind: InstrKind,
        name: &[u8],
        hash: FuncHash,
        counts: &[u64],
        values: Option<&ValueData>,
    ) {
        let sum: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        self.counts += sum;
        if kind.counts_calls() && kind.counts_executions() && counts.first() == Some(&0) && sum > 0
        {
            self.never_called += 1;
            self.never_called_counts += sum;
        }
        if kind.contains(InstrKind::IR) && hash == FuncHash(0) {
            self.zero_hash += 1;
            self.zero_hash_counts += sum;
        }
        if NameRef::from_stand_in(name).is_some() {
            self.nameless += 1;
            self.nameless_counts += sum;
        }
        for site in values
            .into_iter()
            .flat_map(ValueData::kinds)
            .flat_map(|(_, kind)| kind.sites())
        {
            let values = site.len();
            self.sites += u64::from(values > 0);
            self.full_sites += u64::from(is_full_site(values));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::instr::{InstrReader, InstrSource};

    fn remarks(text: &str) -> Remarks {
        let mut reader = InstrReader::open(text.as_bytes()).unwrap();
        let (mut remarks, mut record) = (Remarks::default(), Record::default());
        while let Some(read) = reader.next_record(&mut record) {
            read.unwrap();
            remarks.add(reader.kind(), &record);
        }
        remarks
    }

    #[test]
    fn calls_are_checked_where_the_first_counter_counts_them() {
        let of = |text: &str| {
            let found = remarks(text);
            (
                found.never_called,
                found.never_called_counts,
                found.zero_hash,
            )
        };
        assert_eq!(of("f\n0\n2\n0\n8\n\ng\n5\n1\n3\n"), (1, 8, 0));
        assert_eq!(of(":ir\n:entry_first\nf\n5\n2\n0\n8\n"), (1, 8, 0));
        // Without the flag, the first counter of an IR profile is that of any edge.
        assert_eq!(of(":ir\nf\n0\n2\n0\n8\n"), (0, 0, 1));
        assert_eq!(of("f\n0\n2\n0\n0\n"), (0, 0, 0));
    }

    #[test]
    fn full_value_sites_are_counted() {
        let of = |values: usize| {
            let list: String = (0..values).map(|at| format!("{at}:1\n")).collect();
            let found = remarks(&format!(":ir\nf\n1\n1\n5\n1\n1\n2\n{values}\n{list}0\n"));
            (found.full_sites, found.sites)
        };
        assert_eq!(
            [of(23), of(24), of(25), of(255)],
            [(0, 1), (1, 1), (0, 1), (1, 1)]
        );
    }
}
