//! Opens an input with the reader for its format, which is recognised by the content.
use super::Context;
use crate::MergeOptions;
use crate::driver::OpenedInput;
use profkit_abi::variant;
use profkit_data::detect::{FileKind, is_text};
use profkit_data::ids::BuildId;
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions, IndexedReader};
use profkit_data::instr::raw::{RawReadOptions, RawReader, version_mismatch};
use profkit_data::instr::text::TextReader;
use profkit_data::instr::{InstrKind, InstrSource, MemProfSection, TemporalTraces};
use profkit_data::releases::Release;
use profkit_data::{Error, ErrorKind, Structure};

pub(crate) enum Source<'data> {
    Raw(Box<RawReader<'data>>),
    Indexed(Box<IndexedReader<'data>>),
    Text(Box<TextReader<'data>>),
}

impl<'data> Source<'data> {
    /// With `tolerant`, a damaged raw or indexed file is read as far as it is sound.
    pub(crate) fn open(
        input: &'data OpenedInput<'_>,
        tolerant: bool,
        merge: &'data MergeOptions,
    ) -> Result<Self, Error> {
        let data = input.bytes();
        match input.kind {
            FileKind::InstrRaw | FileKind::Empty => {
                let options = RawReadOptions::default()
                    .salvage(tolerant)
                    .llvm_checks(!tolerant);
                Ok(Source::Raw(Box::new(match &merge.correlation {
                    Some(source) => RawReader::parse_correlated(data, &options, &**source)?,
                    None => RawReader::parse_with(data, &options)?,
                })))
            }
            FileKind::InstrIndexed => {
                let mut options = IndexedReadOptions::new()
                    .salvage(tolerant)
                    .llvm_checks(!tolerant);
                if let Some(facts) = merge.read_as.and_then(Release::facts) {
                    options = options.newest(facts.indexed);
                }
                let profile = IndexedProfile::parse_with(data, &options)?;
                Ok(Source::Indexed(Box::new(profile.records())))
            }
            FileKind::InstrText => Ok(Source::Text(Box::new(TextReader::parse(data)?))),
            // LLVM treats a file as text if its first eight bytes are text.
            _ if !tolerant && is_text(data) => Ok(Source::Text(Box::new(TextReader::parse(data)?))),
            FileKind::Unknown => Err(not_a_profile(FileKind::Unknown)
                .at(0)
                .within(Structure::FirstBytes)
                .found(format_args!(
                    "the bytes {:02x?}",
                    data.get(..8).unwrap_or(data)
                ))
                .expected("the magic number of a profile, or text")),
            other => Err(not_a_profile(other)),
        }
    }

    pub(crate) fn get(&mut self) -> &mut dyn InstrSource {
        match self {
            Source::Raw(reader) => reader.as_mut(),
            Source::Indexed(reader) => reader.as_mut(),
            Source::Text(reader) => reader.as_mut(),
        }
    }

    pub(crate) fn memprof(&self) -> Option<MemProfSection> {
        match self {
            Source::Indexed(reader) => reader.profile().memprof(),
            _ => None,
        }
    }

    /// LLVM's error for an indexed file that has a function without a name, as far as its table of functions is sound.
    pub(crate) fn empty_name(&self) -> Option<Error> {
        let Source::Indexed(reader) = self else {
            return None;
        };
        let mut names = reader.profile().records();
        while let Ok(Some(name)) = names.next_name() {
            if name.name().is_empty() {
                let error = Error::new(ErrorKind::Malformed, "a function has no name");
                return Some(error.at(name.offset()).llvm_detail("symbol name is empty"));
            }
        }
        None
    }

    /// The position in the file of the profile that is being read, counted from 1.
    pub(crate) fn profiles_seen(&self) -> usize {
        match self {
            Source::Raw(reader) => reader.profiles_seen(),
            _ => 1,
        }
    }

    pub(crate) fn current_ids(&mut self) -> Vec<BuildId> {
        match self {
            Source::Raw(reader) => reader
                .profile()
                .and_then(|profile| profile.binary_ids().ok())
                .unwrap_or_default(),
            other => other.get().binary_ids().unwrap_or_default(),
        }
    }

    pub(crate) fn current_kind(&mut self) -> InstrKind {
        match self {
            Source::Raw(reader) => reader.profile().map_or(reader.kind(), |profile| {
                InstrKind::from_version_word(profile.dialect().version_word())
            }),
            other => other.get().kind(),
        }
    }

    /// With `separate`, there is one entry for each profile of a raw file.
    pub(crate) fn traces(&mut self, separate: bool) -> Result<Vec<TemporalTraces>, Error> {
        match self {
            Source::Raw(reader) if separate => Ok(reader.traces_of_profiles()),
            other => Ok(vec![other.get().temporal_traces()?]),
        }
    }

    /// A number that is larger for a later record. `ordinal` is the number of records of the file before this one.
    pub(crate) fn place(&self, ordinal: u64) -> u64 {
        match self {
            // An entry of the hash table is longer than 8 bytes, so the offset divided by 8 differs for each name.
            Source::Indexed(reader) => reader.record_offset() >> 3,
            _ => ordinal,
        }
    }
}

/// For every file that is no profile, LLVM's text is "unrecognized format" (`InstrProfReader::create`).
fn not_a_profile(kind: FileKind) -> Error {
    let error = |message: &'static str| Error::new(ErrorKind::UnrecognizedFormat, message);
    match kind {
        FileKind::MemProfRaw => {
            error("the file is a raw MemProf profile, not an instrumentation profile")
                .with_hint("merge raw heap profiles together with the programs that wrote them")
        }
        kind if kind.is_sample() => {
            error("the file is a sample profile, not an instrumentation profile")
                .with_hint("merge sample profiles separately: they count samples, not executions")
        }
        kind if kind.is_mip() => error("the file is a MIP file, not an instrumentation profile")
            .with_hint("merge raw files of MIP into the profile of their build"),
        FileKind::MemProfYaml => {
            error("the file is a heap profile, not an instrumentation profile")
                .with_hint("merge heap profiles separately, or with indexed profiles")
        }
        FileKind::ObjectFile => error("the file is a program, not a profile")
            .with_hint("run the program, and give the .profraw file that it writes as the input"),
        FileKind::Unknown => error("the file is not a profile of any known kind")
            .with_hint("name profiles only, or folders that hold nothing else"),
        kind => {
            let error = error("the file is not a profile").found(kind.description());
            match kind.advice() {
                Some(advice) => error.with_hint(advice),
                None => error.with_hint("name profiles only, or folders that hold nothing else"),
            }
        }
    }
}

/// The error of the LLVM release in [`MergeOptions::read_as`](crate::MergeOptions), if it does not read this version.
pub(crate) fn llvm_refuses(context: &Context<'_, '_>, kind: FileKind, word: u64) -> Option<Error> {
    let release = context.options.read_as?;
    let facts = release.facts()?;
    let version = u32::try_from(word & variant::VERSION_MASK).unwrap_or(u32::MAX);
    let refused = match kind {
        FileKind::InstrRaw => !facts.reads_raw(version),
        FileKind::InstrIndexed => !facts.reads_indexed(version),
        _ => false,
    };
    refused.then(|| {
        let error = Error::new(
            ErrorKind::UnsupportedVersion,
            "the version is not supported",
        )
        .found(format_args!("version {version}"))
        .with_hint(format!("llvm-profdata of LLVM {release} does not read it"));
        match kind {
            // LLVM 18 and later print the version of the file in this error (`raw_profile_version_mismatch`).
            FileKind::InstrRaw if release >= Release::new(18) => {
                error.llvm_detail(version_mismatch(version, facts.raw))
            }
            _ => error,
        }
    })
}
