//! Reads selected records and sums up all records, in one pass.
use super::totals::Totals;
use crate::faults::Faults;
use crate::names;
use crate::selection::Selection;
use profkit_data::instr::{InstrReader, InstrSource, Record};

/// Calls `each` with every selected record. Adds all records to `totals`, if it is given. Records that cannot be read
/// are added to the faults.
///
/// In an indexed profile, mangled names of the selection are looked up first. Without `totals`, the rest of the file is
/// read only if some names were not found. Returns the names of the selection that no function has.
///
/// ```
/// use profkit_analysis::faults::Faults;
/// use profkit_analysis::instr::{InstrReader, read_selected};
/// use profkit_analysis::selection::Selection;
///
/// let mut reader = InstrReader::open(b"main\n1\n1\n7\n\nidle\n1\n1\n0\n\n")?;
/// let selection = Selection { names: vec!["main".into(), "gone".into()], ..Selection::default() };
/// let (mut faults, mut counts) = (Faults::default(), Vec::new());
/// let missing = read_selected(&mut reader, &selection, None, &mut faults, |record, _| {
///     counts.push(record.counts[0]);
///     Ok::<(), std::convert::Infallible>(())
/// });
/// assert_eq!((missing, counts, faults.count), (Ok(vec!["gone"]), vec![7], 0));
/// # Ok::<(), profkit_data::Error>(())
/// ```
pub fn read_selected<'s, E>(
    source: &mut InstrReader<'_>,
    selection: &'s Selection,
    mut totals: Option<&mut Totals>,
    faults: &mut Faults,
    mut each: impl FnMut(&Record, &InstrReader<'_>) -> Result<(), E>,
) -> Result<Vec<&'s str>, E> {
    let mut missing: Vec<&str> = selection.names.iter().map(String::as_str).collect();
    let named_alone = !selection.all && selection.parts.is_empty() && selection.patterns.is_empty();
    if named_alone {
        missing = look_up(source, missing, faults, &mut each)?;
    }
    if named_alone && missing.is_empty() && totals.is_none() {
        return Ok(missing);
    }
    let mut found = vec![false; missing.len()];
    let mut record = Record::default();
    while let Some(read) = source.next_record(&mut record) {
        if let Err(error) = read {
            faults.push(error);
            continue;
        }
        if let Some(totals) = &mut totals {
            totals.add(&record);
        }
        let mut wanted = selection.all;
        for (name, found) in missing.iter().zip(&mut found) {
            if names::is_named(&record.name, name) {
                (*found, wanted) = (true, true);
            }
        }
        if wanted || selection.has_part_of(&record.name) {
            each(&record, source)?;
        }
    }
    let mut found = found.into_iter();
    missing.retain(|_| !found.next().unwrap_or(false));
    Ok(missing)
}

/// Looks up functions of an indexed profile by their mangled names. Returns the names that were not found.
fn look_up<'s, E>(
    source: &InstrReader<'_>,
    names: Vec<&'s str>,
    faults: &mut Faults,
    each: &mut impl FnMut(&Record, &InstrReader<'_>) -> Result<(), E>,
) -> Result<Vec<&'s str>, E> {
    let InstrReader::Indexed(reader) = source else {
        return Ok(names);
    };
    let mut record = Record::default();
    let mut remaining = Vec::new();
    for name in names {
        let found = reader.profile().lookup(name.as_bytes());
        let Some(mut found) = faults.or_default(found) else {
            remaining.push(name);
            continue;
        };
        loop {
            match found.read_record(&mut record) {
                Ok(true) => each(&record, source)?,
                Ok(false) => break,
                Err(error) => faults.push(error),
            }
        }
    }
    Ok(remaining)
}
