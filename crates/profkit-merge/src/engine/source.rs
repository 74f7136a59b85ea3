//! Opens an input with the reader for its format, which is recognised by the content.
use super::Context;
use crate::MergeOptions;
use crate::driver::OpenedInput;
use profkit_abi::variant;
use profkit_data::detect::{FileKind, is_text};
use profkit_data::instr::raw::version_mismatch;
use profkit_data::instr::{InstrReadOptions, InstrReader, InstrSource, TemporalTraces};
use profkit_data::releases::Release;
use profkit_data::{Error, ErrorKind, Structure};

/// Opens an input with the reader for its content. If `tolerant` is set, a damaged raw or indexed file is read as far as
/// it is sound.
pub(crate) fn open<'data>(
    input: &'data OpenedInput<'_>,
    tolerant: bool,
    context: &'data Context<'_, '_>,
) -> Result<InstrReader<'data>, Error> {
    open_with(input, tolerant, context.options, context.joined.is_some())
}

/// As [`open`]. `table_is_checked` says that the function table of an indexed file is not to be checked.
pub(crate) fn open_with<'data>(
    input: &'data OpenedInput<'_>,
    tolerant: bool,
    merge: &'data MergeOptions,
    table_is_checked: bool,
) -> Result<InstrReader<'data>, Error> {
    let data = input.bytes();
    let kind = match input.kind {
        kind @ (FileKind::InstrRaw
        | FileKind::InstrIndexed
        | FileKind::InstrText
        | FileKind::Empty) => kind,
        // LLVM treats a file as text if its first eight bytes are text.
        _ if !tolerant && is_text(data) => FileKind::InstrText,
        kind => kind,
    };
    let options = InstrReadOptions {
        salvage: tolerant,
        llvm_checks: !tolerant,
        table_is_checked,
        newest_indexed: merge
            .read_as
            .and_then(Release::facts)
            .map(|facts| facts.indexed),
        metadata: merge.correlation.as_deref().map(|source| source as _),
    };
    let opened = InstrReader::open_as(kind, data, &options)?;
    opened.ok_or_else(|| match kind {
        FileKind::Part(_) if merge.order_free => {
            let error = crate::part::examine(data).err();
            error.unwrap_or_else(|| not_a_profile(kind))
        }
        FileKind::Unknown => not_a_profile(FileKind::Unknown)
            .at(0)
            .within(Structure::FirstBytes)
            .found(format_args!(
                "the bytes {:02x?}",
                data.get(..8).unwrap_or(data)
            ))
            .expected("the magic number of a profile, or text"),
        other => not_a_profile(other),
    })
}

/// Returns LLVM's error for an indexed file that has a function without a name. If the table of functions is damaged,
/// only the names before the damage are checked. Returns `None` if every checked name is sound, or if the file is not an
/// indexed file.
pub(crate) fn empty_name(source: &InstrReader<'_>) -> Option<Error> {
    let InstrReader::Indexed(reader) = source else {
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

/// Returns the temporal traces of the file. If `separate` is set, there is one entry for each profile of a raw file.
pub(crate) fn traces(
    source: &mut InstrReader<'_>,
    separate: bool,
) -> Result<Vec<TemporalTraces>, Error> {
    match source {
        InstrReader::Raw(reader) if separate => Ok(reader.traces_of_profiles()),
        other => Ok(vec![other.temporal_traces()?]),
    }
}

/// Returns the error for a file that is not an instrumentation profile. For every such file, LLVM's text is
/// "unrecognized format" (`InstrProfReader::create`).
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

/// If [`MergeOptions::read_as`](crate::MergeOptions) names an LLVM release that does not read this version of the file,
/// returns the error of that release. `word` is the version word of the file.
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
