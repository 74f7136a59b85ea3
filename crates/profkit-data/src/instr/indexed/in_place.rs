//! Reads and finds the records of an indexed profile where they are in the file, without an index of them in memory.
use super::reader::IndexedProfile;
use crate::hash_table::Entry;
use crate::ids::{FuncHash, NameRef};
use crate::instr::overlap::{CountSums, FunctionLookup};
use crate::instr::{InstrKind, InstrSource, Record, RecordRef};
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

/// Gives the memory of mapped bytes back to the system. The argument is a range of offsets in the file.
pub type Release<'d> = dyn Fn(Range<u64>) + Sync + 'd;

/// The number of bytes that are kept mapped before they are given back.
const WINDOW: u64 = 1 << 20;
/// The largest number of functions of a bucket, and of records of a function, that are compared with each other.
const MOST: usize = 64;

/// An undamaged indexed profile whose function table has each function once, and each record of it once.
#[derive(Clone)]
pub struct InPlace<'d> {
    profile: IndexedProfile<'d>,
    release: Option<&'d Release<'d>>,
}

impl fmt::Debug for InPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InPlace")
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

impl<'d> InPlace<'d> {
    /// Takes a profile. Every record is read once to check the profile, and passed to `see`. `release` is called with the
    /// bytes that were read.
    ///
    /// Returns `None` for a profile with any damage or oddity, of which a reader of all records makes a report: a function
    /// table whose buckets do not follow each other, a function without a name, a name or a record that occurs twice.
    pub fn check(
        profile: IndexedProfile<'d>,
        release: Option<&'d Release<'d>>,
        mut see: impl FnMut(&Record),
    ) -> Option<Self> {
        if profile.is_damaged() {
            return None;
        }
        let in_place = InPlace { profile, release };
        let table = *in_place.profile.table();
        let mut window = in_place.window();
        let (mut record, mut names, mut hashes) = (Record::default(), Vec::new(), Vec::new());
        let (mut next, mut items) = (table.payload_offset(), 0u64);
        for number in 0..table.bucket_count() {
            let Some(mut bucket) = table.bucket(number).ok()? else {
                continue;
            };
            if bucket.start() != next || bucket.left() > MOST {
                return None;
            }
            names.clear();
            while let Some(item) = bucket.next_item().ok()? {
                if item.key.is_empty() || names.contains(&item.hash) {
                    return None;
                }
                names.push(item.hash);
                hashes.clear();
                let mut records = in_place.profile.records_of(&item);
                while records.read_record(&mut record).ok()? {
                    if hashes.len() == MOST || hashes.contains(&record.func_hash) {
                        return None;
                    }
                    hashes.push(record.func_hash);
                    see(&record);
                }
                items += 1;
            }
            window.touch(next..bucket.offset());
            next = bucket.offset();
        }
        (items == table.entry_count()).then(|| in_place.clone())
    }

    /// The profile.
    pub fn profile(&self) -> &IndexedProfile<'d> {
        &self.profile
    }

    /// The kind of the profile.
    pub fn kind(&self) -> InstrKind {
        self.profile.records().kind()
    }

    /// Calls `see` with each record, in the order of the file.
    pub fn each(&self, mut see: impl FnMut(&Record)) {
        let mut record = Record::default();
        self.each_item(|item| {
            let mut records = self.profile.records_of(item);
            while let Ok(true) = records.read_record(&mut record) {
                see(&record);
            }
        });
    }

    /// Calls `see` with the records of each function, in the order of the file.
    pub fn each_function(&self, mut see: impl FnMut(&[Record])) {
        let mut records = FunctionRecords::default();
        self.each_item(|item| see(records.read(self, item)));
    }

    /// Calls `see` with the name of each function, in the order of the file.
    pub fn each_name(&self, mut see: impl FnMut(&[u8], NameRef)) {
        self.each_item(|item| see(item.key, NameRef(item.hash)));
    }

    fn each_item(&self, mut see: impl FnMut(&Entry<'d>)) {
        let table = self.profile.table();
        let mut window = self.window();
        for number in 0..table.bucket_count() {
            // All of this was checked, so errors are those of a file that another program has changed.
            let Ok(Some(mut bucket)) = table.bucket(number) else {
                continue;
            };
            while let Ok(Some(item)) = bucket.next_item() {
                see(&item);
            }
            window.touch(bucket.start()..bucket.offset());
        }
    }

    /// The name with this hash.
    pub fn name(&self, name: NameRef) -> Option<&'d [u8]> {
        Some(self.find(name)?.key)
    }

    /// Finds functions by name. Calls are fastest in the order of the file, or that of another profile.
    pub fn lookup(&self) -> InPlaceLookup<'_, 'd> {
        InPlaceLookup {
            in_place: self,
            window: self.window(),
            record: Record::default(),
            records: FunctionRecords::default(),
            sorted: false,
        }
    }

    fn window(&self) -> Window<'d> {
        Window {
            release: self.release,
            bytes: 0..0,
        }
    }

    fn find(&self, name: NameRef) -> Option<Entry<'d>> {
        self.profile.table().find_hash(name.0)
    }
}

/// The records of one function. The memory of earlier functions is used again.
#[derive(Default)]
struct FunctionRecords(Vec<Record>);

impl FunctionRecords {
    fn read<'d>(&mut self, of: &InPlace<'d>, item: &Entry<'d>) -> &[Record] {
        let mut records = of.profile.records_of(item);
        let mut count = 0;
        loop {
            if count == self.0.len() {
                self.0.push(Record::default());
            }
            match self.0.get_mut(count).map(|one| records.read_record(one)) {
                Some(Ok(true)) => count += 1,
                _ => return self.0.get(..count).unwrap_or_default(),
            }
        }
    }
}

/// Mapped bytes that are given back when there are many of them.
struct Window<'d> {
    release: Option<&'d Release<'d>>,
    bytes: Range<u64>,
}

impl Window<'_> {
    #[inline]
    fn touch(&mut self, bytes: Range<u64>) {
        if self.bytes.is_empty() {
            self.bytes = bytes;
            return;
        }
        self.bytes.start = self.bytes.start.min(bytes.start);
        self.bytes.end = self.bytes.end.max(bytes.end);
        if self.bytes.end - self.bytes.start >= WINDOW {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if let Some(release) = self.release {
            release(bytes);
        }
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Finds the functions of an [`InPlace`] profile.
pub struct InPlaceLookup<'p, 'd> {
    in_place: &'p InPlace<'d>,
    window: Window<'d>,
    record: Record,
    records: FunctionRecords,
    sorted: bool,
}

impl fmt::Debug for InPlaceLookup<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InPlaceLookup").finish_non_exhaustive()
    }
}

impl InPlaceLookup<'_, '_> {
    /// Sets whether the values of each site of a record are sorted as LLVM's writer does: the most frequent ones first.
    #[must_use]
    pub fn sorted(mut self, sorted: bool) -> Self {
        self.sorted = sorted;
        self
    }

    /// All records of the function of this name, in the order of the file.
    pub fn function(&mut self, name: NameRef) -> Option<&[Record]> {
        let item = self.in_place.find(name)?;
        self.window
            .touch(item.offset..item.data_offset + item.data.len() as u64);
        Some(self.records.read(self.in_place, &item))
    }
}

impl FunctionLookup for InPlaceLookup<'_, '_> {
    fn has(&mut self, name: NameRef) -> bool {
        self.in_place.find(name).is_some()
    }

    fn record(&mut self, name: NameRef, func_hash: FuncHash) -> Option<RecordRef<'_>> {
        let item = self.in_place.find(name)?;
        self.window
            .touch(item.offset..item.data_offset + item.data.len() as u64);
        let mut records = self.in_place.profile.records_of(&item);
        while records.read_record(&mut self.record).ok()? {
            if self.record.func_hash == func_hash {
                if self.sorted {
                    for (_, kind) in self.record.values.kinds_mut() {
                        kind.sites_mut()
                            .for_each(|site| site.sort_by_key(|entry| Reverse(entry.count)));
                    }
                }
                return Some(self.record.as_ref(0));
            }
        }
        None
    }

    fn counts(&mut self, name: NameRef) -> f64 {
        let mut sum = 0.0;
        if let Some(item) = self.in_place.find(name) {
            let mut records = self.in_place.profile.records_of(&item);
            while let Ok(true) = records.read_record(&mut self.record) {
                let record = &self.record;
                sum += CountSums::of_function(&record.counts, Some(&record.values)).counts;
            }
        }
        sum
    }
}
