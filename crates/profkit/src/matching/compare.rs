//! A profile's functions beside those of binaries.
use crate::show::source::Source;
use profkit_data::ids::FuncHash;
use profkit_data::instr::Record;
use profkit_data::{ErrorKind, Result};
use profkit_object::functions::{Function, Origin};
use rustc_hash::{FxHashMap, FxHashSet};

/// What a profile knows of a function under one hash.
#[derive(Clone, Debug)]
pub struct Known {
    /// Control-flow hash.
    pub hash: FuncHash,
    /// Sum of its counts, saturating.
    pub count: u64,
}

/// The functions of a profile.
#[derive(Debug, Default)]
pub struct Profile {
    /// By name.
    pub functions: FxHashMap<Vec<u8>, Vec<Known>>,
    /// Sum of all counts.
    pub total: u128,
}

impl Profile {
    /// Reads all records; damaged ones are passed over, as in `show`.
    ///
    /// # Errors
    /// If the profile holds counters only.
    pub fn read(source: &mut Source<'_>) -> Result<Self> {
        let mut profile = Profile::default();
        let mut record = Record::default();
        let reader = source.reader();
        loop {
            match reader.read_record(&mut record) {
                Ok(false) => return Ok(profile),
                Ok(true) => {
                    let count = record
                        .counts
                        .iter()
                        .fold(0u64, |sum, &n| sum.saturating_add(n));
                    let known = profile.functions.entry(record.name.clone()).or_default();
                    match known
                        .iter_mut()
                        .find(|known| known.hash == record.func_hash)
                    {
                        Some(known) => known.count = known.count.saturating_add(count),
                        None => known.push(Known {
                            hash: record.func_hash,
                            count,
                        }),
                    }
                    profile.total += u128::from(count);
                }
                Err(error) if error.kind() == ErrorKind::MissingCorrelation => return Err(error),
                Err(_) if reader.can_resume() => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// What becomes of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Name and hash agree, or the name where there is no hash to compare.
    Matched,
    /// The name is there with another hash.
    Changed,
    /// The name is not there.
    Unknown,
}

/// The functions of all binaries together.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Each binary with where its functions were found.
    pub binaries: Vec<(String, Origin, usize)>,
    /// By name, with the hashes; `None` where only the symbol is known.
    functions: FxHashMap<Vec<u8>, FxHashSet<Option<FuncHash>>>,
}

impl Comparison {
    /// Takes a binary's functions.
    pub fn add(&mut self, name: &str, origin: Origin, list: Vec<Function>) {
        self.binaries.push((name.to_owned(), origin, list.len()));
        for function in list {
            self.functions
                .entry(function.name)
                .or_default()
                .insert(function.hash);
        }
    }

    /// Every function of the binaries with its hashes.
    pub fn functions(&self) -> impl Iterator<Item = (&[u8], &FxHashSet<Option<FuncHash>>)> {
        self.functions
            .iter()
            .map(|(name, hashes)| (name.as_slice(), hashes))
    }

    /// What becomes of a profile's function in these binaries.
    pub fn fate_in_binaries(&self, name: &[u8], hash: FuncHash) -> Fate {
        let hashes = self
            .functions
            .get(name)
            .or_else(|| self.functions.get(symbol_of(name)));
        match hashes {
            Some(hashes) if hashes.contains(&Some(hash)) || hashes.contains(&None) => Fate::Matched,
            Some(_) => Fate::Changed,
            None => Fate::Unknown,
        }
    }
}

/// The symbol of a PGO name: local functions have their file before it (`a.c;f`, before LLVM 17 `a.c:f`).
pub fn symbol_of(name: &[u8]) -> &[u8] {
    let start = name.iter().rposition(|byte| matches!(byte, b';'));
    let start = start.or_else(|| {
        // A colon is part of Objective-C names, which begin with a sign.
        let method = name.starts_with(b"-") || name.starts_with(b"+");
        name.iter()
            .rposition(|&byte| byte == b':')
            .filter(|_| !method)
    });
    start.map_or(name, |start| name.get(start + 1..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_functions_are_found_by_their_symbol() {
        assert_eq!(symbol_of(b"src/a.c;helper"), b"helper");
        assert_eq!(symbol_of(b"a.c:helper"), b"helper");
        assert_eq!(symbol_of(b"_ZN1a1bEv"), b"_ZN1a1bEv");
        assert_eq!(symbol_of(b"-[A b:c:]"), b"-[A b:c:]");
        let mut comparison = Comparison::default();
        let function = |name: &str, hash| Function {
            name: name.into(),
            hash,
        };
        let list = vec![function("f", Some(FuncHash(1))), function("g", None)];
        comparison.add("app", Origin::Sections, list);
        let fate = |name: &str, hash| comparison.fate_in_binaries(name.as_bytes(), FuncHash(hash));
        assert_eq!(fate("f", 1), Fate::Matched);
        assert_eq!(fate("f", 2), Fate::Changed);
        assert_eq!(fate("x.c;g", 7), Fate::Matched);
        assert_eq!(fate("h", 1), Fate::Unknown);
    }
}
