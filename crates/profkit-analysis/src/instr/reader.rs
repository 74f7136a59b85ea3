//! Opens an instrumentation profile of any form. Damaged profiles are read as far as possible.
use profkit_data::bytes::Endian;
use profkit_data::detect::{FileKind, detect};
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{
    IndexedHeader, IndexedProfile, IndexedReadOptions, IndexedReader,
};
use profkit_data::instr::raw::{PointerWidth, RawMetadataSource, RawReadOptions, RawReader};
use profkit_data::instr::text::TextReader;
use profkit_data::instr::{InstrKind, InstrSource, Record};
use profkit_data::releases::{Release, indexed_writers, raw_writers};
use profkit_data::{Error, ErrorKind, Result, Structure};
use std::fmt;
use std::ops::RangeInclusive;

/// A reader of an instrumentation profile, whatever its form.
///
/// ```
/// use profkit_analysis::instr::InstrReader;
/// use profkit_data::instr::{InstrSource, Record};
///
/// let mut reader = InstrReader::open(b":ir\nmain\n1234\n2\n90\n10\n")?;
/// let source = reader.source();
/// let mut record = Record::default();
/// assert!(source.read_record(&mut record)?);
/// assert_eq!((record.name.as_slice(), record.counts.as_slice()), (b"main".as_slice(), [90, 10].as_slice()));
/// assert!(!source.read_record(&mut record)?);
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Debug)]
pub enum InstrReader<'data> {
    /// A raw profile, or several raw profiles in one file.
    Raw(Box<RawReader<'data>>),
    /// An indexed profile.
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
        Self::open_correlated(data, None)
    }

    /// Opens a profile. A raw profile may hold only counters; `metadata` then supplies its function records.
    /// [`Plan::joined`](crate::correlate::Plan::joined) has these records for all inputs of the plan.
    ///
    /// ```no_run
    /// use profkit_analysis::correlate::{Binaries, Plan};
    /// use profkit_analysis::instr::InstrReader;
    ///
    /// let file = std::fs::read("default.profraw")?;
    /// let plan = Plan::new(&[file.as_slice()], &Binaries::open(&["build/app".into()])?);
    /// let mut reader = InstrReader::open_correlated(&file, Some(&plan.joined))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The same as those of [`open`](Self::open).
    pub fn open_correlated(
        data: &'data [u8],
        metadata: Option<&'data dyn RawMetadataSource>,
    ) -> Result<Self> {
        Ok(match detect(data) {
            FileKind::InstrRaw | FileKind::Empty => {
                let options = RawReadOptions::default().salvage(true);
                InstrReader::Raw(Box::new(match metadata {
                    Some(metadata) => RawReader::parse_correlated(data, &options, metadata)?,
                    None => RawReader::parse_with(data, &options)?,
                }))
            }
            FileKind::InstrIndexed => {
                let options = IndexedReadOptions::new().salvage(true);
                let profile = IndexedProfile::parse_with(data, &options)?;
                InstrReader::Indexed(Box::new(profile.records()))
            }
            FileKind::InstrText => InstrReader::Text(Box::new(TextReader::parse(data)?)),
            other => return Err(not_an_instr_profile(other)),
        })
    }

    /// The reader of the records, whatever the form of the profile.
    pub fn source(&mut self) -> &mut dyn InstrSource {
        match self {
            InstrReader::Raw(reader) => &mut **reader,
            InstrReader::Indexed(reader) => &mut **reader,
            InstrReader::Text(reader) => &mut **reader,
        }
    }

    /// Returns the name with this hash: the name of a call target, of a virtual table, or of a function in a temporal
    /// trace. `None` if the profile does not contain the name.
    pub fn name_of(&self, name_ref: NameRef) -> Option<&[u8]> {
        match self {
            InstrReader::Raw(reader) => reader.symbols().get(name_ref),
            InstrReader::Text(reader) => reader.symbols().get(name_ref),
            InstrReader::Indexed(reader) => reader
                .profile()
                .name_of(name_ref)
                .or_else(|| reader.symbols().get(name_ref)),
        }
    }
}

/// The form of an instrumentation profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Raw: written by the program that ran (`.profraw`).
    Raw,
    /// Indexed: written by a merge, read by compilers (`.profdata`).
    Indexed,
    /// Text (`.proftext`).
    Text,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Form::Raw => "raw",
            Form::Indexed => "indexed",
            Form::Text => "text",
        })
    }
}

/// Facts that are known before the records of a file are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrFacts {
    /// Raw, indexed or text.
    pub form: Form,
    /// The raw or indexed version; `None` for text.
    pub version: Option<u32>,
    /// The version word, with its flags, as it is in the file.
    pub version_word: u64,
    /// The LLVM releases that write this version; `None` if no release is known.
    pub writers: Option<RangeInclusive<Release>>,
    /// The byte order and pointer width of a raw profile; `None` for other forms.
    pub machine: Option<(PointerWidth, Endian)>,
    /// What the profile counts.
    pub instrumentation: InstrKind,
}

impl InstrFacts {
    /// The facts of an open profile.
    pub fn of(source: &InstrReader<'_>) -> Self {
        match source {
            InstrReader::Raw(reader) => {
                let word = reader.version_word();
                let version = version_of(word);
                let dialect = reader.profile().map(|profile| profile.dialect());
                let writers = match (version, reader.profile()) {
                    // Raw version 5 has two forms of the header. Only LLVM 9 writes the shorter header.
                    (5, Some(profile)) if profile.header().has_counter_padding() => {
                        Some(Release::new(10)..=Release::new(12))
                    }
                    (5, Some(_)) => Some(Release::new(9)..=Release::new(9)),
                    _ => raw_writers(version),
                };
                InstrFacts {
                    form: Form::Raw,
                    version: Some(version),
                    version_word: word,
                    writers,
                    machine: dialect.map(|dialect| (dialect.width, dialect.endian)),
                    instrumentation: reader.kind(),
                }
            }
            InstrReader::Indexed(reader) => Self::of_indexed(reader.profile().header()),
            InstrReader::Text(reader) => InstrFacts {
                form: Form::Text,
                version: None,
                version_word: 0,
                writers: None,
                machine: None,
                instrumentation: reader.kind(),
            },
        }
    }

    /// Returns the facts of an indexed profile, from its header alone.
    pub fn of_indexed(header: &IndexedHeader) -> Self {
        InstrFacts {
            form: Form::Indexed,
            version: Some(header.version()),
            version_word: header.version_word,
            writers: indexed_writers(header.version()),
            machine: None,
            instrumentation: header.kind(),
        }
    }
}

fn version_of(word: u64) -> u32 {
    // The mask leaves 32 bits of the version word, so the conversion to `u32` cannot fail.
    u32::try_from(word & profkit_abi::variant::VERSION_MASK).unwrap_or(0)
}

/// Checks that a text has a record that can be read, or no records at all. This check is needed because any text can be
/// opened as a profile: a text profile has no magic.
///
/// # Errors
/// The first error, if the text has records and none of them can be read.
pub fn text_has_records(data: &[u8]) -> Result<()> {
    let mut reader = TextReader::parse(data)?;
    let mut record = Record::default();
    let mut first = Ok(());
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => return Ok(()),
            Ok(false) => return first,
            Err(error) => {
                first = first.and(Err(error));
                if !reader.can_resume() {
                    return first;
                }
            }
        }
    }
}

/// The error for a file that is not an instrumentation profile.
pub fn not_an_instr_profile(kind: FileKind) -> Error {
    if let Some(advice) = kind.advice() {
        return Error::new(ErrorKind::UnrecognizedFormat, "not a profile")
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
            return Error::new(
                ErrorKind::UnrecognizedFormat,
                "not a profile of a known kind",
            )
            .at(0)
            .within(Structure::FirstBytes)
            .with_hint("profiles are .profraw, .profdata or .proftext files; the command `file` may know what this file is");
        }
    };
    Error::new(ErrorKind::Unsupported, "not an instrumentation profile")
        .at(0)
        .within(Structure::FirstBytes)
        .found(what)
        .with_hint(hint)
}
