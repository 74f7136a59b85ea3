//! Opening an input as what it is.
use super::Context;
use crate::MergeOptions;
use crate::driver::OpenedInput;
use profkit_abi::variant;
use profkit_data::detect::{FileKind, is_text};
use profkit_data::ids::BuildId;
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions, IndexedReader};
use profkit_data::instr::raw::{RawReadOptions, RawReader, version_mismatch};
use profkit_data::instr::releases::Release;
use profkit_data::instr::text::TextReader;
use profkit_data::instr::{InstrKind, InstrSource, MemProfSection, TemporalTraces};
use profkit_data::{Error, ErrorKind, Structure};

/// The reader of whatever kind the input is.
pub(crate) enum Source<'data> {
    Raw(Box<RawReader<'data>>),
    Indexed(Box<IndexedReader<'data>>),
    Text(Box<TextReader<'data>>),
}

impl<'data> Source<'data> {
    /// Opens an input by its content; `tolerant` reads what is left of a damaged raw or indexed file.
    pub(crate) fn open(
        input: &'data OpenedInput<'_>,
        tolerant: bool,
        merge: &'data MergeOptions,
    ) -> Result<Self, Error> {
        let data = input.bytes();
        match input.kind {
            FileKind::InstrRaw | FileKind::Empty => {
                let options = RawReadOptions::default().salvage(tolerant);
                Ok(Source::Raw(Box::new(match &merge.correlation {
                    Some(source) => RawReader::parse_correlated(data, &options, &**source)?,
                    None => RawReader::parse_with(data, &options)?,
                })))
            }
            FileKind::InstrIndexed => {
                let options = IndexedReadOptions::new().salvage(tolerant);
                let profile = IndexedProfile::parse_with(data, &options)?;
                Ok(Source::Indexed(Box::new(profile.records())))
            }
            FileKind::InstrText => Ok(Source::Text(Box::new(TextReader::parse(data)?))),
            // LLVM looks at eight bytes.
            _ if !tolerant && is_text(data) => Ok(Source::Text(Box::new(TextReader::parse(data)?))),
            FileKind::Unknown => Err(not_a_profile(FileKind::Unknown)
                .at(0)
                .within(Structure::FirstBytes)
                .found(format_args!("{:02x?}", data.get(..8).unwrap_or(data)))
                .expected("the magic of a profile, or text")),
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

    /// Which profile of the file is being read.
    pub(crate) fn profiles_seen(&self) -> usize {
        match self {
            Source::Raw(reader) => reader.profiles_seen(),
            _ => 1,
        }
    }

    /// The build ids of the profile that is being read.
    pub(crate) fn current_ids(&mut self) -> Vec<BuildId> {
        match self {
            Source::Raw(reader) => reader
                .profile()
                .and_then(|profile| profile.binary_ids().ok())
                .unwrap_or_default(),
            other => other.get().binary_ids().unwrap_or_default(),
        }
    }

    /// What the profile that is being read counts.
    pub(crate) fn current_kind(&mut self) -> InstrKind {
        match self {
            Source::Raw(reader) => reader.profile().map_or(reader.kind(), |profile| {
                InstrKind::from_version_word(profile.dialect().version_word())
            }),
            other => other.get().kind(),
        }
    }

    /// The temporal traces: those of the file, or if they are to be `separate`, those of each of its profiles.
    pub(crate) fn traces(&mut self, separate: bool) -> Result<Vec<TemporalTraces>, Error> {
        match self {
            Source::Raw(reader) if separate => Ok(reader.traces_of_profiles()),
            other => Ok(vec![other.get().temporal_traces()?]),
        }
    }

    /// The number that orders the record read last among those of its file.
    pub(crate) fn place(&self, ordinal: u64) -> u64 {
        match self {
            // Items are longer than 8 bytes, so that this is different for each name, also when only a share is read.
            Source::Indexed(reader) => reader.record_offset() >> 3,
            _ => ordinal,
        }
    }
}

/// `InstrProfReader::create` of LLVM says "unrecognized format" of all of these.
fn not_a_profile(kind: FileKind) -> Error {
    let error = |message: &'static str| Error::new(ErrorKind::UnrecognizedFormat, message);
    match kind {
        FileKind::MemProfRaw => {
            error("the file is a raw MemProf profile, not an instrumentation profile")
                .with_hint("raw heap profiles are merged with the programs that they are of")
        }
        kind if kind.is_sample() => {
            error("the file is a sample profile, not an instrumentation profile")
                .with_hint("merge sample profiles on their own: what they count is something else")
        }
        kind if kind.is_mip() => error("the file is a MIP file, which has a merge of its own")
            .with_hint("merge raw files of MIP into the profile of their build"),
        FileKind::MemProfYaml => {
            error("the file is a heap profile, not an instrumentation profile")
                .with_hint("merge heap profiles on their own, or with profiles in indexed files")
        }
        FileKind::ObjectFile => error("the file is a program, not a profile")
            .with_hint("run the program and name the .profraw file that it writes"),
        _ => error("the file is not a profile of any known kind")
            .with_hint("name profiles only, or folders that hold nothing else"),
    }
}

/// The error of an LLVM release that does not read this version, as [`MergeOptions::read_as`](crate::MergeOptions)
/// asks for.
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
            // LLVM 18 and later say what they found (`raw_profile_version_mismatch`).
            FileKind::InstrRaw if release >= Release::new(18) => {
                error.llvm_detail(version_mismatch(version, facts.raw))
            }
            _ => error,
        }
    })
}
