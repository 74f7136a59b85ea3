//! Fuzzes correlation, which reads metadata from sections and from DWARF.
use profkit_data::instr::raw::{RawDialect, RawMetadata, RecordLayout};
use profkit_object::build_id::build_id;
use profkit_object::correlate::binary::{self, Outside, SectionSet};
use profkit_object::correlate::dwarf::{self, DwarfOptions};
use profkit_object::correlate::{Correlated, CorrelationWarnings, CounterSection, machine};

/// Reads metadata from any bytes in every way.
///
/// # Panics
/// If a function's counters lie outside of the section, if two functions have the same counters, if more warnings are
/// kept than the limit allows, or if the result cannot be encoded.
pub(crate) fn correlate(data: &[u8]) {
    let Ok(image) = object::File::parse(data) else {
        return;
    };
    let _ = build_id(&image);
    let Ok(counters) = CounterSection::of(&image) else {
        return;
    };
    let (endian, width) = machine(&image);
    for version in [8, 10, 11] {
        let dialect = RawDialect {
            endian,
            width,
            version,
            flags: 0,
        };
        let layout = RecordLayout::for_dialect(dialect);
        for set in [SectionSet::Correlation, SectionSet::Runtime] {
            for outside in [Outside::Drop, Outside::Keep] {
                let warnings = CorrelationWarnings::new(3);
                let found = binary::correlate(&image, set, dialect, &layout, outside, warnings);
                if let Ok(found) = found {
                    check(&found, counters, outside, dialect, layout);
                }
            }
        }
    }
    for details in [false, true] {
        let options = DwarfOptions::new().details(details);
        let warnings = CorrelationWarnings::new(3);
        if let Ok((probes, warnings)) = dwarf::probes(&image, counters, options, warnings) {
            assert!(!probes.is_empty() && warnings.list.len() <= 3);
        }
    }
    let options = DwarfOptions::default();
    if let Ok(found) = dwarf::correlate(&image, counters, options, CorrelationWarnings::new(3)) {
        let dialect = RawDialect {
            endian,
            width,
            version: 10,
            flags: 0,
        };
        let layout = RecordLayout::for_dialect(dialect);
        check(&found, counters, Outside::Keep, dialect, layout);
    }
}

fn check(
    found: &Correlated,
    counters: CounterSection,
    outside: Outside,
    dialect: RawDialect,
    layout: RecordLayout,
) {
    assert!(found.warnings.list.len() <= 3);
    let records = found.program.records.iter();
    let mut offsets: Vec<u64> = records.map(|record| record.counter_offset).collect();
    let len = counters.end.wrapping_sub(counters.start);
    assert!(outside == Outside::Keep || offsets.iter().all(|&offset| offset < len));
    offsets.sort_unstable();
    assert!(
        offsets.is_sorted_by(|one, next| one < next),
        "counters twice"
    );
    // Only damaged names may make the encoding fail.
    if let Ok(encoded) = RawMetadata::new(&found.program, dialect, layout) {
        assert_eq!(encoded.record_count(), found.program.records.len());
    }
}
