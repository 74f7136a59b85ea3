//! A profile of any kind, opened to be read as far as it goes.
use profkit_data::bytes::Endian;
use profkit_data::detect::{FileKind, detect};
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::{IndexedHeader, IndexedProfile, IndexedReader};
use profkit_data::instr::raw::{PointerWidth, RawMetadataSource, RawReadOptions, RawReader};
use profkit_data::instr::releases::{Release, indexed_writers, raw_writers};
use profkit_data::instr::text::TextReader;
use profkit_data::instr::{InstrKind, InstrSource};
use profkit_data::{Error, ErrorKind, Result};
use std::ops::RangeInclusive;

/// A reader of one of the kinds.
#[derive(Debug)]
pub enum Source<'data> {
    Raw(Box<RawReader<'data>>),
    Indexed(Box<IndexedReader<'data>>),
    Text(Box<TextReader<'data>>),
}

impl<'data> Source<'data> {
    /// Opens a profile, raw and indexed ones to be salvaged.
    pub fn open(data: &'data [u8]) -> Result<Self> {
        Self::open_correlated(data, None)
    }

    /// Opens a profile; `metadata` has what raw ones lack that hold counters only.
    pub fn open_correlated(
        data: &'data [u8],
        metadata: Option<&'data dyn RawMetadataSource>,
    ) -> Result<Self> {
        Ok(match detect(data) {
            FileKind::InstrRaw | FileKind::Empty => {
                let options = RawReadOptions::default().salvage(true);
                Source::Raw(Box::new(match metadata {
                    Some(metadata) => RawReader::parse_correlated(data, options, metadata)?,
                    None => RawReader::parse_with(data, options)?,
                }))
            }
            FileKind::InstrIndexed => {
                Source::Indexed(Box::new(IndexedProfile::parse_salvage(data)?.records()))
            }
            FileKind::Text => Source::Text(Box::new(TextReader::parse(data)?)),
            other => return Err(unsupported(other)),
        })
    }

    pub fn reader(&mut self) -> &mut dyn InstrSource {
        match self {
            Source::Raw(reader) => &mut **reader,
            Source::Indexed(reader) => &mut **reader,
            Source::Text(reader) => &mut **reader,
        }
    }

    /// The name of a target, a virtual table or a function of a trace.
    pub fn name_of(&self, name_ref: NameRef) -> Option<&[u8]> {
        match self {
            Source::Raw(reader) => reader.symbols().get(name_ref),
            Source::Text(reader) => reader.symbols().get(name_ref),
            Source::Indexed(reader) => reader
                .profile()
                .name_of(name_ref)
                .or_else(|| reader.symbols().get(name_ref)),
        }
    }
}

/// What is known of a file before its records are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `raw`, `indexed` or `text`.
    pub kind: &'static str,
    /// Raw or indexed version; text has none.
    pub version: Option<u32>,
    /// Version with flags.
    pub version_word: u64,
    /// Releases that write this version.
    pub writers: Option<RangeInclusive<Release>>,
    /// Byte order and pointer width of a raw profile.
    pub machine: Option<(PointerWidth, Endian)>,
    /// What is counted.
    pub instrumentation: InstrKind,
}

impl Facts {
    /// The facts of an open profile.
    pub fn of(source: &Source<'_>) -> Self {
        match source {
            Source::Raw(reader) => {
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
                Facts {
                    kind: "raw",
                    version: Some(version),
                    version_word: word,
                    writers,
                    machine: dialect.map(|dialect| (dialect.width, dialect.endian)),
                    instrumentation: reader.kind(),
                }
            }
            Source::Indexed(reader) => Self::of_indexed(reader.profile().header()),
            Source::Text(reader) => Facts {
                kind: "text",
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
        Facts {
            kind: "indexed",
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
pub fn unsupported(kind: FileKind) -> Error {
    let (what, hint) = match kind {
        FileKind::MemProfRaw => (
            "a raw MemProf profile",
            "profkit show FILE --binaries PROGRAM shows it",
        ),
        FileKind::SampleBinary => (
            "a sample profile",
            "this takes instrumentation profiles; profkit show, merge and convert take sample profiles",
        ),
        FileKind::SampleGcov => (
            "a GCC AutoFDO profile",
            "this takes instrumentation profiles; profkit show, merge and convert take sample profiles",
        ),
        FileKind::Mip => (
            "a MIP file",
            "profkit mip show -p FILE shows a MIP profile; raw files are merged first: profkit mip merge -p PROFILE RAW",
        ),
        FileKind::MipMap => (
            "a MIP map",
            "profkit mip create -p PROFILE MAP makes a profile of it",
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
            .within("the first bytes")
            .with_hint("profiles are .profraw, .profdata or .proftext files");
        }
    };
    Error::new(ErrorKind::Unsupported, "not an instrumentation profile")
        .at(0)
        .within("the first bytes")
        .found(what)
        .with_hint(hint)
}
