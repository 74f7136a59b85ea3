//! Rules that hold for every reader and all bytes.
use profkit_data::detect::{FileKind, is_text};
use profkit_data::ids::NameRef;
use profkit_data::instr::raw::{RawReadOptions, RawReader};
use profkit_data::instr::{InstrSource, Record};
use profkit_data::{Error, ReadOptions, Result};

/// Reads a raw file strictly, and again with salvaging. If strict reading finds no fault, both must give the same
/// records, but that only salvaging gives a record without a name the text of its hash.
///
/// # Panics
/// If the records differ, or if a rule of [`read_all`] does not hold.
pub(crate) fn raw(data: &[u8]) {
    let strict = RawReader::parse(data).map(|reader| read_all(reader, data.len()));
    let salvage = RawReadOptions::default().salvage(true);
    let salvaged = RawReader::parse_with(data, &salvage).map(|reader| read_all(reader, data.len()));
    if let Ok(strict) = strict
        && strict.errors.is_empty()
    {
        let mut salvaged = salvaged.expect("what reads strictly can be salvaged");
        assert_eq!(salvaged.errors, []);
        for (salvaged, strict) in salvaged.records.iter_mut().zip(&strict.records) {
            if strict.name.is_empty() {
                assert_eq!(
                    NameRef::from_stand_in(&salvaged.name),
                    Some(strict.name_ref)
                );
                salvaged.name.clear();
            }
        }
        assert_eq!(salvaged.records, strict.records);
    } else if let Err(error) = salvaged {
        located(&error);
    }
}

/// Detects the kind of any bytes, and of their beginnings.
///
/// # Panics
/// If an input that is not empty is detected as empty or the other way round; if a binary file is said to be of a kind that is text;
/// if a file is of a family and the advice is to give a profile instead; or if a file that is no profile can be opened as one.
pub(crate) fn detect(data: &[u8]) {
    kind_of(data);
    for len in [1, 4, 7, 8, 9, 15, 16, 20, 64, 300] {
        if let Some(beginning) = data.get(..len) {
            kind_of(beginning);
        }
    }
}

fn kind_of(data: &[u8]) {
    let kind = profkit_data::detect::detect(data);
    assert_eq!(kind == FileKind::Empty, data.is_empty());
    assert!(!kind.is_text() || is_text(data), "{kind:?}");
    assert!(!kind.description().is_empty());
    if kind.family().is_some() {
        assert_eq!(kind.advice(), None, "{kind:?}");
    } else {
        let error = profkit_data::open(data, &ReadOptions::new()).map(drop);
        let error = error.expect_err("it is no profile");
        located(&error);
    }
}

/// All that a reader yields.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) records: Vec<Record>,
    pub(crate) errors: Vec<Error>,
}

/// Reads all records. Goes on after each error that the reader can resume after.
///
/// # Panics
/// If reading does not end, if the reader returns more records after it said that it cannot continue, or if an error
/// states no position.
pub(crate) fn read_all(mut source: impl InstrSource, len: usize) -> Contents {
    let mut contents = Contents {
        records: Vec::new(),
        errors: Vec::new(),
    };
    let mut record = Record::default();
    // Every record and every error takes at least one byte of the file; a file of several profiles may have a few more.
    // So this loop must return before it has made all of its passes.
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

/// Checks that an error states its position, and what was being read there.
///
/// # Panics
/// If the error does not say so.
pub(crate) fn located(error: &Error) {
    let placed = error.offset().is_some() || error.line_column().is_some();
    let empty = error.kind() == profkit_data::ErrorKind::Empty;
    assert!(
        empty || (placed && !error.structures().is_empty()),
        "an error without a place or a structure: {error:?}"
    );
}
