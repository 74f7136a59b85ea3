//! The accesses to global data that a MemProf section of version 4 can have (LLVM's `DataAccessProf`).
use crate::bytes::Cursor;
use crate::names::{NameList, encode_blob_zlib};
use crate::{ErrorKind, Result};
use rustc_hash::FxHashMap;

/// A piece of global data. It is a symbol, or a string literal that is known only by its hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Datum {
    /// A symbol, with its linkage name.
    Symbol(Vec<u8>),
    /// A string literal, with the hash of its content.
    Literal(u64),
}

/// A record of the accesses to one piece of global data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataRecord {
    /// The global data that was accessed.
    pub datum: Datum,
    /// The number of accesses to the global data.
    pub access_count: u64,
    /// The files and lines at which the global data is declared.
    pub locations: Vec<(Vec<u8>, u32)>,
}

/// All accesses to global data in a profile, and the global data that is known to be cold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataAccess {
    /// One record for each piece of global data whose accesses were sampled.
    pub records: Vec<DataRecord>,
    /// The symbols that occur in no sample. They are cold.
    pub cold_symbols: Vec<Vec<u8>>,
    /// The hashes of the string literals that occur in no sample. These string literals are cold.
    pub cold_hashes: Vec<u64>,
}

impl DataAccess {
    /// Whether there are no accesses and no cold data.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.cold_symbols.is_empty() && self.cold_hashes.is_empty()
    }

    /// Adds the accesses of another profile. Access counts of the same data are added up. Locations and cold data of
    /// both profiles are kept. Data that are cold in one profile but were accessed in the other are not cold in the
    /// result.
    pub fn add(&mut self, other: &DataAccess) {
        let places = self.records.iter().enumerate();
        let mut places: FxHashMap<Datum, usize> = places
            .map(|(at, record)| (record.datum.clone(), at))
            .collect();
        for record in &other.records {
            let next = self.records.len();
            let at = *places.entry(record.datum.clone()).or_insert(next);
            match self.records.get_mut(at) {
                Some(own) => {
                    own.access_count = own.access_count.saturating_add(record.access_count);
                    for location in &record.locations {
                        if !own.locations.contains(location) {
                            own.locations.push(location.clone());
                        }
                    }
                }
                None => self.records.push(record.clone()),
            }
        }
        let mut symbols: rustc_hash::FxHashSet<_> = self.cold_symbols.iter().cloned().collect();
        for symbol in &other.cold_symbols {
            if symbols.insert(symbol.clone()) {
                self.cold_symbols.push(symbol.clone());
            }
        }
        let mut hashes: rustc_hash::FxHashSet<_> = self.cold_hashes.iter().copied().collect();
        for &hash in &other.cold_hashes {
            if hashes.insert(hash) {
                self.cold_hashes.push(hash);
            }
        }
        self.cold_symbols
            .retain(|symbol| !places.contains_key(&Datum::Symbol(symbol.clone())));
        self.cold_hashes
            .retain(|&hash| !places.contains_key(&Datum::Literal(hash)));
    }

    /// The same accesses in ascending order, each once. What was accessed is not cold.
    #[must_use]
    pub fn sorted(&self) -> Self {
        let mut sorted = DataAccess::default();
        sorted.add(self);
        sorted.records.sort_by(|a, b| a.datum.cmp(&b.datum));
        for record in &mut sorted.records {
            record.locations.sort_unstable();
            record.locations.dedup();
        }
        sorted.cold_symbols.sort_unstable();
        sorted.cold_hashes.sort_unstable();
        sorted
    }

    /// Appends the accesses as a MemProf section stores them: strings, hashes of cold data, records
    /// (`DataAccessProfData::serialize`).
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut strings = StringIndex::default();
        for record in &self.records {
            if let Datum::Symbol(symbol) = &record.datum {
                strings.add(symbol);
            }
            for (file, _) in &record.locations {
                strings.add(file);
            }
        }
        for symbol in &self.cold_symbols {
            strings.add(symbol);
        }
        let word = |word: u64, out: &mut Vec<u8>| out.extend_from_slice(&word.to_le_bytes());
        word(strings.list.len() as u64, out);
        word(self.cold_symbols.len() as u64, out);
        let cold = self.cold_symbols.iter().map(Vec::as_slice);
        let all = strings.list.iter().copied().chain(cold);
        let blob = if strings.list.is_empty() {
            Vec::new()
        } else {
            encode_blob_zlib(all)
        };
        word(blob.len() as u64, out);
        out.extend_from_slice(&blob);
        out.extend((blob.len()..blob.len().next_multiple_of(8)).map(|_| 0));
        word(self.cold_hashes.len() as u64, out);
        for &hash in &self.cold_hashes {
            word(hash, out);
        }
        word(self.records.len() as u64, out);
        for record in &self.records {
            let (id, literal) = match &record.datum {
                Datum::Symbol(symbol) => (strings.index(symbol), 0),
                Datum::Literal(hash) => (*hash, 1),
            };
            word(id, out);
            out.push(literal);
            word(record.access_count, out);
            word(record.locations.len() as u64, out);
            for (file, line) in &record.locations {
                word(strings.index(file), out);
                out.extend_from_slice(&line.to_le_bytes());
            }
        }
    }

    /// Reads the accesses from a MemProf section.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] or [`ErrorKind::Malformed`] if the accesses are damaged, and the errors of
    /// decompressing the strings.
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let (named, cold) = (cursor.u64()?, cursor.u64()?);
        let len = cursor.u64()?;
        let base = cursor.offset();
        let blob = cursor.take_u64(len)?;
        cursor.take_u64(len.next_multiple_of(8) - len)?;
        let mut list = NameList::default();
        list.read_blob(blob, base)?;
        let found = list.len() as u64;
        if named.checked_add(cold).is_none_or(|sum| sum != found) {
            return Err(ErrorKind::Malformed
                .error("the number of strings differs from the number that the section states")
                .at(base)
                .found(format_args!("{found} strings"))
                .expected(format_args!(
                    "{} (accessed symbols: {named}, cold symbols: {cold})",
                    u128::from(named) + u128::from(cold)
                )));
        }
        let string = |index: u64, at: u64| {
            let index = usize::try_from(index).ok();
            let string = index.filter(|&index| (index as u64) < named);
            string
                .and_then(|index| list.get(index))
                .map(<[u8]>::to_vec)
                .ok_or_else(|| {
                    ErrorKind::Malformed
                        .error("the index of a string is out of bounds")
                        .at(at)
                        .expected(format_args!("below {named}"))
                })
        };
        let mut data = DataAccess::default();
        for index in named..named + cold {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            data.cold_symbols
                .push(list.get(index).unwrap_or_default().to_vec());
        }
        for _ in 0..cursor.u64()? {
            data.cold_hashes.push(cursor.u64()?);
        }
        for _ in 0..cursor.u64()? {
            let at = cursor.offset();
            let id = cursor.u64()?;
            let datum = match cursor.u8()? {
                0 => Datum::Symbol(string(id, at)?),
                _ => Datum::Literal(id),
            };
            let access_count = cursor.u64()?;
            let mut locations = Vec::new();
            for _ in 0..cursor.u64()? {
                let at = cursor.offset();
                let file = string(cursor.u64()?, at)?;
                locations.push((file, cursor.u32()?));
            }
            data.records.push(DataRecord {
                datum,
                access_count,
                locations,
            });
        }
        Ok(data)
    }
}

#[derive(Default)]
struct StringIndex<'a> {
    list: Vec<&'a [u8]>,
    numbers: FxHashMap<&'a [u8], u64>,
}

impl<'a> StringIndex<'a> {
    fn add(&mut self, string: &'a [u8]) {
        let next = self.list.len() as u64;
        self.numbers.entry(string).or_insert_with(|| {
            self.list.push(string);
            next
        });
    }

    fn index(&self, string: &[u8]) -> u64 {
        self.numbers.get(string).copied().unwrap_or(0)
    }
}
