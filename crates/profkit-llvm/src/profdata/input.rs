//! Opens a profile as `llvm-profdata` does, in the LLVM release that profkit reproduces.
use profkit_abi::{raw, value_kind, variant};
use profkit_data::detect::{FileKind, detect, is_text};
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::instr::raw::{RawDialect, RawHeader, version_mismatch};
use profkit_data::instr::{
    InstrKind, InstrReadOptions, InstrReader, InstrSource, KindValues, Record, TemporalTraces,
};
use profkit_data::releases::Release;
use profkit_data::{Error, ErrorKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// An open profile, with the function names that the profile itself contains.
pub struct Profile<'data> {
    source: InstrReader<'data>,
    /// The function names of an indexed profile, by hash. An indexed profile has no other list of names than its table
    /// of functions.
    names: FxHashMap<NameRef, &'data [u8]>,
    /// The hashes of the names that were read so far: those of functions and of value targets. `None` except for a text
    /// profile with temporal traces. LLVM keeps no name that occurs only in traces. So LLVM prints the name of a
    /// function in a trace only if the hash of the name is in this set.
    read: Option<FxHashSet<NameRef>>,
}

impl<'data> Profile<'data> {
    /// Opens a profile as `InstrProfReader::create` does: the first bytes of the file decide the kind of the profile.
    /// If `names` is true, function names can be looked up by hash.
    pub fn open(data: &'data [u8], release: Release, names: bool) -> Result<Self, Error> {
        let mut known = FxHashMap::default();
        let kind = match detect(data) {
            FileKind::Empty => return Err(ErrorKind::Empty.error("the file is empty")),
            FileKind::InstrRaw => {
                check_raw_version(data, release)?;
                FileKind::InstrRaw
            }
            FileKind::InstrIndexed => FileKind::InstrIndexed,
            // LLVM treats a file as text if its first eight bytes are text.
            _ if is_text(data) => FileKind::InstrText,
            other => other,
        };
        let options = InstrReadOptions {
            llvm_checks: true,
            newest_indexed: release.facts().map(|facts| facts.indexed),
            ..InstrReadOptions::default()
        };
        let Some(source) = InstrReader::open_as(kind, data, &options)? else {
            return Err(
                ErrorKind::UnrecognizedFormat.error("the file is no instrumentation profile")
            );
        };
        if let InstrReader::Indexed(reader) = &source {
            let profile = reader.profile();
            // LLVM reads the start of the heap profile and the temporal traces together with the file header. So it
            // reports errors in them before any error in a record.
            if let Some(section) = profile.memprof() {
                section.check_version_as_llvm()?;
            }
            profile.temporal_traces()?;
            if names {
                let mut all = profile.records();
                // Damage in the table of functions is ignored here. It is reported when the records are read.
                while let Ok(Some(name)) = all.next_name() {
                    known.entry(name.name_ref()).or_insert(name.name());
                }
            }
        }
        let mut profile = Profile {
            source,
            names: known,
            read: None,
        };
        let is_text = matches!(profile.source, InstrReader::Text(_));
        if names && is_text && profile.kind().contains(InstrKind::TEMPORAL) {
            profile.read = Some(FxHashSet::default());
        }
        Ok(profile)
    }

    /// The indexed profile; `None` for a profile of another form.
    pub fn indexed(&self) -> Option<&IndexedProfile<'data>> {
        match &self.source {
            InstrReader::Indexed(reader) => Some(reader.profile()),
            _ => None,
        }
    }

    /// Returns the reader of the profile's records.
    pub fn source_mut(&mut self) -> &mut InstrReader<'data> {
        &mut self.source
    }

    /// The kind flags of the profile, such as IR or front-end instrumentation.
    pub fn kind(&self) -> InstrKind {
        self.source.kind()
    }

    /// Decodes the next record.
    ///
    /// # Errors
    /// If the record is damaged. LLVM's tool stops at the first such error.
    #[inline]
    pub fn read_record(&mut self, record: &mut Record) -> Result<bool, Error> {
        let more = self.source.read_record(record);
        // If a record is damaged, LLVM still knows the names in the part before the damage.
        if let Some(read) = &mut self.read {
            let names = [value_kind::INDIRECT_CALL_TARGET, value_kind::VTABLE_TARGET];
            let targets = names.map(|kind| record.values.kind(kind));
            let entries = targets.into_iter().flatten().flat_map(KindValues::entries);
            read.insert(record.name_ref);
            read.extend(entries.map(|entry| NameRef(entry.value)));
        }
        more
    }

    /// Returns the name of a function or virtual table; `None` if the file does not contain it.
    pub fn name(&self, name_ref: NameRef) -> Option<&[u8]> {
        match self.names.get(&name_ref) {
            Some(name) => Some(name),
            None if self
                .read
                .as_ref()
                .is_some_and(|read| !read.contains(&name_ref)) =>
            {
                None
            }
            None => self.source.symbols().get(name_ref),
        }
    }

    /// Returns the version that LLVM's tool prints. For raw files, this is the whole 64-bit version field, with the
    /// flags in its upper bits.
    pub fn version(&self) -> u64 {
        match &self.source {
            InstrReader::Indexed(reader) => reader.version_word() & variant::VERSION_MASK,
            _ => self.source.version_word(),
        }
    }

    /// Returns the build ids. `None` for a text profile, and for a raw profile without build ids, because LLVM's tool
    /// prints nothing about build ids in these cases.
    pub fn binary_ids(&self) -> Result<Option<Vec<BuildId>>, Error> {
        match &self.source {
            InstrReader::Text(_) => Ok(None),
            InstrReader::Raw(_) => {
                let ids = self.source.binary_ids()?;
                Ok(Some(ids).filter(|ids| !ids.is_empty()))
            }
            InstrReader::Indexed(_) => self.source.binary_ids().map(Some),
        }
    }

    /// Returns the temporal traces. The caller must have read all records before.
    pub fn temporal_traces(&mut self) -> Result<TemporalTraces, Error> {
        self.source.temporal_traces()
    }
}

/// Returns an error if the file is a raw profile whose raw version is not that of the release. LLVM's tool reads only the
/// raw version of its own release.
fn check_raw_version(data: &[u8], release: Release) -> Result<(), Error> {
    let own = release
        .facts()
        .map_or(raw::VERSION_LLVM_22, |facts| facts.raw);
    let dialect = RawDialect::of_any_version(data, 0);
    if !matches!(&dialect, Err(error) if error.kind() == ErrorKind::BadMagic) {
        RawHeader::check_room(data, own)?;
    }
    let version = dialect?.version;
    if version == own {
        return Ok(());
    }
    let error = ErrorKind::UnsupportedVersion.error("a raw version of another release");
    Err(error.llvm_detail(version_mismatch(version, own)))
}
