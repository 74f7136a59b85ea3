//! A store whose ledger was read: what the parts of the ledger hold, and what else is there.
use super::ledger::{FOLDER, MOST_BYTES};
use super::{
    BATCH, FoldError, FoldOptions, FoldOutcome, LEDGER_NAME, Ledger, LedgerRow, MOST_TRIES,
    PartName, Stray, StrayKind,
};
use crate::options::MergeOptions;
use crate::part::{Merger, StoredInputs, find_inputs};
use profkit_files::{ObjectVersion, Store, StoredObject};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use twox_hash::XxHash3_64;

/// The number of bytes at the beginning of a part that are read to find its inputs. Mostly they are among them.
const FRONT: u64 = 64 << 10;
/// The number of parts that are read at a time.
const READERS: usize = 16;
/// How old an object must be that a compaction removes although another process may be about to use it.
const GRACE: Duration = Duration::from_secs(24 * 3600);

/// What is known of an input of the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The digest of its content; 0 if nobody has read it.
    pub(super) content: u64,
    /// The bucket of the part that has it.
    pub(super) bucket: super::Bucket,
}

pub(super) struct Opened<'a> {
    store: &'a dyn Store,
    pub(super) ledger: Ledger,
    /// The ledger as it was read.
    before: Ledger,
    version: Option<ObjectVersion>,
    /// Whether the ledger must be written even if it names the same parts.
    rewrite: bool,
    /// What is among the parts and not in the ledger.
    others: Vec<StoredObject>,
    pub(super) repaired: Vec<String>,
    now: SystemTime,
}

/// A part that the ledger does not name.
pub(super) struct StrayPart {
    name: PartName,
    row: LedgerRow,
    inputs: StoredInputs,
}

impl<'a> Opened<'a> {
    /// Reads the ledger, checks that its parts are there, and works with them, again and again until nothing that another
    /// process does comes between. `work` returns `None` if its changes came too late.
    pub(super) fn work<T>(
        store: &'a dyn Store,
        options: &FoldOptions,
        mut work: impl FnMut(&mut Self, u32) -> Result<Option<T>, FoldError>,
    ) -> Result<T, FoldError> {
        for tries in 0..MOST_TRIES {
            options.check_cancelled()?;
            let mut opened = Self::read(store, options)?;
            let done = opened
                .check(options)
                .and_then(|()| work(&mut opened, tries));
            match done {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {}
                // A compaction has replaced the part since the ledger was read.
                Err(FoldError::MissingPart { .. }) if opened.is_replaced()? => {}
                Err(error) => return Err(error),
            }
        }
        Err(FoldError::Busy {
            name: store.name_of(LEDGER_NAME),
            tries: MOST_TRIES,
        })
    }

    fn read(store: &'a dyn Store, options: &FoldOptions) -> Result<Self, FoldError> {
        let ledger_name = store.name_of(LEDGER_NAME);
        let read = store.read(LEDGER_NAME, MOST_BYTES);
        let read = read.map_err(FoldError::ledger(ledger_name.clone()))?;
        let mut repaired = Vec::new();
        let mut rewrite = false;
        let (ledger, version) = match read {
            None => (Ledger::default(), None),
            Some((bytes, version)) => match Ledger::decode(&ledger_name, &bytes) {
                Err(FoldError::Ledger { name, line, what }) if options.repair => {
                    repaired.push(FoldError::Ledger { name, line, what }.to_string());
                    rewrite = true;
                    (Ledger::default(), Some(version))
                }
                ledger => (ledger?, Some(version)),
            },
        };
        Ok(Opened {
            store,
            before: ledger.clone(),
            ledger,
            version,
            rewrite,
            others: Vec::new(),
            repaired,
            now: options.now,
        })
    }

    /// Compares the ledger with what is there.
    fn check(&mut self, options: &FoldOptions) -> Result<(), FoldError> {
        let listed = self.store.list(FOLDER);
        let listed = listed.map_err(FoldError::store(self.store.name_of(FOLDER), "listed"))?;
        let mut sizes: FxHashMap<PartName, u64> = FxHashMap::default();
        for object in listed {
            match PartName::of_object(&object.name) {
                Some(name) if self.ledger.parts.contains_key(&name) => {
                    sizes.insert(name, object.size);
                }
                _ => self.others.push(object),
            }
        }
        let mut off = Vec::new();
        for (name, row) in &self.ledger.parts {
            let fault = match sizes.get(name) {
                None => Err(self.missing(name)),
                Some(&size) if size != row.bytes => {
                    let what = format!("it has {size} bytes, and the ledger says {}", row.bytes);
                    Err(self.damaged(name, what))
                }
                // A repair reads everything; otherwise who needs a part checks it.
                Some(_) if options.repair => self.part(name).map(drop),
                Some(_) => Ok(()),
            };
            match fault {
                Ok(()) => {}
                Err(FoldError::MissingPart { .. }) if self.is_replaced()? => return fault,
                Err(fault @ (FoldError::MissingPart { .. } | FoldError::DamagedPart { .. }))
                    if options.repair =>
                {
                    off.push((name.clone(), fault.to_string()));
                }
                Err(fault) => return Err(fault),
            }
        }
        for (name, fault) in off {
            self.ledger.parts.remove(&name);
            self.repaired.push(fault);
        }
        Ok(())
    }

    fn missing(&self, name: &PartName) -> FoldError {
        FoldError::MissingPart {
            name: self.store.name_of(&name.object()),
            inputs: self.ledger.parts.get(name).map_or(0, |row| row.inputs),
        }
    }

    fn damaged(&self, name: &PartName, what: String) -> FoldError {
        let name = self.store.name_of(&name.object());
        FoldError::DamagedPart { name, what }
    }

    /// Whether another process has replaced the ledger since it was read.
    fn is_replaced(&self) -> Result<bool, FoldError> {
        let read = self.store.read(LEDGER_NAME, MOST_BYTES);
        let read = read.map_err(FoldError::ledger(self.store.name_of(LEDGER_NAME)))?;
        Ok(read.map(|(_, version)| version) != self.version)
    }

    /// The bytes of a part of the ledger.
    pub(super) fn part(&self, name: &PartName) -> Result<Vec<u8>, FoldError> {
        let object = name.object();
        let read = self.store.read(&object, u64::MAX);
        let read = read.map_err(FoldError::store(self.store.name_of(&object), "read"))?;
        let Some((bytes, _)) = read else {
            return Err(self.missing(name));
        };
        let digest = XxHash3_64::oneshot(&bytes);
        match digest == name.digest {
            true => Ok(bytes),
            false => Err(self.damaged(name, format!("the digest of its bytes is {digest:016x}"))),
        }
    }

    /// The inputs of a part.
    fn inputs_of(&self, part: &PartName) -> Result<StoredInputs, FoldError> {
        let object = part.object();
        let read = |range: Range<u64>| match self.store.read_range(&object, range) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.missing(part)),
            read => read.map_err(FoldError::store(self.store.name_of(&object), "read")),
        };
        let damaged = |error: profkit_data::Error| self.damaged(part, error.to_string());
        let front = read(0..FRONT)?;
        let row = find_inputs(&front).map_err(damaged)?;
        let range = row.range();
        let in_front = || {
            let (start, end) = (range.start.try_into().ok()?, range.end.try_into().ok()?);
            front.get::<Range<usize>>(start..end)
        };
        match in_front() {
            Some(bytes) => row.inputs(bytes).map_err(damaged),
            None => row.inputs(&read(range.clone())?).map_err(damaged),
        }
    }

    /// The inputs of several parts, in their order. Object stores take their time, so that several are asked at once.
    fn inputs_of_all(&self, parts: &[&PartName]) -> Vec<Result<StoredInputs, FoldError>> {
        let next = Mutex::new(parts.iter().enumerate());
        let results = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for _ in 0..READERS.min(parts.len()) {
                scope.spawn(|| {
                    loop {
                        let one = next.lock().ok().and_then(|mut next| next.next());
                        let Some((index, part)) = one else { break };
                        let result = self.inputs_of(part);
                        if let Ok(mut results) = results.lock() {
                            results.insert(index, result);
                        }
                    }
                });
            }
        });
        let results = results.into_inner().unwrap_or_default();
        results.into_values().collect()
    }

    /// Reads the parts that the ledger does not name, and adds the ids of their inputs to those that are looked for.
    /// Reports the objects that are no such parts.
    pub(super) fn strays(
        &self,
        wanted: &mut FxHashSet<u64>,
        reported: &mut Vec<Stray>,
    ) -> Result<Vec<StrayPart>, FoldError> {
        let mut strays = Vec::new();
        for object in &self.others {
            let mut report = |what: String| {
                reported.push(Stray {
                    name: self.store.name_of(&object.name),
                    what: StrayKind::Other(what),
                });
            };
            let Some(name) = PartName::of_object(&object.name) else {
                report("its name is not that of a part".to_owned());
                continue;
            };
            let bytes = match self.part(&name) {
                // Removed since the store was listed.
                Err(FoldError::MissingPart { .. }) => continue,
                Err(FoldError::DamagedPart { what, .. }) => {
                    report(what);
                    continue;
                }
                bytes => bytes?,
            };
            let inputs = match StoredInputs::of_part(&bytes) {
                Ok(Some(inputs)) => inputs,
                Ok(None) => {
                    report("it was made with other options".to_owned());
                    continue;
                }
                Err(error) => {
                    report(error.to_string());
                    continue;
                }
            };
            wanted.extend(inputs.ids());
            let row = LedgerRow {
                inputs: inputs.len() as u64,
                bytes: bytes.len() as u64,
            };
            strays.push(StrayPart { name, row, inputs });
        }
        Ok(strays)
    }

    /// Those of the ids that parts of the ledger have. Memory grows with the ids that are asked for, and with the largest
    /// parts.
    pub(super) fn known(
        &self,
        wanted: &FxHashSet<u64>,
    ) -> Result<FxHashMap<u64, Known>, FoldError> {
        let mut known = FxHashMap::default();
        if wanted.is_empty() {
            return Ok(known);
        }
        let names: Vec<&PartName> = self.ledger.parts.keys().collect();
        for names in names.chunks(READERS) {
            for (name, inputs) in names.iter().zip(self.inputs_of_all(names)) {
                let inputs = inputs?;
                let found = inputs.contents().filter(|(id, _)| wanted.contains(id));
                known.extend(found.map(|(id, content)| {
                    let bucket = name.bucket;
                    (id, Known { content, bucket })
                }));
            }
        }
        Ok(known)
    }

    /// Puts the strays into the ledger that have new inputs only.
    pub(super) fn adopt(
        &mut self,
        mut strays: Vec<StrayPart>,
        known: &mut FxHashMap<u64, Known>,
        outcome: &mut FoldOutcome,
    ) {
        // A sum comes before the parts that it was made of.
        strays.sort_by(|a, b| {
            let fewer = Reverse(a.row.inputs).cmp(&Reverse(b.row.inputs));
            fewer.then_with(|| a.name.cmp(&b.name))
        });
        for StrayPart { name, row, inputs } in strays {
            let there = inputs.ids().filter(|id| known.contains_key(id)).count();
            if there > 0 || inputs.len() == 0 {
                outcome.strays.push(Stray {
                    name: self.store.name_of(&name.object()),
                    what: match there == inputs.len() {
                        true => StrayKind::Leftover,
                        false => StrayKind::Overlap,
                    },
                });
                continue;
            }
            let bucket = name.bucket;
            let new = inputs.contents();
            known.extend(new.map(|(id, content)| (id, Known { content, bucket })));
            self.ledger.parts.insert(name.clone(), row);
            outcome.adopted.push((name, row));
        }
    }

    /// Writes a part, unless it is there, and puts it into the ledger that will be written.
    pub(super) fn add(
        &mut self,
        name: &PartName,
        bytes: &[u8],
        inputs: u64,
    ) -> Result<LedgerRow, FoldError> {
        let object = name.object();
        let put = || {
            if self.store.create(&object, bytes)? {
                return Ok(());
            }
            // One that was damaged is written again.
            match self.store.read(&object, u64::MAX)? {
                Some((there, version)) if there != bytes => {
                    self.store.swap(&object, bytes, Some(&version)).map(drop)
                }
                _ => Ok(()),
            }
        };
        put().map_err(FoldError::store(self.store.name_of(&object), "written"))?;
        let bytes = bytes.len() as u64;
        let row = LedgerRow { inputs, bytes };
        self.ledger.parts.insert(name.clone(), row);
        Ok(row)
    }

    /// Replaces the ledger if it has changed. `false` if another process did since it was read.
    pub(super) fn swap(&self) -> Result<bool, FoldError> {
        if self.ledger == self.before && !self.rewrite {
            return Ok(true);
        }
        let bytes = self.ledger.encode();
        let name = self.store.name_of(LEDGER_NAME);
        if bytes.len() as u64 > MOST_BYTES {
            let parts = self.ledger.parts.len() as u64;
            return Err(FoldError::TooManyParts { name, parts });
        }
        let done = self.store.swap(LEDGER_NAME, &bytes, self.version.as_ref());
        done.map_err(FoldError::store(name, "written"))
    }

    /// Removes the part, unless the ledger names it, if parts of the ledger have some of its inputs. Then no process can put
    /// it into the ledger any more, and this one has written it for nothing.
    pub(super) fn remove_useless(&self, part: &PartName) -> Result<(), FoldError> {
        if self.ledger.parts.contains_key(part) {
            return Ok(());
        }
        let inputs = match self.inputs_of(part) {
            Err(FoldError::MissingPart { .. }) => return Ok(()),
            inputs => inputs?,
        };
        match self.known(&inputs.ids().collect())?.is_empty() {
            true => Ok(()),
            false => self.remove(&part.object()),
        }
    }

    pub(super) fn remove(&self, object: &str) -> Result<(), FoldError> {
        let removed = self.store.remove(object);
        removed.map_err(FoldError::store(self.store.name_of(object), "removed"))
    }

    /// Removes the parts whose inputs are all in parts of the ledger, and returns their number. One that is younger than a
    /// day may be the sum of another compaction that will put it into the ledger.
    pub(super) fn remove_leftovers(&self) -> Result<u64, FoldError> {
        let mut wanted = FxHashSet::default();
        let strays = self.strays(&mut wanted, &mut Vec::new())?;
        let known = self.known(&wanted)?;
        let mut removed = 0;
        for stray in strays {
            let object = stray.name.object();
            let listed = self.others.iter().find(|other| other.name == object);
            let age = listed
                .and_then(|object| object.modified)
                .and_then(|modified| self.now.duration_since(modified).ok());
            let is_old = age.is_some_and(|age| age >= GRACE);
            if is_old && stray.inputs.ids().all(|id| known.contains_key(&id)) {
                self.remove(&object)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// The sum of parts of the ledger.
    pub(super) fn sum(
        &self,
        names: &[&PartName],
        options: MergeOptions,
    ) -> Result<Merger, FoldError> {
        let mut merger = Merger::new(options)?;
        let mut batch = Vec::new();
        let mut bytes = 0;
        for (number, name) in (1..).zip(names) {
            let part = self.part(name)?;
            bytes += part.len();
            batch.push((self.store.name_of(&name.object()), part));
            if bytes >= BATCH || number == names.len() {
                merger.add(&std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
        Ok(merger)
    }
}
