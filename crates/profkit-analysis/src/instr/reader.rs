//! An instrumentation profile of any form, opened to be read as far as it goes.
use profkit_data::bytes::Endian;
use profkit_data::detect::{FileKind, detect};
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{
    IndexedHeader, IndexedProfile, IndexedReadOptions, IndexedReader,
};
use profkit_data::instr::raw::{PointerWidth, RawMetadataSource, RawReadOptions, RawReader};
use profkit_data::instr::releases::{Release, indexed_writers, raw_writers};
use profkit_data::instr::text::TextReader;
use profkit_data::instr::{InstrKind, InstrSource};
use profkit_data::{Error, ErrorKind, Result, Structure};
use std::fmt;
use std::ops::RangeInclusive;

/// A reader of an instrumentation profile, whatever its form.
#[derive(Debug)]
pub enum InstrReader<'data> {
    /// A raw profile, or several in one file.
    Raw(Box<RawReader<'data>>),
    /// An indexed profile.
    Indexed(Box<IndexedReader<'data>>),
    /// A text profile.
    Text(Box<TextReader<'data>>),
}

impl<'data> InstrReader<'data> {
    /// Opens a profile. Raw and indexed ones are read as far as they are sound.
    ///
    /// # Errors
    /// If the file is no instrumentation profile, or its header cannot be read.
    pub fn open(data: &'data [u8]) -> Result<Self> {
        Self::open_correlated(data, None)
    }

    /// Opens a profile; `metadata` gives the functions of raw ones that hold counters only.
    ///
    /// # Errors
    /// As [`open`](Self::open).
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
                let options = IndexedReadOptions::new()
                    .salvage(true)
                    .unknown_records(true);
                let profile = IndexedProfile::parse_with(data, &options)?;
                InstrReader::Indexed(Box::new(profile.records()))
            }
            FileKind::InstrText => InstrReader::Text(Box::new(TextReader::parse(data)?)),
            other => return Err(not_an_instr_profile(other)),
        })
    }

    /// The records, whatever the form.
    pub fn source(&mut self) -> &mut dyn InstrSource {
        match self {
            InstrReader::Raw(reader) => &mut **reader,
            InstrReader::Indexed(reader) => &mut **reader,
            InstrReader::Text(reader) => &mut **reader,
        }
    }

    /// The name of a target, a virtual table or a function of a trace.
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
    /// Written by the program that ran (`.profraw`).
    Raw,
    /// Written by a merge, read by compilers (`.profdata`).
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

/// What is known of a file before its records are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrFacts {
    /// Raw, indexed or text.
    pub form: Form,
    /// Raw or indexed version; text has none.
    pub version: Option<u32>,
    /// Version with flags, as it stands in the file.
    pub version_word: u64,
    /// Releases that write this version.
    pub writers: Option<RangeInclusive<Release>>,
    /// Byte order and pointer width of a raw profile.
    pub machine: Option<(PointerWidth, Endian)>,
    /// What is counted.
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
                    // Version 5 has two headers, and the short one is of LLVM 9 alone.
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

    /// The facts of an indexed profile, from its header alone.
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
    // The mask leaves 32 bits.
    u32::try_from(word & profkit_abi::variant::VERSION_MASK).unwrap_or(0)
}

/// The error for a file that is not an instrumentation profile.
pub fn not_an_instr_profile(kind: FileKind) -> Error {
    let (what, hint) = match kind {
        FileKind::MemProfRaw => (
            "a raw MemProf profile",
            "profkit show FILE --binaries PROGRAM shows it",
        ),
        kind if kind.is_sample() && kind != FileKind::SampleGcov => (
            "a sample profile",
            "this takes instrumentation profiles; profkit show, merge and convert take sample profiles",
        ),
        FileKind::SampleGcov => (
            "a GCC AutoFDO profile",
            "this takes instrumentation profiles; profkit show, merge and convert take sample profiles",
        ),
        kind if kind.is_mip() && kind != FileKind::MipMap => (
            "a MIP file",
            "profkit mip show -p FILE shows a MIP profile; raw files are merged first: profkit mip merge -p PROFILE RAW",
        ),
        FileKind::MipMap => (
            "a MIP map",
            "profkit mip create -p PROFILE MAP makes a profile of it",
        ),
        FileKind::MemProfYaml => ("a heap profile as YAML", "profkit show FILE shows it"),
        FileKind::Archive | FileKind::PerfData | FileKind::GccCoverage => (
            kind.description(),
            "give the profile that the program wrote when it ran, by default default.profraw",
        ),
        FileKind::ObjectFile => (
            "a program or object file",
            "give the profile that the program wrote when it ran, by default default.profraw",
        ),
        _ => {
            return Error::new(
                ErrorKind::UnrecognizedFormat,
                "not a profile of a known kind",
            )
            .at(0)
            .within(Structure::FirstBytes)
            .with_hint("profiles are .profraw, .profdata or .proftext files");
        }
    };
    Error::new(ErrorKind::Unsupported, "not an instrumentation profile")
        .at(0)
        .within(Structure::FirstBytes)
        .found(what)
        .with_hint(hint)
}
