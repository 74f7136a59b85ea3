//! What holds for every reader, whatever the bytes.
use profkit_data::detect::FileKind;
use profkit_data::instr::raw::{RawReadOptions, RawReader};
use profkit_data::instr::{InstrSource, Record};
use profkit_data::{Error, Result};

/// Reads a raw file strictly and to salvage it. Where strict reading finds no fault, both find the same records.
///
/// # Panics
/// If that does not hold, or a law of [`read_all`].
pub(crate) fn raw(data: &[u8]) {
    let strict = RawReader::parse(data).map(|reader| read_all(reader, data.len()));
    let salvage = RawReadOptions::default().salvage(true);
    let salvaged = RawReader::parse_with(data, &salvage).map(|reader| read_all(reader, data.len()));
    if let Ok(strict) = strict
        && strict.errors.is_empty()
    {
        let salvaged = salvaged.expect("what reads strictly can be salvaged");
        assert_eq!(salvaged.errors, []);
        assert_eq!(salvaged.records, strict.records);
    } else if let Err(error) = salvaged {
        located(&error);
    }
}

/// Says what any bytes are.
///
/// # Panics
/// If an empty file is anything else, or anything else is empty.
pub(crate) fn detect(data: &[u8]) {
    let kind = profkit_data::detect::detect(data);
    assert_eq!(kind == FileKind::Empty, data.is_empty());
}

/// All that a reader yields.
#[derive(Debug)]
pub(crate) struct Contents {
    /// The records, in order.
    pub(crate) records: Vec<Record>,
    /// The errors, in order.
    pub(crate) errors: Vec<Error>,
}

/// Reads to the end, past every error that can be passed.
///
/// # Panics
/// If reading does not end, goes on after it said that it cannot, or an error has no place.
pub(crate) fn read_all(mut source: impl InstrSource, len: usize) -> Contents {
    let mut contents = Contents {
        records: Vec::new(),
        errors: Vec::new(),
    };
    let mut record = Record::default();
    // Every record and every error costs at least one byte of the file; profiles of a file may add a few.
    for _ in 0..2 * len + 64 {
        match source.read_record(&mut record) {
            Ok(true) => contents.records.push(record.clone()),
            Ok(false) => {
                after_the_end(&mut source, &mut record);
                return contents;
            }
            Err(error) => {
                located(&error);
                contents.errors.push(error);
                if !source.can_resume() {
                    after_the_end(&mut source, &mut record);
                    return contents;
                }
            }
        }
    }
    panic!("reading {len} bytes does not come to an end");
}

fn after_the_end(source: &mut impl InstrSource, record: &mut Record) {
    let more = source.read_record(record);
    assert!(matches!(more, Ok(false)), "after the end: {more:?}");
    check(source.binary_ids());
    check(source.temporal_traces());
}

fn check<T>(result: Result<T>) {
    if let Err(error) = result {
        located(&error);
    }
}

/// Every error says what was being read, and where.
///
/// # Panics
/// If it does not.
pub(crate) fn located(error: &Error) {
    let placed = error.offset().is_some() || error.line_column().is_some();
    let empty = error.kind() == profkit_data::ErrorKind::Empty;
    assert!(
        empty || (placed && !error.structures().is_empty()),
        "an error without a place or a structure: {error:?}"
    );
}
