//! Reads the functions of a profile, so that they can be compared with those of binaries.
use super::binary::checksum_of;
use crate::any::AnyProfile;
use crate::faults::Faults;
use crate::instr::{Form, in_place};
use crate::mip_numbers::MipNumbers;
use crate::samples::self_samples;
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::ids::{BuildId, FuncHash, NameRef};
use profkit_data::instr::overlap::records;
use profkit_data::instr::raw::RawMetadataSource;
use profkit_data::instr::{FunctionRef, InstrKind, InstrProfile, InstrReader, RecordRef};
use profkit_data::mip::{Identity, MipProfile};
use profkit_data::sample::{SampleName, SampleProfile, Samples};
use profkit_data::{Error, ErrorKind, Result};
use profkit_merge::files::Input;
use rustc_hash::FxHashMap;
use std::path::Path;

/// The counts of a function with one name and one control-flow hash. A profile may have functions of the same name with
/// different hashes.
#[derive(Clone, Debug)]
pub struct FunctionCounts {
    /// The control-flow hash; for functions of MIP profiles, the signature.
    pub hash: Option<FuncHash>,
    /// The sum of the function's counts; a sum above 64 bits becomes the largest 64-bit number.
    pub count: u64,
    /// The position of the function in the [order](ProfileFunctions::order) of the profile; `None` if the profile has
    /// no order or the function is not in it.
    pub position: Option<u32>,
}

/// An order of functions that is the same in two builds of a program, except for functions that changed between the
/// builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionOrder {
    /// The order of first calls, from the first temporal trace of a profile.
    Calls,
    /// The order in which the compiler wrote the functions. Raw profiles and the sections of binaries have this order.
    File,
}

/// The functions of a profile. [`parse`](Self::parse) reads them from the bytes of a file, raw files included;
/// [`of_instr`](Self::of_instr), [`of_samples`](Self::of_samples) and [`of_mip`](Self::of_mip) take them from a profile
/// in memory.
///
/// ```
/// use profkit_analysis::matching::ProfileFunctions;
/// use profkit_merge::{MergeOptions, merge_instr};
///
/// let run = b":ir\nmain\n1234\n2\n90\n10\n";
/// let merged = merge_instr(&[run.as_slice(), run], &MergeOptions::new())?;
/// let functions = ProfileFunctions::of_instr(&merged.profiles[0].profile);
/// assert_eq!(functions.total, 200);
/// assert_eq!(functions.functions[b"main".as_slice()][0].count, 200);
/// // The same from a file.
/// assert_eq!(ProfileFunctions::parse(run)?.total, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct ProfileFunctions {
    /// For each name, the functions of the profile with this name.
    pub functions: FxHashMap<Vec<u8>, Vec<FunctionCounts>>,
    /// The sum of all counts.
    pub total: u128,
    /// The build ids of the programs that wrote the profile. Empty if the profile states none.
    pub build_ids: Vec<BuildId>,
    /// The functions of a sample profile, with those that were inlined into them. `None` for other profiles.
    pub samples: Option<SampleProfile>,
    /// Whether the profile is a MIP profile, whose counts are numbers of calls, or numbers of runs that called the
    /// function.
    pub is_mip: bool,
    /// What the counters of the profile count. Empty for MIP profiles, and for text profiles that do not state what
    /// they count.
    pub instrumentation: InstrKind,
    /// The order of the functions; `None` if it is not known.
    pub order: Option<FunctionOrder>,
    /// The errors of the file. Its sound parts are compared.
    pub damage: Faults,
}

impl ProfileFunctions {
    /// The family of the profile.
    pub fn family(&self) -> Family {
        match self.samples {
            Some(_) => Family::Sample,
            None if self.is_mip => Family::Mip,
            None => Family::Instr,
        }
    }

    /// Whether the profile lists only functions that ran, and not all functions of the program. This is so for sparse
    /// profiles, and for sample profiles without a symbol list.
    pub fn lists_only_used(&self) -> bool {
        match &self.samples {
            Some(samples) => samples.symbols.is_empty(),
            None => self
                .functions
                .values()
                .flatten()
                .all(|known| known.count > 0),
        }
    }

    /// Reads the functions of an instrumentation, sample or MIP profile. The kind is recognised by the content.
    ///
    /// # Errors
    /// If the profile is of another kind, cannot be read, holds counters only, or has no functions.
    pub fn parse(data: &[u8]) -> Result<Self> {
        Self::parse_correlated(data, None)
    }

    /// Does the same as [`parse`](Self::parse), but also reads a raw profile that holds only counters: `metadata`
    /// supplies its functions, as for [`AnyProfile::open`](crate::any::AnyProfile::open).
    pub fn parse_correlated(data: &[u8], metadata: Option<&dyn RawMetadataSource>) -> Result<Self> {
        let kind = detect(data);
        if kind.is_memprof() {
            return Err(heap_only());
        }
        if let Some(profile) = Self::of_indexed(data) {
            return profile.with_damage(Faults::default());
        }
        match AnyProfile::open_as(kind, data, metadata)? {
            AnyProfile::Sample(view) => {
                let damage = view.faults();
                Self::of_samples(view.profile).with_damage(damage)
            }
            profile => Self::of(&profile),
        }
    }

    /// Reads the functions of an undamaged indexed profile, without its counters in memory. `None` for any other profile.
    fn of_indexed(data: &[u8]) -> Option<Self> {
        let mut profile = ProfileFunctions::default();
        let records = in_place(data, None, |_, record| {
            let record_ref = record.as_ref(0);
            profile.add(&record.name, Some(record.func_hash), sum(&record_ref), None);
        })?;
        let indexed = records.profile();
        profile.instrumentation = indexed.kind();
        profile.build_ids = indexed.binary_ids().ok()?;
        if let Some(trace) = indexed.temporal_traces().ok()?.traces.first() {
            let called = trace.functions.iter();
            profile.set_calls(called.map(|&name| records.name(name)));
        }
        Some(profile)
    }

    /// Reads the functions of an open profile of any kind.
    ///
    /// # Errors
    /// If the profile holds counters only, or has no functions.
    pub fn of(profile: &AnyProfile<'_>) -> Result<Self> {
        let functions = match profile {
            AnyProfile::Sample(view) => Self::of_samples(view.profile.clone()),
            AnyProfile::Mip(profile, _) => Self::of_mip(profile),
            AnyProfile::Instr(table) => {
                table.check()?;
                let is_raw = table.facts.form == Form::Raw;
                let functions = Self::of_records(&table.profile, table.records(), is_raw);
                if functions.functions.is_empty()
                    && functions.instrumentation.contains(InstrKind::MEMPROF)
                {
                    return Err(heap_only());
                }
                functions
            }
        };
        functions.with_damage(profile.faults())
    }

    /// Returns an error if the profile has no functions. Without this check, an empty profile would match completely,
    /// whatever `--fail-under` demands.
    fn with_damage(mut self, damage: Faults) -> Result<Self> {
        self.damage = damage;
        if self.functions.is_empty() {
            let error =
                ErrorKind::Empty.error("the profile has no functions, so nothing can be compared");
            return Err(error.with_hint("`profkit doctor FILE` shows what the profile contains"));
        }
        Ok(self)
    }

    /// Reads the functions of an instrumentation profile in memory, such as the result of a merge. The count of a
    /// function is the sum of its counters.
    pub fn of_instr(instr: &InstrProfile) -> Self {
        Self::of_records(instr, records(instr), false)
    }

    /// `records` are those of the profile. If `in_file_order` is set, they have the order of the functions in the
    /// program.
    fn of_records<'p>(
        instr: &'p InstrProfile,
        records: impl IntoIterator<Item = (FunctionRef<'p>, RecordRef<'p>)>,
        in_file_order: bool,
    ) -> Self {
        let mut profile = ProfileFunctions {
            instrumentation: instr.kind,
            build_ids: instr.binary_ids.clone(),
            order: in_file_order.then_some(FunctionOrder::File),
            ..ProfileFunctions::default()
        };
        profile.functions.reserve(instr.record_count());
        for (position, (function, record)) in (0..).zip(records) {
            let place = in_file_order.then_some(position);
            profile.add(function.name(), Some(record.func_hash), sum(&record), place);
        }
        if let Some(trace) = instr.traces.traces.first() {
            let functions = instr.tables.iter().flat_map(|table| table.functions());
            let names: FxHashMap<NameRef, &[u8]> = functions
                .map(|function| (function.name_ref(), function.name()))
                .collect();
            let called = trace.functions.iter();
            profile.set_calls(called.map(|one| names.get(one).copied()));
        }
        profile
    }

    /// Sets the order of the functions to the order of `called`, the names of a temporal trace. `None` stands for a
    /// function whose name is not known.
    fn set_calls<'n>(&mut self, called: impl Iterator<Item = Option<&'n [u8]>>) {
        self.order = Some(FunctionOrder::Calls);
        for known in self.functions.values_mut().flatten() {
            known.position = None;
        }
        for (position, name) in (0..).zip(called) {
            let known = name.and_then(|name| self.functions.get_mut(name));
            for known in known.into_iter().flatten() {
                known.position.get_or_insert(position);
            }
        }
    }

    /// Reads the functions of a MIP profile. The count of a function is the number of its calls. If the profile has no
    /// numbers of calls ([`MipNumbers`]), the count is the number of runs that called the function.
    pub fn of_mip(mip: &MipProfile) -> Self {
        let mut profile = ProfileFunctions {
            is_mip: true,
            ..ProfileFunctions::default()
        };
        let numbers = MipNumbers::of(mip);
        for function in &mip.functions {
            let count = match function.is_part() {
                true => 0,
                false => numbers.count(function),
            };
            let signature = FuncHash(function.signature.into());
            profile.add(&function.name, Some(signature), count, None);
        }
        if let Identity::BuildId(id) = &mip.identity
            && !id.0.is_empty()
        {
            profile.build_ids.push(id.clone());
        }
        profile
    }

    /// Reads the functions of a sample profile. The count of a function is the number of its own samples, summed over
    /// all places where it was inlined. Samples of functions that were inlined into it are not included.
    pub fn of_samples(samples: SampleProfile) -> Self {
        let mut profile = ProfileFunctions::default();
        each_function(&samples, |one| {
            let name = sample_name(samples.names.get(one.name));
            profile.add(&name, checksum_of(one.checksum), self_samples(one), None);
        });
        profile.samples = Some(samples);
        profile
    }

    fn add(&mut self, name: &[u8], hash: Option<FuncHash>, count: u64, position: Option<u32>) {
        let known = self.functions.entry(name.to_vec()).or_default();
        match known.iter_mut().find(|known| known.hash == hash) {
            Some(known) => known.count = known.count.saturating_add(count),
            None => {
                // Nearly all names have one function: no room for more.
                known.reserve_exact(1);
                known.push(FunctionCounts {
                    hash,
                    count,
                    position,
                });
            }
        }
        self.total += u128::from(count);
    }
}

/// The sum of the counters of a record. A pseudo record has a marker in place of counts.
fn sum(record: &RecordRef<'_>) -> u64 {
    let counts = record.counts.iter().filter(|_| !record.is_pseudo());
    counts.fold(0, |sum, &count| sum.saturating_add(count))
}

/// Calls `each` with the samples of every function. Functions that were inlined into another function, at any depth,
/// are included.
pub(super) fn each_function(profile: &SampleProfile, mut each: impl FnMut(&Samples)) {
    let mut open: Vec<&Samples> = profile.functions().iter().map(|it| &it.samples).collect();
    while let Some(one) = open.pop() {
        each(one);
        open.extend(one.inlined.iter().map(|inlined| &inlined.samples));
    }
}

/// The name of a function in a sample profile. If only the hash of the name is known, returns the hash as a decimal
/// number.
pub(super) fn sample_name(name: SampleName<'_>) -> Vec<u8> {
    match name {
        SampleName::Text(text) => text.to_vec(),
        guid @ SampleName::Guid(_) => guid.to_string().into_bytes(),
    }
}

/// Checks whether the user has probably exchanged the profile and the binary: `data`, which was given as the profile,
/// is a program, and one of the `binaries` is a profile. Returns the path of that profile; otherwise `None`.
///
/// ```
/// use profkit_analysis::matching::profile_among;
///
/// assert_eq!(profile_among(b"no program", &["Cargo.toml".into()]), None);
/// ```
pub fn profile_among<'p>(data: &[u8], binaries: &'p [std::path::PathBuf]) -> Option<&'p Path> {
    let is_program = detect(data) == FileKind::ObjectFile;
    let mut binaries = binaries.iter().map(std::path::PathBuf::as_path);
    binaries.find(|path| is_program && is_profile(path))
}

fn is_profile(path: &Path) -> bool {
    open_profile(path).is_some()
}

/// Opens a file as a profile, and returns its family. `None` if the file is not a profile of any family.
pub(super) fn open_profile(path: &Path) -> Option<(Family, Result<ProfileFunctions>)> {
    let input = Input::open(path).ok()?;
    let kind = detect(&input);
    let family = kind.family()?;
    let is_text = || InstrReader::open(&input).is_ok_and(|reader| reader.check_text().is_ok());
    let is_profile = kind != FileKind::InstrText || is_text();
    is_profile.then(|| (family, ProfileFunctions::parse(&input)))
}

#[cold]
fn heap_only() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "this is a heap profile, which has no counts of functions",
    )
    .with_hint(
        "compare it by itself with programs that have debug info: `profkit match FILE PROGRAM`",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn functions_of_mip_profiles_have_counts_and_their_signature() {
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
        assert_eq!(known(b"f"), Some((Some(FuncHash(0)), 5)));
        assert_eq!(known(b"g"), Some((Some(FuncHash(0)), 3)));
        assert_eq!(known(b"h"), Some((Some(FuncHash(0)), 0)));
    }

    #[test]
    fn a_marker_of_a_hot_function_is_no_count() {
        let text = format!(":ir\nhot\n1\n1\n{}\n\nf\n2\n1\n5\n", u64::MAX);
        let profile = ProfileFunctions::parse(text.as_bytes());
        assert_eq!(profile.map(|profile| profile.total), Ok(5));
    }

    #[test]
    fn a_merged_profile_has_the_functions_of_its_file() {
        use profkit_data::instr::text::{TextOptions, write};
        use profkit_merge::{MergeOptions, merge_instr};
        let text = b":ir\n:temporal_prof_traces\n1\n1\n1\ng,f\nf\n1\n2\n5\n6\n\nf\n9\n1\n7\n\ng\n3\n1\n4\n";
        let Ok(merged) = merge_instr(&[text.as_slice()], &MergeOptions::new()) else {
            panic!("the text is a profile");
        };
        let merged = &merged.profiles[0].profile;
        let mut file = Vec::new();
        assert!(write(merged, &TextOptions::new(), &mut file).is_ok());
        let Ok(parsed) = ProfileFunctions::parse(&file) else {
            panic!("the text is a profile");
        };
        let taken = ProfileFunctions::of_instr(merged);
        assert_eq!(taken.total, 22);
        assert_eq!(taken.order, Some(FunctionOrder::Calls));
        assert_eq!(format!("{:?}", taken.order), format!("{:?}", parsed.order));
        assert_eq!(taken.total, parsed.total);
        assert_eq!(taken.instrumentation, parsed.instrumentation);
        let sorted = |profile: &ProfileFunctions| {
            let mut all: Vec<String> = profile
                .functions
                .iter()
                .map(|one| format!("{one:?}"))
                .collect();
            all.sort_unstable();
            all
        };
        assert_eq!(sorted(&taken), sorted(&parsed));
        let mut indexed = Vec::new();
        let options = profkit_data::instr::indexed::IndexedWriteOptions::for_version(13);
        assert!(profkit_data::instr::indexed::write(merged, &options, &mut indexed).is_ok());
        let in_memory = AnyProfile::open_as(FileKind::InstrIndexed, &indexed, None);
        let in_memory = in_memory.and_then(|profile| ProfileFunctions::of(&profile));
        let (Some(in_place), Ok(in_memory)) = (ProfileFunctions::of_indexed(&indexed), in_memory)
        else {
            panic!("the file is not damaged");
        };
        assert_eq!(sorted(&in_place), sorted(&in_memory));
        assert_eq!(
            (in_place.order, in_place.total),
            (in_memory.order, in_memory.total)
        );
        assert_eq!(taken.functions[b"g".as_slice()][0].position, Some(0));
    }
}
