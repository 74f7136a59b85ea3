//! Reads the functions of binaries, and finds those of a profile among them.
use super::profile::{ProfileFunctions, is_profile};
use profkit_data::ids::{BuildId, FuncHash};
use profkit_data::instr::InstrKind;
use profkit_data::{Error, ErrorKind, Result};
use profkit_object::binary::{BinaryFile, Image};
use profkit_object::build_id::build_id;
use profkit_object::functions::{FunctionList, Origin, functions};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

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
    /// What the counters of an instrumented binary count, if that is known.
    pub instrumentation: Option<InstrKind>,
    /// The number of functions in the binary.
    pub functions: usize,
}

impl Binary {
    /// Whether the compiler placed the counters of the profile in one stage and those of this binary in another: in the
    /// front end and in LLVM IR. No hash of one can then be found in the other.
    pub fn is_other_stage(&self, profile: &ProfileFunctions) -> bool {
        let stages = InstrKind::IR | InstrKind::FRONT_END;
        let stage = |kind: InstrKind| {
            [
                kind.contains(InstrKind::IR),
                kind.contains(InstrKind::FRONT_END),
            ]
        };
        self.instrumentation.is_some_and(|kind| {
            kind.intersects(stages)
                && profile.instrumentation.intersects(stages)
                && stage(kind) != stage(profile.instrumentation)
        })
    }
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
        let images = file.images().map_err(|error| match is_profile(path) {
            Some(kind) if error.kind() == ErrorKind::UnrecognizedFormat => Error::new(
                error.kind(),
                "this is a profile, not a program or library",
            )
            .found(kind.description())
            .with_hint(
                "give one profile first, then the programs and libraries that are compiled with it",
            ),
            _ => error,
        });
        for image in &images? {
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
    pub fn add(&mut self, path: String, build_id: Option<BuildId>, list: FunctionList) {
        self.binaries.push(Binary {
            path,
            build_id,
            origin: list.origin,
            instrumentation: list.instrumentation,
            functions: list.functions.len(),
        });
        for function in list.functions {
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
    use profkit_object::functions::Function;

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
        let list = FunctionList {
            origin: Origin::Sections,
            instrumentation: Some(InstrKind::IR),
            functions: list,
        };
        comparison.add("app".to_owned(), None, list);
        let of = |instrumentation| ProfileFunctions {
            instrumentation,
            ..ProfileFunctions::default()
        };
        let app = &comparison.binaries[0];
        assert!(app.is_other_stage(&of(InstrKind::FRONT_END)));
        assert!(!app.is_other_stage(&of(InstrKind::IR | InstrKind::CONTEXT_SENSITIVE)));
        assert!(!app.is_other_stage(&of(InstrKind::UNKNOWN)));
        let outcome =
            |name: &str, hash| comparison.outcome_of(name.as_bytes(), Some(FuncHash(hash)));
        assert_eq!(outcome("f", 1), Outcome::Matched);
        assert_eq!(outcome("f", 2), Outcome::Changed);
        assert_eq!(outcome("x.c;g", 7), Outcome::Matched);
        assert_eq!(outcome("h", 1), Outcome::Unknown);
        assert_eq!(comparison.outcome_of(b"f", None), Outcome::Matched);
    }
}
