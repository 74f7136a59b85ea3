use super::indexed::{IndexedProfile, IndexedReadOptions, IndexedReader};
use super::raw::{RawMetadataSource, RawReadOptions, RawReader};
use super::text::TextReader;
use super::{InstrKind, InstrSource, Record, TemporalTraces};
use crate::detect::{FileKind, detect};
use crate::ids::{BuildId, NameRef};
use crate::names::SymbolTable;
use crate::{Error, ErrorKind, MemProfSection, Result, Structure};

/// How an instrumentation profile is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstrReadOptions<'data> {
    /// Whether a damaged raw or indexed profile is read as far as it is sound. By default, damage is an error.
    pub salvage: bool,
    /// Whether all checks of LLVM's readers are made, also those that only refuse harmless files.
    pub llvm_checks: bool,
    /// The newest indexed version that is accepted; `None` for every version that profkit knows.
    pub newest_indexed: Option<u32>,
    /// Whether the caller checks the function table of an indexed profile itself
    /// ([`IndexedReadOptions::table_is_checked`]).
    pub table_is_checked: bool,
    /// The functions of raw profiles that hold only counters.
    pub metadata: Option<&'data dyn RawMetadataSource>,
}

/// A reader of an instrumentation profile, whatever its form.
///
/// ```
/// use profkit_data::instr::{InstrReader, InstrSource, Record};
///
/// let mut reader = InstrReader::open(b":ir\nmain\n1234\n2\n90\n10\n")?;
/// let mut record = Record::default();
/// assert!(reader.read_record(&mut record)?);
/// assert_eq!((record.name.as_slice(), record.counts.as_slice()), (b"main".as_slice(), [90, 10].as_slice()));
/// assert!(!reader.read_record(&mut record)?);
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Debug)]
pub enum InstrReader<'data> {
    /// A raw profile, or several raw profiles in one file.
    Raw(Box<RawReader<'data>>),
    /// An indexed profile. It has functions, and may have a heap profile ([`memprof`](Self::memprof)).
    Indexed(Box<IndexedReader<'data>>),
    /// A text profile.
    Text(Box<TextReader<'data>>),
}

impl<'data> InstrReader<'data> {
    /// Opens a profile. Raw and indexed profiles are read as far as they are sound.
    ///
    /// # Errors
    /// If the file is not an instrumentation profile, or if its header cannot be read.
    pub fn open(data: &'data [u8]) -> Result<Self> {
        Self::salvage(detect(data), data, None)
    }

    /// Opens a profile whose kind is known, as [`open`](Self::open) does. A raw profile may hold only counters;
    /// `metadata` then supplies its function records.
    pub fn salvage(
        kind: FileKind,
        data: &'data [u8],
        metadata: Option<&'data dyn RawMetadataSource>,
    ) -> Result<Self> {
        let options = InstrReadOptions {
            salvage: true,
            metadata,
            ..InstrReadOptions::default()
        };
        Self::open_as(kind, data, &options)?.ok_or_else(|| not_an_instr_profile(kind))
    }

    /// Opens a profile of a known kind. Returns `None` if files of this kind are not instrumentation profiles.
    ///
    /// # Errors
    /// If the header cannot be read, and for an empty file.
    pub fn open_as(
        kind: FileKind,
        data: &'data [u8],
        options: &InstrReadOptions<'data>,
    ) -> Result<Option<Self>> {
        Ok(Some(match kind {
            FileKind::InstrRaw | FileKind::Empty => {
                let raw = RawReadOptions::default()
                    .salvage(options.salvage)
                    .llvm_checks(options.llvm_checks);
                InstrReader::Raw(Box::new(match options.metadata {
                    Some(metadata) => RawReader::parse_correlated(data, &raw, metadata)?,
                    None => RawReader::parse_with(data, &raw)?,
                }))
            }
            FileKind::InstrIndexed => {
                let mut indexed = IndexedReadOptions::new()
                    .salvage(options.salvage)
                    .llvm_checks(options.llvm_checks)
                    .table_is_checked(options.table_is_checked);
                if let Some(newest) = options.newest_indexed {
                    indexed = indexed.newest(newest);
                }
                let profile = IndexedProfile::parse_with(data, &indexed)?;
                InstrReader::Indexed(Box::new(profile.records()))
            }
            FileKind::InstrText => InstrReader::Text(Box::new(TextReader::parse(data)?)),
            _ => return Ok(None),
        }))
    }

    /// Checks that a text has a record that can be read, or no records at all. This check is needed because any text can
    /// be opened as a profile: a text profile has no magic number. Other profiles pass.
    ///
    /// # Errors
    /// The first error, if the text has records and none of them can be read.
    pub fn check_text(&self) -> Result<()> {
        let InstrReader::Text(reader) = self else {
            return Ok(());
        };
        let mut reader = reader.clone();
        let mut record = Record::default();
        let mut first = Ok(());
        while let Some(read) = reader.next_record(&mut record) {
            match read {
                Ok(()) => return Ok(()),
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }

    /// Returns the name with this hash: the name of a call target, of a virtual table, or of a function in a temporal
    /// trace. `None` if the profile does not contain the name.
    pub fn name_of(&self, name_ref: NameRef) -> Option<&[u8]> {
        let listed = match self {
            InstrReader::Indexed(reader) => reader.profile().name_of(name_ref),
            _ => None,
        };
        listed.or_else(|| self.symbols().get(name_ref))
    }

    /// The heap profile of an indexed profile, not decoded.
    pub fn memprof(&self) -> Option<MemProfSection> {
        match self {
            InstrReader::Indexed(reader) => reader.profile().memprof(),
            _ => None,
        }
    }

    /// The position in the file of the profile that is being read, counted from 1. Only raw files hold several.
    pub fn profiles_seen(&self) -> usize {
        match self {
            InstrReader::Raw(reader) => reader.profiles_seen(),
            _ => 1,
        }
    }

    /// The build ids of the profile that is being read. Empty if they cannot be read. After the last record of a raw file,
    /// those of all its profiles.
    pub fn current_ids(&self) -> Vec<BuildId> {
        match self {
            InstrReader::Raw(reader) => match reader.profile() {
                Some(profile) => profile.binary_ids().ok(),
                None => reader.binary_ids().ok(),
            },
            _ => self.binary_ids().ok(),
        }
        .unwrap_or_default()
    }

    /// The kind of the profile that is being read.
    pub fn current_kind(&self) -> InstrKind {
        match self {
            InstrReader::Raw(reader) => reader.profile().map_or(reader.kind(), |profile| {
                InstrKind::from_version_word(profile.dialect().version_word())
            }),
            _ => self.kind(),
        }
    }

    /// A number for the position of the record that was read last; it is larger for a later record. `ordinal` is the
    /// number of records of the file that were read before this one.
    pub fn record_place(&self, ordinal: u64) -> u64 {
        match self {
            // This also holds if several threads each read only a part of the names.
            InstrReader::Indexed(reader) => reader.record_place(),
            _ => ordinal,
        }
    }
}

/// Calls a method of the reader, whatever its form. The call is resolved when the program is compiled.
macro_rules! each_form {
    ($reader:expr, $it:ident => $call:expr) => {
        match $reader {
            InstrReader::Raw($it) => $call,
            InstrReader::Indexed($it) => $call,
            InstrReader::Text($it) => $call,
        }
    };
}

impl InstrSource for InstrReader<'_> {
    fn kind(&self) -> InstrKind {
        each_form!(self, it => it.kind())
    }

    fn version_word(&self) -> u64 {
        each_form!(self, it => it.version_word())
    }

    #[inline]
    fn read_record(&mut self, record: &mut Record) -> Result<bool> {
        each_form!(self, it => it.read_record(record))
    }

    fn symbols(&self) -> &SymbolTable {
        each_form!(self, it => it.symbols())
    }

    fn binary_ids(&self) -> Result<Vec<BuildId>> {
        each_form!(self, it => it.binary_ids())
    }

    fn temporal_traces(&mut self) -> Result<TemporalTraces> {
        each_form!(self, it => it.temporal_traces())
    }
}

/// The error for a file that is not an instrumentation profile.
pub fn not_an_instr_profile(kind: FileKind) -> Error {
    if let Some(advice) = kind.advice() {
        return ErrorKind::UnrecognizedFormat
            .error("not a profile")
            .at(0)
            .within(Structure::FirstBytes)
            .found(kind.description())
            .with_hint(advice);
    }
    let (what, hint) = match kind {
        FileKind::MemProfRaw => (
            "a raw MemProf profile",
            "profkit show FILE --binaries PROGRAM shows it",
        ),
        kind if kind.is_sample() && kind != FileKind::SampleGcov => (
            "a sample profile",
            "an instrumentation profile is needed here; profkit show, merge and convert accept sample profiles",
        ),
        FileKind::SampleGcov => (
            "a GCC AutoFDO profile",
            "an instrumentation profile is needed here; profkit show, merge and convert accept sample profiles",
        ),
        kind if kind.is_mip() && kind != FileKind::MipMap => (
            "a MIP file",
            "`profkit mip show -p FILE` shows a MIP profile; merge raw files first: `profkit mip merge -p PROFILE RAW`",
        ),
        FileKind::MipMap => (
            "a MIP map",
            "`profkit mip create -p PROFILE MAP` makes a profile of it",
        ),
        FileKind::MemProfYaml => ("a heap profile as YAML", "profkit show FILE shows it"),
        _ => {
            return ErrorKind::UnrecognizedFormat.error("not a profile of a known kind")
            .at(0)
            .within(Structure::FirstBytes)
            .with_hint("profiles are .profraw, .profdata or .proftext files; the command `file` may know what this file is");
        }
    };
    ErrorKind::Unsupported
        .error("not an instrumentation profile")
        .at(0)
        .within(Structure::FirstBytes)
        .found(what)
        .with_hint(hint)
}
