//! Correlation of raw profiles, as `mergeInstrProfile` of `llvm-profdata.cpp` does it. Either one binary or debug info
//! file serves all inputs (`--binary-file`, `--debug-info`), or each input has its own file, which is found by its
//! build id (`--correlate`).
use super::inputs::InputList;
use super::path_from_bytes;
use crate::command_line::Parsed;
use crate::lines::Lines;
use crate::messages::{Fault, Session, fault_text};
use crate::output::{self, Output};
use profkit_abi::raw::VERSION_LLVM_22;
use profkit_analysis::correlate::{
    Artifact, BinaryServers, JoinedMetadata, Key, ServersError, profiles_in,
    servers_from_environment,
};
use profkit_data::ids::BuildId;
use profkit_data::instr::raw::{
    PointerWidth, RawDialect, RawMetadata, RawMetadataSource, RawProfile, RecordLayout,
};
use profkit_data::{Error, ErrorKind};
use profkit_merge::files::system_text;
use profkit_merge::{Inputs, LlvmFault};
use profkit_object::binary::{BinaryFile, Image};
use profkit_object::correlate::binary::{self, Outside, SectionSet};
use profkit_object::correlate::dwarf::{self, DwarfOptions};
use profkit_object::correlate::{CorrelationWarnings, CounterSection, machine};
use profkit_object::debug_files::{DebugFolders, SYSTEM_DEBUG_FOLDER, dsym_files};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The source of the metadata of profiles: the debug info of a program, or sections of its binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    DebugInfo,
    Binary,
}

/// The source from which the profiles of a merge get their metadata.
pub type Source = Arc<dyn RawMetadataSource + Send>;

/// Checks the options and reads the binaries that they name.
///
/// # Errors
/// If options contradict each other, or if a named file cannot be used.
pub fn source(
    parsed: &Parsed,
    inputs: &InputList,
    session: &Session<'_>,
) -> Result<Option<Source>, Fault> {
    let (debug_info, binary) = (parsed.text("debug-info"), parsed.text("binary-file"));
    let use_debuginfod = parsed.flag("debuginfod");
    let folders: Vec<_> = parsed
        .texts("debug-file-directory")
        .map(path_from_bytes)
        .collect();
    let by_id = use_debuginfod || !folders.is_empty();
    if debug_info.is_empty() {
        if !binary.is_empty() && by_id {
            return Err(Fault::new(
                "Expected only one of -binary-file, -debuginfod or -debug-file-directory",
            ));
        }
    } else if !binary.is_empty() || by_id {
        return Err(Fault::new(
            "Expected only one of -debug-info, -binary-file, -debuginfod or -debug-file-directory",
        ));
    }
    let limit = parsed
        .number("max-debug-info-correlation-warnings")
        .unwrap_or(DEFAULT_WARNINGS);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut source: Option<Source> = None;
    for (name, kind) in [(debug_info, Kind::DebugInfo), (binary, Kind::Binary)] {
        if !name.is_empty() {
            let one = read(&path_from_bytes(name), kind, limit, session)
                .map_err(|refusal| refusal.fault(name))?;
            source = Some(Arc::new(one));
        }
    }
    let kind = match parsed.word("correlate") {
        Some("debug-info") => Some(Kind::DebugInfo),
        Some("binary") => Some(Kind::Binary),
        _ => None,
    };
    match (by_id, kind) {
        (true, None) if use_debuginfod => Err(Fault::new(
            "Expected --correlate when --debuginfod is provided",
        )),
        (true, None) => Err(Fault::new(
            "Expected --correlate when --debug-file-directory is provided",
        )),
        (false, Some(_)) => Err(Fault::new(
            "Expected --debuginfod or --debug-file-directory when --correlate is provided",
        )),
        (false, None) => Ok(source),
        (true, Some(kind)) => {
            let finder = Finder {
                folders,
                servers: if use_debuginfod {
                    Some(servers_from_environment(None, None).map_err(no_servers)?)
                } else {
                    None
                },
            };
            Ok(Some(Arc::new(by_build_id(inputs, kind, &finder, session))))
        }
    }
}

const DEFAULT_WARNINGS: u64 = 5;

fn no_servers(error: ServersError) -> Fault {
    Fault::new(match error {
        ServersError::NotBuilt => "--debuginfod: this profkit was built without the cargo feature `debuginfod`: fetch the file with debuginfod-find, or name a folder of binaries".to_owned(),
        ServersError::Variable(text) => text,
    })
}

/// The reason why a file gives no metadata.
enum NoMetadata {
    /// The problem has no error code among those of LLVM's profile library. LLVM prints only this text.
    Plain(String),
    Profile(Box<Error>),
}

impl NoMetadata {
    fn fault(&self, name: &[u8]) -> Fault {
        match self {
            NoMetadata::Plain(text) => Fault::of(name, text.as_bytes()),
            NoMetadata::Profile(error) => Fault::of(name, fault_text(&LlvmFault::from(&**error))),
        }
    }
}

impl From<Error> for NoMetadata {
    fn from(error: Error) -> Self {
        NoMetadata::Profile(Box::new(error))
    }
}

fn unable(detail: &'static str) -> Error {
    ErrorKind::CannotCorrelate.error(detail).llvm_detail(detail)
}

/// The metadata of one program, which are used for all inputs.
#[derive(Debug)]
struct One {
    width: PointerWidth,
    metadata: RawMetadata,
}

impl RawMetadataSource for One {
    fn metadata(&self, profile: &RawProfile<'_>) -> Result<Option<&RawMetadata>, Error> {
        let header = profile.header();
        if profile.dialect().width != self.width {
            // LLVM has one correlator per pointer width. If the profile and the binary have different pointer widths,
            // LLVM behaves as if there were no correlator.
            return Ok(None);
        }
        let bare = header.num_data == 0
            && header.names_size == 0
            && header.counters_delta == 0
            && header.names_delta == 0;
        if !bare {
            return Err(
                ErrorKind::UnexpectedCorrelation.error("the profile has records of its own")
            );
        }
        Ok(self.metadata.fits(profile).then_some(&self.metadata))
    }
}

/// Opens a binary, and calls `take` with the object file that the binary contains.
fn with_image<T>(
    path: &Path,
    kind: Kind,
    take: impl FnOnce(&Image<'_>) -> Result<T, Error>,
) -> Result<T, NoMetadata> {
    let mut path = path.to_owned();
    if kind == Kind::DebugInfo
        && path.is_dir()
        && path.extension().is_some_and(|name| name == "dSYM")
    {
        let mut files = dsym_files(&path);
        if files.len() > 1 {
            return Err(unable("using multiple objects is not yet supported").into());
        }
        match files.pop() {
            Some(file) => path = file,
            None => {
                let path = path.display();
                return Err(NoMetadata::Plain(format!(
                    "{path}: no objects found in dSYM bundle"
                )));
            }
        }
    }
    let file = BinaryFile::open(&path).map_err(|error| NoMetadata::Plain(system_text(&error)))?;
    let mut images = file.images().map_err(|error| match error.kind() {
        ErrorKind::Archive => unable("not an object file").into(),
        _ => NoMetadata::Plain("The file was not recognized as a valid object file".to_owned()),
    })?;
    match (images.pop(), images.is_empty()) {
        (Some(image), true) => Ok(take(&image)?),
        _ => Err(unable("not an object file").into()),
    }
}

fn read(path: &Path, kind: Kind, limit: usize, session: &Session<'_>) -> Result<One, NoMetadata> {
    with_image(path, kind, |image| {
        let (endian, width) = machine(image);
        let dialect = RawDialect {
            endian,
            width,
            version: VERSION_LLVM_22,
            flags: 0,
        };
        let layout = RecordLayout::for_dialect(dialect);
        let warnings = CorrelationWarnings::new(limit);
        let counters = CounterSection::of(image)?;
        let mut correlated = match kind {
            Kind::Binary => {
                check_format(image, Kind::Binary)?;
                let set = SectionSet::Correlation;
                binary::correlate(image, set, dialect, &layout, Outside::Keep, warnings)?
            }
            Kind::DebugInfo => {
                check_format(image, Kind::DebugInfo)?;
                dwarf::correlate(image, counters, DwarfOptions::default(), warnings)?
            }
        };
        // LLVM's records of a correlated program have no bitmaps.
        for record in &mut correlated.program.records {
            record.num_bitmap_bytes = 0;
        }
        warn(&correlated.warnings, session);
        Ok(One {
            width,
            metadata: RawMetadata::new(&correlated.program, dialect, layout)?,
        })
    })
}

fn check_format(image: &Image<'_>, kind: Kind) -> Result<(), Error> {
    use object::BinaryFormat::{Coff, Elf, MachO, Pe};
    match (kind, image.format()) {
        (Kind::Binary, Elf | Coff | Pe) | (Kind::DebugInfo, Elf | MachO) => Ok(()),
        (Kind::Binary, _) => Err(unable(
            "unsupported binary format (only ELF and COFF are supported)",
        )),
        (Kind::DebugInfo, _) => Err(unable(
            "unsupported debug info format (only DWARF is supported)",
        )),
    }
}

fn warn(warnings: &CorrelationWarnings, session: &Session<'_>) {
    for warning in &warnings.list {
        session.warning(b"", &warning.to_string());
    }
    if warnings.suppressed > 0 {
        let text = format!("Suppressed {} additional warnings", warnings.suppressed);
        session.warning(b"", &text);
    }
}

/// The places in which LLVM looks for the binary with a given build id.
struct Finder {
    folders: Vec<PathBuf>,
    servers: Option<Box<dyn BinaryServers>>,
}

impl Finder {
    fn find(&self, id: &BuildId) -> Option<PathBuf> {
        let system = [PathBuf::from(SYSTEM_DEBUG_FOLDER)];
        let folders = match self.folders.as_slice() {
            [] => &system,
            folders => folders,
        };
        let mut paths = folders
            .iter()
            .filter_map(|folder| DebugFolders::build_id_path(folder, id, ".debug"));
        paths
            .find(|path| path.exists())
            .or_else(|| self.servers.as_ref()?.find(id, Artifact::DebugInfo).ok())
    }
}

/// Reads the binary of each input. LLVM does this before it reads the inputs themselves.
fn by_build_id(
    inputs: &InputList,
    kind: Kind,
    finder: &Finder,
    session: &Session<'_>,
) -> JoinedMetadata {
    let mut joined = JoinedMetadata {
        replace: true,
        ..JoinedMetadata::default()
    };
    let mut scratch = Vec::new();
    for input in 0..inputs.len() {
        let Ok(data) = inputs.open(input, &mut scratch) else {
            continue;
        };
        for profile in profiles_in(data.as_ref()) {
            let key = Key::of(&profile);
            if joined.found.contains_key(&key) {
                continue;
            }
            let metadata = metadata_of(&key.ids, kind, finder, session);
            joined.found.insert(key, metadata);
        }
    }
    joined
}

fn metadata_of(
    ids: &[BuildId],
    kind: Kind,
    finder: &Finder,
    session: &Session<'_>,
) -> Result<RawMetadata, Error> {
    let id = match ids {
        [id] => id,
        [] => {
            return Err(unable(
                "unsupported profile binary correlation when there is no build ID in a profile",
            ));
        }
        _ => {
            return Err(unable(
                "unsupported profile binary correlation when there are multiple build IDs in a profile",
            ));
        }
    };
    let Some(path) = finder.find(id) else {
        return Err(ErrorKind::CannotCorrelate
            .error("the program was not found")
            .llvm_detail(format!("Missing build ID: {id}")));
    };
    // With `--correlate`, LLVM does not limit the number of warnings.
    match read(&path, kind, 0, session) {
        Ok(one) => Ok(one.metadata),
        Err(NoMetadata::Profile(error)) => Err(*error),
        Err(NoMetadata::Plain(text)) => Err(ErrorKind::CannotCorrelate
            .error(text.clone())
            .llvm_detail(text)),
    }
}

/// Runs `show --debug-info`, which prints the number of functions that debug info describes, or lists these functions.
pub fn show(
    parsed: &Parsed,
    format: Option<&str>,
    output: Output,
    session: &Session<'_>,
) -> Result<(), Fault> {
    let name = parsed.text("debug-info");
    if format == Some("json") {
        return Err(Fault::new(
            "JSON output is not supported for debug info correlation",
        ));
    }
    let limit = parsed
        .number("max-debug-info-correlation-warnings")
        .unwrap_or(DEFAULT_WARNINGS);
    let yaml = format == Some("yaml");
    let found = with_image(&path_from_bytes(name), Kind::DebugInfo, |image| {
        let counters = CounterSection::of(image)?;
        check_format(image, Kind::DebugInfo)?;
        let options = DwarfOptions::new().details(yaml);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let warnings = CorrelationWarnings::new(limit);
        let found = dwarf::probes(image, counters, options, warnings);
        let found = found.map_err(|error| match yaml {
            true if error.detail_for_llvm().is_some() => {
                error.llvm_detail("could not find any profile data metadata in debug info")
            }
            _ => error,
        })?;
        Ok((found, counters))
    });
    let ((probes, warnings), counters) = found.map_err(|refusal| refusal.fault(name))?;
    warn(&warnings, session);
    output::write(session, output, parsed.output(), |lines: &mut Lines<'_>| {
        if yaml {
            super::yaml::probes(&probes, lines);
            return Ok(());
        }
        let mut offsets: Vec<_> = probes.iter().map(|probe| probe.counter_offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        if parsed.flag("detailed-summary") {
            let size = counters.end.wrapping_sub(counters.start);
            lines.text(format!("Counters section size: {size:#x} bytes\n"));
        }
        lines.text(format!("Found {} functions\n", offsets.len()));
        Ok(())
    })
}
