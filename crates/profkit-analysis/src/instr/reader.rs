//! Facts about an instrumentation profile that are known when it is open.
use profkit_data::bytes::Endian;
use profkit_data::instr::indexed::IndexedHeader;
use profkit_data::instr::raw::PointerWidth;
use profkit_data::instr::{InstrKind, InstrReader, InstrSource};
use profkit_data::releases::{Release, indexed_writers, raw_writers};
use std::fmt;
use std::ops::RangeInclusive;

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
