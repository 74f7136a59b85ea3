//! Reads the functions of a profile and of binaries, so that they can be compared.
use crate::instr::InstrReader;
use profkit_data::detect::{FileKind, detect};
use profkit_data::ids::{BuildId, FuncHash};
use profkit_data::instr::Record;
use profkit_data::mip::{Identity, MipProfile};
use profkit_data::{Error, ErrorKind, Result};
use profkit_object::binary::{BinaryFile, Image};
use profkit_object::build_id::build_id;
use profkit_object::functions::{Function, Origin, functions};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

/// The counts of a function that has this name and this control-flow hash.
#[derive(Clone, Debug)]
pub struct Known {
    /// The control-flow hash. `None` for functions of MIP profiles: MIP profiles have signatures, which are in no
    /// binary.
    pub hash: Option<FuncHash>,
    /// The sum of the function's counts; sums above 64 bits become the largest number.
    pub count: u64,
}

/// The functions of a profile.
#[derive(Debug, Default)]
pub struct ProfileFunctions {
    /// The functions, by name.
    pub functions: FxHashMap<Vec<u8>, Vec<Known>>,
    /// The sum of all counts.
    pub total: u128,
    /// The build ids of the programs that wrote the profile, if the profile states them.
    pub build_ids: Vec<BuildId>,
}

impl ProfileFunctions {
    /// Reads the functions of an instrumentation or MIP profile. The content decides which of the two it is.
    ///
    /// # Errors
    /// If the profile is of another kind, cannot be read, or holds counters only.
    pub fn parse(data: &[u8]) -> Result<Self> {
        match detect(data) {
            kind if kind.is_mip() && kind != FileKind::MipMap => {
                MipProfile::parse(data).map(|profile| Self::of_mip(&profile))
            }
            _ => Self::read(&mut InstrReader::open(data)?),
        }
    }

    /// Reads all records. Damaged records are skipped.
    ///
    /// # Errors
    /// If the profile holds counters only.
    pub fn read(source: &mut InstrReader<'_>) -> Result<Self> {
        let mut profile = ProfileFunctions::default();
        let mut record = Record::default();
        let reader = source.source();
        loop {
            match reader.read_record(&mut record) {
                Ok(false) => {
                    // If the build ids cannot be read, they are left empty. The comparison does not need them.
                    profile.build_ids = reader.binary_ids().unwrap_or_default();
                    return Ok(profile);
                }
                Ok(true) => {
                    let counts = record.counts.iter();
                    let count = counts.fold(0u64, |sum, &n| sum.saturating_add(n));
                    profile.add(&record.name, Some(record.func_hash), count);
                }
                Err(error) if error.kind() == ErrorKind::MissingCorrelation => return Err(error),
                Err(_) if reader.can_resume() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the functions of a MIP profile. The count of a function is the number of its calls; if calls were not
    /// counted, it is the number of runs that called it.
    pub fn of_mip(mip: &MipProfile) -> Self {
        let mut profile = ProfileFunctions::default();
        for function in &mip.functions {
            let count = function.calls.max(function.called_runs);
            profile.add(&function.name, None, count);
        }
        if let Identity::BuildId(id) = &mip.identity
            && !id.0.is_empty()
        {
            profile.build_ids.push(id.clone());
        }
        profile
    }

    fn add(&mut self, name: &[u8], hash: Option<FuncHash>, count: u64) {
        let known = self.functions.entry(name.to_vec()).or_default();
        match known.iter_mut().find(|known| known.hash == hash) {
            Some(known) => known.count = known.count.saturating_add(count),
            None => known.push(Known { hash, count }),
        }
        self.total += u128::from(count);
    }
}

/// Whether a compiler that builds the binary again could use the counts of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Yes: a binary has a function with this name and hash. If a binary has no hash of the function, the name is
    /// enough.
    Matched,
    /// No: a binary has a function with this name, but with another hash.
    Changed,
    /// No: no binary has a function with this name.
    Unknown,
}

/// One binary, or one architecture of a universal file.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The path, as the user gave it.
    pub path: String,
    /// Its build id.
    pub build_id: Option<BuildId>,
    /// The part of the binary in which its functions were found.
    pub origin: Origin,
    /// The number of functions in the binary.
    pub functions: usize,
}

/// The functions of all binaries together.
#[derive(Debug, Default)]
pub struct BinaryFunctions {
    /// The binaries.
    pub binaries: Vec<Binary>,
    /// The hashes of the functions, by name. A hash is `None` if only the symbol is known.
    functions: FxHashMap<Vec<u8>, FxHashSet<Option<FuncHash>>>,
}

impl BinaryFunctions {
    /// Opens a binary and adds its functions. If the file has several architectures, the functions of all are added.
    ///
    /// # Errors
    /// If the file cannot be read, is not a binary, or has neither profile sections nor symbols.
    pub fn open(&mut self, path: &Path) -> Result<()> {
        let file = BinaryFile::open(path).map_err(|error| {
            let text = format!(
                "cannot be read: {}",
                profkit_merge::files::system_text(&error)
            );
            Error::new(ErrorKind::CannotCorrelate, text)
        })?;
        for image in &file.images()? {
            self.add_image(path, image)?;
        }
        Ok(())
    }

    fn add_image(&mut self, path: &Path, image: &Image<'_>) -> Result<()> {
        let list = functions(image, path)?;
        self.add(profkit_data::path_text(path), build_id(image)?, list);
        Ok(())
    }

    /// Adds the functions of a binary.
    pub fn add(
        &mut self,
        path: String,
        build_id: Option<BuildId>,
        (origin, list): (Origin, Vec<Function>),
    ) {
        self.binaries.push(Binary {
            path,
            build_id,
            origin,
            functions: list.len(),
        });
        for function in list {
            self.functions
                .entry(function.name)
                .or_default()
                .insert(function.hash);
        }
    }

    /// All functions of the binaries, with their hashes.
    pub fn functions(&self) -> impl Iterator<Item = (&[u8], &FxHashSet<Option<FuncHash>>)> {
        self.functions
            .iter()
            .map(|(name, hashes)| (name.as_slice(), hashes))
    }

    /// Returns whether these binaries contain a given function of the profile.
    pub fn outcome_of(&self, name: &[u8], hash: Option<FuncHash>) -> Outcome {
        let hashes = self
            .functions
            .get(name)
            .or_else(|| self.functions.get(symbol_of(name)));
        match hashes {
            Some(hashes) if hash.is_none() || hashes.contains(&hash) || hashes.contains(&None) => {
                Outcome::Matched
            }
            Some(_) => Outcome::Changed,
            None => Outcome::Unknown,
        }
    }
}

/// Returns the symbol for a function name in a profile. Names of local functions begin with the source file (`a.c;f`;
/// before LLVM 17 `a.c:f`), which is not part of the symbol.
pub fn symbol_of(name: &[u8]) -> &[u8] {
    let start = name.iter().rposition(|byte| matches!(byte, b';'));
    let start = start.or_else(|| {
        // Objective-C names contain colons that do not follow a file. Such names begin with `+` or `-`.
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
        let mut comparison = BinaryFunctions::default();
        let function = |name: &str, hash| Function {
            name: name.into(),
            hash,
        };
        let list = vec![function("f", Some(FuncHash(1))), function("g", None)];
        comparison.add("app".to_owned(), None, (Origin::Sections, list));
        let outcome =
            |name: &str, hash| comparison.outcome_of(name.as_bytes(), Some(FuncHash(hash)));
        assert_eq!(outcome("f", 1), Outcome::Matched);
        assert_eq!(outcome("f", 2), Outcome::Changed);
        assert_eq!(outcome("x.c;g", 7), Outcome::Matched);
        assert_eq!(outcome("h", 1), Outcome::Unknown);
        assert_eq!(comparison.outcome_of(b"f", None), Outcome::Matched);
    }

    #[test]
    fn functions_of_mip_profiles_have_counts_and_no_hash() {
        use profkit_data::mip::Function;
        let function = |name: &str, calls, called_runs| Function {
            name: name.into(),
            calls,
            called_runs,
            ..Function::default()
        };
        let mip = MipProfile {
            identity: Identity::BuildId(BuildId(vec![0xab])),
            functions: vec![
                function("f", 5, 2),
                function("g", 0, 3),
                function("h", 0, 0),
            ]
            .into(),
            ..MipProfile::default()
        };
        let profile = ProfileFunctions::of_mip(&mip);
        assert_eq!(profile.build_ids, [BuildId(vec![0xab])]);
        assert_eq!(profile.total, 8);
        let known = |name: &[u8]| {
            let known = profile.functions.get(name).and_then(|known| known.first());
            known.map(|known| (known.hash, known.count))
        };
        assert_eq!(known(b"f"), Some((None, 5)));
        assert_eq!(known(b"g"), Some((None, 3)));
        assert_eq!(known(b"h"), Some((None, 0)));
    }
}
