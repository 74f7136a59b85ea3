use super::ahead::plain_record;
use super::reader::TextReader;
use crate::ids::FuncHash;
use crate::instr::{InstrKind, InstrSource, Record};

/// Finds the records of a text by the hashes of their names, in the order of the buckets that an indexed profile of these
/// names has. It takes about 24 bytes per record, and 40 while it is made, and the text stays where it is.
///
/// ```
/// use profkit_data::ids::NameRef;
/// use profkit_data::instr::Record;
/// use profkit_data::instr::text::TextIndex;
///
/// let text = b"main\n1\n1\n7\n\nf\n2\n1\n3\n";
/// let index = TextIndex::new(text).expect("the text is sound");
/// let NameRef(hash) = NameRef::of(b"f");
/// let bucket = hash as usize % index.bucket_count();
/// let found = index.bucket(bucket).iter().find(|found| found.hash == hash).expect("the text has the name");
/// assert_eq!(found.name(text), b"f");
/// let mut record = Record::default();
/// assert!(TextIndex::read_record(text, found.start, &mut record));
/// assert_eq!(record.counts, [3]);
/// ```
#[derive(Clone, Debug)]
pub struct TextIndex {
    kind: InstrKind,
    /// The records, bucket by bucket. In a bucket they have the order of the text.
    records: Vec<IndexedRecord>,
    /// For each bucket, the number of records in the buckets before it. One more element at the end is the number of all
    /// records.
    bucket_starts: Vec<u32>,
}

/// A record of a [`TextIndex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedRecord {
    /// The hash of the function's name.
    pub hash: u64,
    /// The offset of the record's first line, which is the name, in the text. Records that come later have larger offsets.
    pub start: u32,
    /// The length of the name in bytes.
    pub name_len: u32,
}

impl TextIndex {
    /// Reads a text from its start to its end. `None` if a reader would report anything, if a record has values of
    /// virtual tables, whose names only a [`TextReader`] finds, and for a text of 4 GiB or more.
    pub fn new(text: &[u8]) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let mut reader = TextReader::parse(text).ok()?;
        let mut in_text = Vec::new();
        let mut record = Record::default();
        while reader.read_record(&mut record).ok()? {
            in_text.push(IndexedRecord {
                hash: record.name_ref.0,
                start: u32::try_from(reader.record_start()).ok()?,
                name_len: u32::try_from(record.name.len()).ok()?,
            });
        }
        if !reader.vtable_names().is_empty() {
            return None;
        }
        let buckets = (in_text.len() * 4 / 3 + 1).next_power_of_two();
        let bucket_of = |record: &IndexedRecord| bucket_of(record.hash, buckets);
        let mut bucket_starts = vec![0u32; buckets + 1];
        for record in &in_text {
            if let Some(count) = bucket_starts.get_mut(bucket_of(record) + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut bucket_starts {
            sum += *start;
            *start = sum;
        }
        let mut records = in_text.clone();
        // Each start is moved to the end of its bucket, which is the start of the next one.
        for record in in_text {
            let start = bucket_starts.get_mut(bucket_of(&record))?;
            *records.get_mut(*start as usize)? = record;
            *start += 1;
        }
        bucket_starts.rotate_right(1);
        *bucket_starts.first_mut()? = 0;
        Some(TextIndex {
            kind: reader.kind(),
            records,
            bucket_starts,
        })
    }

    /// The kind of the profile, which its header lines state.
    pub fn kind(&self) -> InstrKind {
        self.kind
    }

    /// The number of records.
    pub fn record_count(&self) -> usize {
        self.records.len()
    }

    /// The number of buckets, a power of two. The low bits of the hash of a name are the number of its bucket.
    pub fn bucket_count(&self) -> usize {
        self.bucket_starts.len() - 1
    }

    /// Returns the records of a bucket, in the order of the text.
    #[inline]
    pub fn bucket(&self, number: usize) -> &[IndexedRecord] {
        let bound = |number: usize| self.bucket_starts.get(number).map_or(0, |&at| at as usize);
        let records = self.records.get(bound(number)..bound(number + 1));
        records.unwrap_or_default()
    }

    /// Reads the record that begins at an offset of the text. Returns whether there is one.
    pub fn read_record(text: &[u8], start: u32, record: &mut Record) -> bool {
        let mut reader = TextReader::at(text, start as usize);
        matches!(reader.read_record(record), Ok(true))
    }

    /// Appends the counters of the record that begins at an offset of the text to `counts`, and returns its function hash.
    /// `None` for a record that has more than counters, or is spelled in an unusual way: [`read_record`](Self::read_record)
    /// reads it. `counts` may then have some of its counters.
    #[inline]
    pub fn read_plain(text: &[u8], start: u32, counts: &mut Vec<u64>) -> Option<FuncHash> {
        plain_record(text, start as usize, counts).map(FuncHash)
    }
}

impl IndexedRecord {
    /// Returns the name of the function. `text` is that of the index.
    #[inline]
    pub fn name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let rest = text.get(self.start as usize..).unwrap_or_default();
        rest.get(..self.name_len as usize).unwrap_or_default()
    }
}

fn bucket_of(hash: u64, buckets: usize) -> usize {
    usize::try_from(hash & (buckets as u64 - 1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NameRef;

    #[test]
    fn every_record_is_in_the_bucket_of_its_name() {
        let mut text = b"# comment\n:ir\n".to_vec();
        for number in 0..500u32 {
            let name = format!("function_{}", number % 450);
            let values = if number % 7 == 0 {
                "1\n1\n1\n1\n16:9\n"
            } else {
                ""
            };
            let end = if number % 11 == 0 { "\r\n" } else { "\n" };
            let record = format!("{name}\n{number}\n2\n{number}\n1\n{values}\n");
            text.extend_from_slice(record.replace('\n', end).as_bytes());
        }
        let index = TextIndex::new(&text).unwrap();
        assert!(index.kind().is_ir());
        assert_eq!((index.record_count(), index.bucket_count()), (500, 1024));
        let mut expected = TextReader::parse(&text).unwrap();
        let expected: Vec<Record> = expected.records().map(Result::unwrap).collect();
        let mut found = Vec::new();
        for bucket in 0..index.bucket_count() {
            for one in index.bucket(bucket) {
                let (hash, start) = (one.hash, one.start);
                assert_eq!(hash & 1023, bucket as u64);
                let mut record = Record::default();
                assert!(TextIndex::read_record(&text, start, &mut record));
                assert_eq!(one.name(&text), record.name);
                assert_eq!(NameRef(hash), record.name_ref);
                let mut counts = Vec::new();
                if let Some(func_hash) = TextIndex::read_plain(&text, start, &mut counts) {
                    assert!(record.values.is_empty());
                    assert_eq!(
                        (func_hash, counts),
                        (record.func_hash, record.counts.clone())
                    );
                }
                found.push((start, record));
            }
        }
        found.sort_by_key(|&(start, _)| start);
        let found: Vec<Record> = found.into_iter().map(|(_, record)| record).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_a_reader_would_report_makes_no_index() {
        for text in [
            b"f\n1\n1\nx\n".as_slice(),
            b":unknown\nf\n1\n1\n1\n",
            b"f\n1\n1\n1\n1\n2\n1\n1\nvtable:5\n",
        ] {
            assert!(TextIndex::new(text).is_none());
        }
        assert_eq!(TextIndex::new(b":ir\n").unwrap().record_count(), 0);
    }
}
