//! Fuzzes indexed instrumentation profiles.
use crate::source::{located, read_all};
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{
    IndexedProfile, IndexedReadOptions, IndexedWriteOptions, write,
};
use profkit_data::instr::{InstrSource, Record};

/// Reads any bytes as an indexed profile, and checks these rules:
///
/// - A record whose hash is that of its name is found by this name.
/// - The shares into which the records are divided make up the whole.
/// - If there is no error, the profile is the same after it is written and read again.
/// - Salvaging gives the records of strict reading, or reports damage.
///
/// # Panics
/// If one of these rules or a rule of [`read_all`] does not hold.
pub(crate) fn indexed(data: &[u8]) {
    if let Ok(view) = IndexedProfile::parse_with(data, &IndexedReadOptions::new().llvm_checks(true))
    {
        read_all(view.records(), data.len());
    }
    let salvaged = IndexedProfile::parse_with(data, &IndexedReadOptions::new().salvage(true))
        .map(|view| read_all(view.records(), data.len()));
    let view = match IndexedProfile::parse(data) {
        Ok(view) => view,
        Err(error) => return located(&error),
    };
    if let Err(error) = view.vtable_names() {
        located(&error);
    }
    let contents = read_all(view.records(), data.len());
    let salvaged = salvaged.expect("what reads strictly can be salvaged");
    if contents.errors.is_empty() && salvaged.errors.is_empty() {
        assert_eq!(salvaged.records, contents.records);
    } else if !contents.errors.is_empty() {
        assert!(!salvaged.errors.is_empty(), "damage is not reported");
    }
    for record in contents.records.iter().take(8) {
        if NameRef::of(&record.name) == record.name_ref && contents.errors.is_empty() {
            let found = view.lookup(&record.name).expect("a whole table");
            assert!(found.is_some(), "a name that was read is not found");
        }
    }
    if let Err(error) = view.lookup(b"main") {
        located(&error);
    }
    if !contents.errors.is_empty() {
        return;
    }
    let mut shared = Vec::new();
    for share in 0..4 {
        shared.extend(records(&view, share, 4));
    }
    let whole = sorted(contents.records);
    assert_eq!(sorted(shared), whole);
    let mut profile = match view.to_profile() {
        Ok(profile) => profile,
        Err(error) => return located(&error),
    };
    let options = IndexedWriteOptions::for_version(14);
    let mut out = Vec::new();
    if write(&profile, &options, &mut out).is_err() {
        // Writing can fail only because of wrong offsets inside the MemProf section. So the profile is written without
        // this section.
        profile.memprof = None;
        out.clear();
        write(&profile, &options, &mut out).expect("what was read can be written");
    }
    let again = IndexedProfile::parse(&out).expect("our own file");
    assert_eq!(sorted(records(&again, 0, 1)), whole);
    assert_eq!(
        again.temporal_traces().expect("our own traces"),
        profile.traces
    );
    let mut ids = profile.binary_ids;
    ids.sort();
    ids.dedup();
    assert_eq!(again.binary_ids().expect("our own build ids"), ids);
}

fn records(view: &IndexedProfile<'_>, share: usize, shares: usize) -> Vec<Record> {
    let mut reader = view.records_of_share(share, shares);
    let mut record = Record::default();
    let mut records = Vec::new();
    while reader.read_record(&mut record).expect("what read before") {
        records.push(record.clone());
    }
    records
}

/// Sorts records, so that their order does not depend on the hash table of the file.
fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_cached_key(|record| {
        let (counts, bitmap) = (record.counts.clone(), record.bitmap.clone());
        let uniformity = record.uniformity.clone();
        let values = format!("{:?}", record.values);
        (
            record.name.clone(),
            record.name_ref,
            record.func_hash,
            counts,
            bitmap,
            uniformity,
            values,
        )
    });
    records
}
