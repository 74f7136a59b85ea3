//! Reads the functions of binaries, and finds a profile's functions among them.
use super::profile::{FunctionOrder, ProfileFunctions, each_function, open_profile, sample_name};
use super::shares::NewFunction;
use super::shares::is_any_missing;
use crate::faults::Faults;
use profkit_data::detect::Family;
use profkit_data::ids::{BuildId, FuncHash, NameRef};
use profkit_data::instr::InstrKind;
use profkit_data::sample::SampleName;
use profkit_data::{Error, ErrorKind, Result};
use profkit_object::binary::{BinaryFile, Image, programs_in};
use profkit_object::build_id::build_id;
use profkit_object::functions::{
    FunctionList, Origin, functions, has_debug_info, is_stripped, mip_functions, sampled_functions,
};
use profkit_object::names::{symbol_of, without_suffix, without_unique};
use profkit_object::symbolize::inlined_functions;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Whether the counts of a function in a profile could be used if the binary were compiled again with this profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Yes: a binary has a function with this name and hash. If a binary has no hash of the function, the name is
    /// enough.
    Matched,
    /// No: a binary has a function with this name, but with another hash.
    Changed,
    /// Perhaps: debug info shows that a binary has the function only inlined into other functions, so its hash is not
    /// known. A compiler uses the counts if the function still has the hash that the profile states. In sample
    /// profiles, which need no hash, such a function is [`Matched`](Self::Matched).
    Inlined,
    /// No: no binary has a function with this name.
    #[serde(rename = "gone")]
    Unknown,
    /// It cannot be said: no binary has a symbol with this name, and a binary that has neither hashes nor debug info
    /// does not show whether the function was inlined everywhere, or is gone.
    #[serde(rename = "inlined-or-gone")]
    InlinedOrGone,
}

/// A file that a profile is compared with: one binary, one architecture of a universal file, or a profile of another
/// build.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The path, as the user gave it.
    pub path: String,
    /// The build id of the binary; `None` if it has none or several.
    pub build_id: Option<BuildId>,
    /// The part of the binary from which the names of its functions were read; `None` for a profile.
    pub origin: Option<Origin>,
    /// Whether this is a profile that lists only functions that ran. Its build may have further functions.
    pub lists_only_used: bool,
    /// What the counters of an instrumented binary count, if that is known.
    pub instrumentation: Option<InstrKind>,
    /// The number of functions in the binary.
    pub functions: usize,
    /// How much of the binary's debug info was read to find functions that were inlined everywhere.
    pub debug_info: DebugInfo,
    /// Whether the binary has no symbol table, but only the names that it exports.
    pub is_stripped: bool,
    /// The errors of the file, if it is a profile. Its sound parts are compared.
    pub damage: Faults,
}

/// How much of a binary's debug info was read to find functions that were inlined everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DebugInfo {
    /// The binary has no debug info.
    Absent,
    /// The debug info was not needed: the hashes of the functions are known, or no function of the profile is missing.
    Unread,
    /// All of the debug info was read.
    Read,
    /// The debug info is damaged; the text says how. Functions that were inlined everywhere may therefore look missing.
    Damaged(String),
}

impl Binary {
    /// Whether the counters of the profile and those of this binary come from different stages of the compiler: one
    /// from the front end, the other from LLVM IR. No function hash of the profile can then be found in the binary.
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

/// The functions with one name in all binaries.
#[derive(Clone, Debug, Default)]
pub struct NamedFunctions {
    /// The different hashes of the functions with this name. A hash is `None` if only the symbol of the function is
    /// known.
    pub hashes: Vec<Option<FuncHash>>,
    /// The position of the first function with this name in the [`FunctionOrder`] that the profile has. The order is
    /// the same for the profile and the binaries, so their positions can be compared. `None` if there is no such order.
    pub position: Option<u32>,
}

impl NamedFunctions {
    fn add(&mut self, hash: Option<FuncHash>, position: Option<u32>) {
        if !self.hashes.contains(&hash) {
            self.hashes.reserve_exact(1);
            self.hashes.push(hash);
        }
        self.position = self.position.or(position);
    }
}

/// The functions of all binaries together. A profile of another build counts as a binary with the functions that the
/// profile lists.
#[derive(Debug, Default)]
pub struct BinaryFunctions {
    /// The binaries.
    pub binaries: Vec<Binary>,
    functions: FxHashMap<Vec<u8>, NamedFunctions>,
    /// The names of functions that have no symbol and are inlined, according to debug info.
    inlined: FxHashSet<Vec<u8>>,
    /// Programs and libraries in folders that were skipped, because their functions could not be read: the path and the
    /// reason.
    pub skipped: Vec<(String, Error)>,
    /// The files with functions whose hashes are not known, as long as their debug info has not been read. Each file
    /// comes with the range of its entries in `binaries`.
    without_hashes: VecDeque<(PathBuf, Range<usize>)>,
    /// For comparisons with a sample profile: the names of the binaries' functions, by the hash of the name. `None` for
    /// other profiles.
    sampled: Option<FxHashMap<NameRef, Vec<u8>>>,
    /// The family of the profile that is compared; `None` if only names are needed.
    wanted: Option<Family>,
    /// The order of the functions in the profile; `None` if there is no order.
    order: Option<FunctionOrder>,
    position: u32,
    /// Whether the names in the sample profile have the suffix `.__uniq.` of local functions. If not, this suffix is
    /// ignored in the names of the binaries, as in LLVM.
    has_unique_names: bool,
}

impl BinaryFunctions {
    /// Makes an empty set of functions for a comparison with this profile. The kind of the profile decides what is read
    /// from binaries: for a sample profile these are symbols, inlined functions and the checksums of pseudo probes.
    pub fn for_profile(profile: &ProfileFunctions) -> Self {
        BinaryFunctions {
            sampled: profile.samples.is_some().then(FxHashMap::default),
            wanted: Some(profile.family()),
            order: profile.order,
            has_unique_names: profile.samples.is_some()
                && profile
                    .functions
                    .keys()
                    .any(|name| without_unique(name) != name),
            ..BinaryFunctions::default()
        }
    }

    /// Whether this set of functions can be compared with this profile: what was read from the binaries must be what
    /// the profile needs.
    pub fn are_for(&self, profile: &ProfileFunctions) -> bool {
        let other = BinaryFunctions::for_profile(profile);
        let key = |it: &BinaryFunctions| {
            let is_sampled = it.sampled.is_some();
            (is_sampled, it.wanted, it.order, it.has_unique_names)
        };
        key(self) == key(&other)
    }

    /// Makes an empty set of functions for callers that need only names: the names of symbols, inlined functions and
    /// pseudo probes.
    pub fn for_names() -> Self {
        BinaryFunctions {
            sampled: Some(FxHashMap::default()),
            ..BinaryFunctions::default()
        }
    }

    /// Opens a binary, or a profile of the same family, and adds its functions. If the file has several architectures,
    /// the functions of all architectures are added. If the path is a folder, all programs and libraries in it are
    /// added; symbolic links to folders are not followed.
    ///
    /// # Errors
    /// If the file cannot be read, or is neither a binary nor a profile. If it is a binary without profile sections and
    /// without symbols, or a profile of another kind or without functions. If a folder holds no program or library.
    pub fn open(&mut self, path: &Path) -> Result<()> {
        if !path.is_dir() {
            return self.open_file(path);
        }
        let before = self.binaries.len() + self.skipped.len();
        for file in programs_in(path).map_err(|error| unreadable(&error))? {
            if let Err(error) = self.open_file(&file) {
                self.skipped.push((profkit_data::path_text(&file), error));
            }
        }
        if self.binaries.len() + self.skipped.len() == before {
            let error = ErrorKind::CannotCorrelate.error("the folder holds no program or library");
            return Err(error.with_hint(
                "give the folder into which the build writes its programs and libraries",
            ));
        }
        Ok(())
    }

    /// Searches debug info for the functions of the profile that no binary has: they may have been inlined everywhere.
    /// Debug info is read only if a function is missing. The method can be called for several profiles.
    pub fn find_inlined(&mut self, profile: &ProfileFunctions) {
        while is_any_missing(profile, self)
            && let Some((path, place)) = self.without_hashes.pop_front()
        {
            let Ok(file) = BinaryFile::open(&path) else {
                continue;
            };
            for image in file.images().iter().flatten() {
                let is_there = has_debug_info(image);
                let state = match inlined_functions(image) {
                    Ok(_) if !is_there => DebugInfo::Absent,
                    Ok(found) => {
                        for mut name in found.names {
                            if self.sampled.is_some() {
                                name.truncate(without_suffix(&name).len());
                                self.add_guid(&name);
                            }
                            self.inlined.insert(name);
                        }
                        match found.damaged_units {
                            0 => DebugInfo::Read,
                            1 => DebugInfo::Damaged("a compile unit is damaged".to_owned()),
                            units => {
                                DebugInfo::Damaged(format!("{units} compile units are damaged"))
                            }
                        }
                    }
                    Err(error) => DebugInfo::Damaged(error.to_string()),
                };
                // A universal file has an entry in `binaries` for each of its architectures. If the debug info of one
                // architecture is damaged, all these entries get the warning.
                for binary in self.binaries.get_mut(place.clone()).unwrap_or_default() {
                    if !matches!(binary.debug_info, DebugInfo::Damaged(_)) {
                        binary.debug_info = state.clone();
                    }
                }
            }
        }
    }

    fn open_file(&mut self, path: &Path) -> Result<()> {
        let file = BinaryFile::open(path).map_err(|error| unreadable(&error))?;
        let images = match file.images() {
            Err(error) if error.kind() == ErrorKind::UnrecognizedFormat => {
                return self.open_profile(path, error);
            }
            images => images?,
        };
        let first = self.binaries.len();
        for image in &images {
            self.add_image(path, image)?;
        }
        let place = first..self.binaries.len();
        let added = self.binaries.get(first..).unwrap_or_default();
        let by_name = |it: &Binary| matches!(it.origin, Some(Origin::Symbols | Origin::Probes));
        if added.iter().any(by_name) {
            self.without_hashes.push_back((path.to_owned(), place));
        }
        Ok(())
    }

    /// Opens a file that is not a binary as a profile. If the file is no profile either, returns `error`, the error of
    /// reading it as a binary.
    fn open_profile(&mut self, path: &Path, error: Error) -> Result<()> {
        let (wanted, family, profile) = match (self.wanted, open_profile(path)) {
            (_, None) => return Err(error),
            (None, Some((family, _))) => {
                let text = "this is a profile, not a program or library";
                return Err(Error::new(error.kind(), text).found(family.profile()));
            }
            (Some(wanted), Some((family, profile))) => (wanted, family, profile),
        };
        if family != wanted {
            let (this, other) = (family.profile(), wanted.profile());
            let text = format!(
                "this profile and the other one are of different kinds: {this} and {other}"
            );
            return Err(ErrorKind::Unsupported.error(text).with_hint(
                "give two profiles of the same kind, or one profile and the program that it is for",
            ));
        }
        self.add_profile(profkit_data::path_text(path), profile?);
        Ok(())
    }

    /// Adds the functions of a profile.
    pub fn add_profile(&mut self, path: String, profile: ProfileFunctions) {
        let build_id = match profile.build_ids.as_slice() {
            [id] => Some(id.clone()),
            _ => None,
        };
        self.binaries.push(Binary {
            path,
            build_id,
            origin: None,
            lists_only_used: profile.lists_only_used(),
            instrumentation: Some(profile.instrumentation),
            functions: profile.functions.len(),
            debug_info: DebugInfo::Absent,
            is_stripped: false,
            damage: profile.damage,
        });
        if let (Some(samples), Some(guids)) = (&profile.samples, &mut self.sampled) {
            each_function(samples, |one| {
                let name = samples.names.get(one.name);
                guids
                    .entry(name.guid())
                    .or_insert_with(|| sample_name(name));
            });
            for name in &samples.symbols {
                let known = guids
                    .entry(NameRef::of(name))
                    .or_insert_with(|| name.to_vec());
                if !profile.functions.contains_key(known) {
                    self.functions
                        .entry(known.clone())
                        .or_default()
                        .add(None, None);
                }
            }
        }
        let has_order = profile.order.is_some() && profile.order == self.order;
        for (mut name, known) in profile.functions {
            if self.sampled.is_some() {
                name.truncate(without_suffix(&name).len());
            }
            let named = self.functions.entry(name).or_default();
            for known in known {
                named.add(known.hash, known.position.filter(|_| has_order));
            }
        }
    }

    fn add_image(&mut self, path: &Path, image: &Image<'_>) -> Result<()> {
        let list = match self.wanted {
            _ if self.sampled.is_some() => sampled_functions(image)?,
            Some(Family::Mip) => mip_functions(image, path)?,
            _ => functions(image, path)?,
        };
        let id = build_id(image)?;
        // A binary without hashes is not added if a binary with the same build id and with hashes was added before.
        // Otherwise a function that has changed would match by its name alone.
        let known =
            |it: &Binary| it.build_id == id && !matches!(it.origin, None | Some(Origin::Symbols));
        let is_copy = id.is_some() && self.binaries.iter().any(known);
        if !is_copy || list.origin != Origin::Symbols {
            self.add(profkit_data::path_text(path), id, list);
            if let Some(binary) = self.binaries.last_mut()
                && !has_debug_info(image)
            {
                binary.debug_info = DebugInfo::Absent;
                binary.is_stripped = binary.origin == Some(Origin::Symbols) && is_stripped(image);
            }
        }
        Ok(())
    }

    /// Adds the functions of a binary.
    pub fn add(&mut self, path: String, build_id: Option<BuildId>, list: FunctionList) {
        self.binaries.push(Binary {
            path,
            build_id,
            origin: Some(list.origin),
            lists_only_used: false,
            instrumentation: list.instrumentation,
            functions: list.functions.len(),
            debug_info: DebugInfo::Unread,
            is_stripped: false,
            damage: Faults::default(),
        });
        let has_order = self.order == Some(FunctionOrder::File) && list.origin != Origin::Symbols;
        for function in list.functions {
            self.add_guid(&function.name);
            let named = self.functions.entry(function.name).or_default();
            named.add(function.hash, has_order.then_some(self.position));
            self.position = self.position.saturating_add(1);
        }
    }

    /// Stores a function of a binary under each hash that a sample profile may hold in place of its name. Does nothing
    /// for other profiles.
    fn add_guid(&mut self, name: &[u8]) {
        let Some(guids) = &mut self.sampled else {
            return;
        };
        guids.insert(NameRef::of(name), name.to_vec());
        let short = without_unique(name);
        if short != name && !self.has_unique_names {
            guids
                .entry(NameRef::of(short))
                .or_insert_with(|| name.to_vec());
        }
    }

    /// Whether a function that was inlined everywhere would look missing: a binary has neither hashes, nor checksums of
    /// pseudo probes, nor debug info that can be read. Functions of MIP profiles are those that were not inlined, so
    /// only a stripped binary hides some.
    pub fn hides_functions(&self) -> bool {
        self.binaries.iter().any(|binary| {
            let is_unread = matches!(binary.debug_info, DebugInfo::Absent | DebugInfo::Damaged(_));
            let is_hidden = binary.is_stripped || self.wanted != Some(Family::Mip);
            binary.origin == Some(Origin::Symbols) && is_unread && is_hidden
        })
    }

    /// All functions of the binaries, with their hashes.
    pub fn functions(&self) -> impl Iterator<Item = (&[u8], &NamedFunctions)> {
        self.functions
            .iter()
            .map(|(name, named)| (name.as_slice(), named))
    }

    /// Whether the profile has a function of these binaries, under the same name and with the same hash.
    pub fn are_in(&self, profile: &ProfileFunctions) -> bool {
        self.functions.iter().any(|(name, named)| {
            let mut known = profile.functions.get(name).into_iter().flatten();
            known.any(|one| fits(&named.hashes, one.hash))
        })
    }

    /// Finds the functions of the binaries to which a function name in the profile refers. Returns their name in the
    /// binaries and their hashes; `None` if there are no such functions. A local function has the name `a.c;f` in the
    /// profile, or `a.c:f` in a profile of a release before LLVM 17. A binary with hashes has it as `a.c;f`, a binary
    /// without hashes only as the symbol `f`.
    pub(super) fn named(&self, name: &[u8]) -> Option<NewFunction<'_>> {
        let get = |name: &[u8]| self.functions.get_key_value(name);
        let symbol = symbol_of(name);
        let of_symbol = || get(symbol).filter(|(_, named)| named.hashes.contains(&None));
        let of_older = || {
            let end = name.len().checked_sub(symbol.len() + 1)?;
            let file = name.get(..end)?;
            get(&[file, b";", symbol].concat())
        };
        let (name, named) = get(name).or_else(of_symbol).or_else(of_older)?;
        Some((name, named))
    }

    /// Returns whether the counts of a function of the profile could be used for these binaries.
    pub fn outcome_of(&self, name: &[u8], hash: Option<FuncHash>) -> Outcome {
        match self.named(name) {
            Some((_, named)) if fits(&named.hashes, hash) => Outcome::Matched,
            Some(_) => Outcome::Changed,
            None if self.inlined.contains(name) || self.inlined.contains(symbol_of(name)) => {
                Outcome::Inlined
            }
            None => Outcome::Unknown,
        }
    }

    /// Returns whether the counts of a function of a sample profile could be used for these binaries. `checksum` is 0
    /// if the profile has none.
    pub fn outcome_of_sample(&self, name: SampleName<'_>, checksum: u64) -> Outcome {
        let name = self.sampled_name(name);
        match name.and_then(|name| self.functions.get(name)) {
            Some(named) if fits(&named.hashes, checksum_of(checksum)) => Outcome::Matched,
            Some(_) => Outcome::Changed,
            None if name.is_some_and(|name| self.inlined.contains(name)) => Outcome::Matched,
            None => Outcome::Unknown,
        }
    }

    /// The name that the binaries have for a function of a sample profile; `None` if no binary has the function.
    pub(super) fn sampled_name<'s>(&'s self, name: SampleName<'s>) -> Option<&'s [u8]> {
        let known = |name: &[u8]| self.functions.contains_key(name) || self.inlined.contains(name);
        match name {
            SampleName::Text(text) if known(without_suffix(text)) => Some(without_suffix(text)),
            name => {
                let guid = match name {
                    SampleName::Text(text) => NameRef::of(without_suffix(text)),
                    SampleName::Guid(guid) => guid,
                };
                let names = self.sampled.as_ref();
                names.and_then(|names| names.get(&guid)).map(Vec::as_slice)
            }
        }
    }
}

/// Whether a compiler can use the counts of a function with this hash. `hashes` are the hashes that the binaries have
/// for the same name. A hash that is not known fits every hash.
pub(super) fn fits(hashes: &[Option<FuncHash>], hash: Option<FuncHash>) -> bool {
    hash.is_none() || hashes.contains(&hash) || hashes.contains(&None)
}

/// The checksum of a function in a sample profile as a hash; `None` for 0, which means that the function has no
/// checksum.
pub(super) fn checksum_of(checksum: u64) -> Option<FuncHash> {
    (checksum != 0).then_some(FuncHash(checksum))
}

#[cold]
fn unreadable(error: &io::Error) -> Error {
    let reason = profkit_merge::files::system_text(error);
    ErrorKind::CannotCorrelate.error(format!("cannot be read: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_object::functions::Function;

    #[test]
    fn local_functions_are_found_by_their_symbol() {
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
        comparison.inlined.insert(b"i".to_vec());
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
        assert_eq!(outcome("x.c;i", 1), Outcome::Inlined);
        assert_eq!(comparison.outcome_of(b"f", None), Outcome::Matched);
        // A binary with hashes also has the whole names of local functions, so `x.c;f` in the profile is not the
        // function `f` of the binary.
        assert_eq!(outcome("x.c;f", 1), Outcome::Unknown);
    }

    #[test]
    fn suffixes_of_local_functions_count_only_if_the_profile_has_them() {
        let outcome = |profile: &str, name: &str| {
            let data = format!("{profile}:10:1\n 1: 10\n");
            let profile = ProfileFunctions::parse(data.as_bytes()).unwrap();
            let mut binaries = BinaryFunctions::for_profile(&profile);
            let function = |name: &str| Function {
                name: name.into(),
                hash: None,
            };
            let list = FunctionList {
                origin: Origin::Symbols,
                instrumentation: None,
                functions: vec![function("work.__uniq.123"), function("main")],
            };
            binaries.add("app".to_owned(), None, list);
            binaries.outcome_of_sample(SampleName::Text(name.as_bytes()), 0)
        };
        assert_eq!(outcome("work", "work"), Outcome::Matched);
        assert_eq!(outcome("work", "work.llvm.7"), Outcome::Matched);
        assert_eq!(outcome("f.__uniq.1", "work"), Outcome::Unknown);
        assert_eq!(outcome("f.__uniq.1", "work.__uniq.123"), Outcome::Matched);
        assert_eq!(outcome("main", "main.part.0"), Outcome::Matched);
    }

    #[test]
    fn names_of_local_functions_by_older_compilers_are_found() {
        let profile = ProfileFunctions::parse(b"a.c:f\n1\n1\n10\n").unwrap();
        let mut binaries = BinaryFunctions::for_profile(&profile);
        let functions = vec![Function {
            name: b"a.c;f".to_vec(),
            hash: Some(FuncHash(1)),
        }];
        let list = FunctionList {
            origin: Origin::Sections,
            instrumentation: None,
            functions,
        };
        binaries.add("app".to_owned(), None, list);
        let shares = super::super::MatchShares::new(&profile, &binaries);
        assert_eq!((shares.counts.matched, shares.functions.matched), (10, 1));
    }
}
