//! MemProf as LLVM's tool reads and shows it: raw dumps with `--profiled-binary`, YAML, and `show --memory`.
//!
//! Errors are found in LLVM's order (`RawMemProfReader`): first those of the dumps' headers, then those of the binary,
//! of the dumps, and of symbolising.
use super::inputs::InputList;
use super::path_from_bytes;
use crate::command_line::Parsed;
use crate::lines::Lines;
use crate::messages::{Fault, Session};
use profkit_analysis::heap::{FrameRule, OneBinary, symbolize};
use profkit_data::bytes::{Cursor, Endian, Sink};
use profkit_data::ids::BuildId;
use profkit_data::instr::HeapSection;
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::memprof::indexed::{IndexedMemProf, IndexedMemProfOptions};
use profkit_data::memprof::raw::{HEADER_LEN, MAGIC, RawMemProf, Segment};
use profkit_data::memprof::{Field, MemProfSummary, MemProfile, Record, StackId, yaml};
use profkit_merge::memprof::{ContextRule, MemProfSum, RawContexts};
use profkit_merge::{Inputs, Threads};
use profkit_object::binary::BinaryFile;
use profkit_object::build_id::build_id;
use profkit_object::debug_files::DebugFolders;
use rustc_hash::FxHashMap;

const TRUNCATED: &str = "truncated profile data";
const MALFORMED: &str = "malformed instrumentation profile data";
const UNSUPPORTED: &str = "unsupported instrumentation profile format version";
const BAD_MAGIC: &str = "invalid instrumentation profile data (bad magic)";
/// The raw versions of heap profiles that LLVM 22 reads.
const RAW_VERSIONS: std::ops::RangeInclusive<u64> = 3..=5;
/// The version of the MemProf section that is written if no option names a version.
const DEFAULT_VERSION: u32 = 3;

/// Whether LLVM recognises a file as a raw heap profile.
pub fn is_raw(data: &[u8]) -> bool {
    data.first_chunk() == Some(&MAGIC.to_le_bytes())
}

/// An error of a heap profile. `context` is the name of the file or binary that LLVM's reader puts before the message,
/// followed by a line break; `None` if the reader puts no name there.
struct HeapFault {
    context: Option<Vec<u8>>,
    message: String,
}

impl HeapFault {
    fn new(message: impl Into<String>) -> Self {
        HeapFault {
            context: None,
            message: message.into(),
        }
    }

    fn of(context: &[u8], message: impl Into<String>) -> Self {
        HeapFault {
            context: Some(context.to_vec()),
            message: message.into(),
        }
    }

    fn text(self) -> Vec<u8> {
        match self.context {
            Some(mut context) => {
                context.push(b'\n');
                context.extend_from_slice(self.message.as_bytes());
                context
            }
            None => self.message.into_bytes(),
        }
    }
}

fn malformed(detail: impl std::fmt::Display) -> HeapFault {
    HeapFault::new(format!("{MALFORMED}: {detail}"))
}

struct Raw {
    profile: MemProfile,
    version: u32,
    segments: Vec<Segment>,
    /// The number of call stacks that still have a frame after symbolising.
    stacks: usize,
}

/// Reads a raw profile as LLVM does.
fn read_raw(name: &[u8], data: &[u8], parsed: &Parsed) -> Result<Raw, HeapFault> {
    check_headers(name, data)?;
    let profile = RawMemProf::parse(data).map_err(|_| HeapFault::of(name, MALFORMED))?;
    if profile.damage().is_some() {
        return Err(HeapFault::of(name, MALFORMED));
    }
    let binary = parsed.text("profiled-binary");
    if binary.is_empty() {
        return Err(no_binary(&profile));
    }
    let id = check_binary(binary)?;
    let segments = check_dumps(&profile)?;
    let shown = String::from_utf8_lossy(binary);
    let Some(id) = id else {
        return Err(HeapFault::new(format!(
            "No build id found in binary {shown}"
        )));
    };
    match segments
        .iter()
        .filter(|segment| segment.build_id == id)
        .count()
    {
        0 => {
            return Err(HeapFault::new(format!(
                "No matching executable segments found in binary {shown}"
            )));
        }
        1 => {}
        _ => {
            return Err(HeapFault::new(
                "We expect only one executable segment in the profiled binary",
            ));
        }
    }
    let mut contexts = RawContexts::default();
    let mut first = None;
    contexts.add(&profile, |skipped| {
        // If one dump has two stacks with the same id, LLVM uses the second. Two dumps with different stacks for the
        // same id have already been rejected.
        if skipped.lost {
            first.get_or_insert(skipped.error);
        }
    });
    let source = OneBinary {
        path: path_from_bytes(binary),
        id,
        folders: DebugFolders {
            folders: Vec::new(),
        },
    };
    let symbolized = symbolize(&contexts, &source, FrameRule::Compiler);
    if symbolized.known_stacks == 0 {
        return Err(malformed("no entries in callstack map after symbolization"));
    }
    if let Some(error) = first {
        return Err(match error.detail_for_llvm() {
            Some(detail) => malformed(detail),
            None => HeapFault::new(MALFORMED),
        });
    }
    Ok(Raw {
        profile: symbolized.profile,
        version: contexts.newest_version(),
        segments,
        stacks: symbolized.known_stacks,
    })
}

/// Checks the headers of all dumps as `checkBuffer` does: the version of a header first, then the size.
fn check_headers(name: &[u8], data: &[u8]) -> Result<(), HeapFault> {
    if data.len() < HEADER_LEN {
        return Err(HeapFault::of(name, TRUNCATED));
    }
    let mut at = 0u64;
    while at < data.len() as u64 {
        let mut cursor = Cursor::new(data, 0, Endian::Little);
        let mut words = || {
            cursor.take_u64(at + 8)?;
            profkit_data::Result::Ok((cursor.u64()?, cursor.u64()))
        };
        let (version, size) = match words() {
            Ok((version, Ok(size))) => (version, size),
            Ok((version, Err(_))) => (version, 0),
            // The rest of the file is too short for another header.
            Err(_) => (0, 0),
        };
        if !RAW_VERSIONS.contains(&version) {
            return Err(HeapFault::of(name, UNSUPPORTED));
        }
        at = at.saturating_add(size);
        if size == 0 || at > data.len() as u64 {
            return Err(HeapFault::of(name, MALFORMED));
        }
    }
    Ok(())
}

fn no_binary(profile: &RawMemProf<'_>) -> HeapFault {
    let mut message = String::from(
        "Path to profiled binary is empty, expected binary with one of the following build ids:\n",
    );
    let mut seen: Vec<BuildId> = Vec::new();
    for dump in profile.dumps() {
        for segment in dump.segments().unwrap_or_default() {
            if seen.contains(&segment.build_id) {
                continue;
            }
            message.push_str("\n BuildId: ");
            message.push_str(&id_text(&segment.build_id));
            seen.push(segment.build_id);
        }
    }
    HeapFault::of(b"", message)
}

fn id_text(id: &BuildId) -> String {
    if id.0.is_empty() {
        "<None>".to_owned()
    } else {
        id.to_string()
    }
}

/// Checks that LLVM can use the binary, and returns its build id.
fn check_binary(name: &[u8]) -> Result<Option<BuildId>, HeapFault> {
    use object::{Object, ObjectSegment};
    let file = BinaryFile::open(&path_from_bytes(name))
        .map_err(|error| HeapFault::of(name, profkit_merge::files::system_text(&error)))?;
    let image = file
        .image(|_| true)
        .map_err(|_| HeapFault::of(name, "The file was not recognized as a valid object file"))?;
    if image.format() != object::BinaryFormat::Elf {
        return Err(HeapFault::of(name, "Not an ELF file: "));
    }
    let executable = image.segments().filter(|segment| match segment.flags() {
        object::SegmentFlags::Elf { p_flags, .. } => (p_flags & object::elf::PF_X).0 != 0,
        _ => false,
    });
    if executable.count() > 1 {
        return Err(HeapFault::of(
            name,
            "Expect only one executable load segment in the binary",
        ));
    }
    if !matches!(
        image.architecture(),
        object::Architecture::X86_64 | object::Architecture::I386
    ) {
        return Err(HeapFault::of(
            name,
            format!(
                "Unsupported target: {}",
                profkit_object::binary::architecture_name(&image)
            ),
        ));
    }
    build_id(&image).map_err(|error| HeapFault::of(name, error.to_string()))
}

/// Checks that all dumps of a file agree on their segments and stacks (`readRawProfile`).
fn check_dumps(profile: &RawMemProf<'_>) -> Result<Vec<Segment>, HeapFault> {
    let mut all: Vec<Segment> = Vec::new();
    let mut stacks: FxHashMap<u64, Vec<[u8; 8]>> = FxHashMap::default();
    let several = profile.dumps().len() > 1;
    for dump in profile.dumps() {
        let segments = dump.segments().map_err(|_| HeapFault::new(MALFORMED))?;
        if !all.is_empty() && all != segments {
            return Err(malformed(
                "memprof raw profile has different segment information",
            ));
        }
        all = segments;
        if !several {
            break;
        }
        for stack in dump.stacks().map_err(|_| HeapFault::new(MALFORMED))? {
            let (id, pcs) = stack.map_err(|_| HeapFault::new(MALFORMED))?;
            if stacks.entry(id).or_insert_with(|| pcs.to_vec()) != pcs {
                return Err(malformed(
                    "memprof raw profile got different call stack for same id",
                ));
            }
        }
    }
    Ok(all)
}

/// The heap profiles among the inputs of a merge.
#[derive(Debug)]
pub struct Heap {
    /// The sum of the heap profiles.
    pub profile: MemProfile,
    /// The number of inputs that could not be used.
    pub bad: usize,
    /// The name of the first input that is a heap profile.
    pub first: Vec<u8>,
}

enum Content {
    Raw(MemProfile),
    /// A heap profile in YAML, or the error if the text is not a valid heap profile.
    Yaml(profkit_data::Result<MemProfile>),
}

fn read_input(
    name: &[u8],
    inputs: &InputList,
    index: usize,
    parsed: &Parsed,
) -> Result<Content, Fault> {
    let mut scratch = Vec::new();
    let data = inputs
        .open(index, &mut scratch)
        .map_err(|error| Fault::io(name, &error))?;
    let data = data.as_ref();
    if !is_raw(data) {
        return Ok(Content::Yaml(yaml::parse(data)));
    }
    match read_raw(name, data, parsed) {
        Ok(raw) => Ok(Content::Raw(raw.profile)),
        Err(refusal) => Err(Fault::of(name, refusal.text())),
    }
}

/// Reads and adds the heap profiles among the inputs. Returns `None` if there are none. Several inputs are read at the
/// same time, but they are added in their order.
///
/// # Errors
/// The error of the first raw profile that LLVM rejects.
pub fn load(
    parsed: &Parsed,
    inputs: &InputList,
    indexes: &[usize],
    threads: &Threads,
    session: &Session<'_>,
) -> Result<Option<Heap>, Fault> {
    let mut sum = MemProfSum::new(ContextRule::Append);
    let mut bad = 0;
    let name_of = |index: usize| {
        let file = inputs.files.get(index);
        file.map_or(b"".as_slice(), |file| &file.name)
    };
    // A symbolised dump can be large. So only a few dumps are in memory at the same time: two for each thread, which is
    // enough to keep all threads busy.
    for batch in indexes.chunks(2 * threads.count()) {
        let read = threads.map(batch.to_vec(), |index| {
            (index, read_input(name_of(index), inputs, index, parsed))
        });
        for (index, content) in read {
            let yaml = match content? {
                Content::Raw(profile) => {
                    sum.add(&profile);
                    continue;
                }
                Content::Yaml(yaml) => yaml,
            };
            if let Err(error) = &yaml
                && error.kind() != profkit_data::ErrorKind::Empty
            {
                session.put(format!("{}\n", yaml_text(error)).as_bytes());
            }
            match yaml {
                Ok(profile) if !profile.is_empty() => sum.add(&profile),
                _ => {
                    session.warning(name_of(index), "The profile is empty.");
                    bad += 1;
                }
            }
        }
    }
    let first = indexes.first().map(|&index| name_of(index).to_vec());
    Ok(first.map(|first| Heap {
        profile: sum.finish(),
        bad,
        first,
    }))
}

/// Returns the text for an error in YAML: the place in LLVM's form, then profkit's own message.
fn yaml_text(error: &profkit_data::Error) -> String {
    let (line, column) = error.line_column().unwrap_or((1, 1));
    let mut text = format!("YAML:{line}:{column}: error: {}", error.message());
    if let Some(found) = error.found_text() {
        text.push_str(&format!(": found {found}"));
    }
    if let Some(expected) = error.expected_text() {
        text.push_str(&format!(", expected {expected}"));
    }
    text
}

/// Makes the MemProf section of an indexed profile, in the version that the options name. If the merged profile already
/// has a MemProf section (`indexed`), the result contains its records and those of `profile`.
///
/// # Errors
/// If a table of the section is too large for its format.
pub fn section(
    parsed: &Parsed,
    profile: MemProfile,
    indexed: Option<HeapSection>,
) -> Result<HeapSection, Fault> {
    let fault = |error: profkit_data::Error| Fault::profile(parsed.output(), &error);
    let profile = match indexed {
        Some(section) => {
            let before = section.profile().map_err(fault)?;
            let mut sum = MemProfSum::new(ContextRule::Append);
            sum.add(&before);
            sum.add(&profile);
            sum.finish()
        }
        None => profile,
    };
    let version = match parsed.word("memprof-version") {
        Some(version) => version.parse().unwrap_or(DEFAULT_VERSION),
        None => DEFAULT_VERSION,
    };
    let options = IndexedMemProfOptions::for_version(version, parsed.flag("memprof-full-schema"));
    Ok(HeapSection::Profile(Box::new(profile), options))
}

/// Runs `show --memory`.
///
/// # Errors
/// Those of LLVM's tool. For an indexed profile without a MemProf section, LLVM's tool crashes; profkit reports an
/// error.
pub fn show(
    session: &Session<'_>,
    name: &[u8],
    parsed: &Parsed,
    lines: &mut Lines<'_>,
) -> Result<(), Fault> {
    let bytes = session.read(name)?;
    let data = bytes.as_ref();
    if is_raw(data) {
        let raw = read_raw(name, data, parsed).map_err(|refusal| Fault::new(refusal.text()))?;
        summary(lines, MemProfSummary::of(&raw.profile));
        show_raw(lines, &raw);
        return Ok(());
    }
    if data.first_chunk() != Some(&profkit_abi::indexed::MAGIC.to_le_bytes()) {
        return Err(Fault::of(name, BAD_MAGIC));
    }
    let fault = |error: profkit_data::Error| Fault::profile(name, &error);
    let profile = IndexedProfile::parse(data).map_err(fault)?;
    let Some(section) = profile.memprof() else {
        return Err(Fault::of(name, "the profile has no MemProf section"));
    };
    let end = usize::try_from(section.offset)
        .unwrap_or(usize::MAX)
        .saturating_add(section.bytes.len());
    section.check_version_as_llvm().map_err(fault)?;
    let section =
        IndexedMemProf::parse(data.get(..end).unwrap_or(data), section.offset).map_err(fault)?;
    let heap = section.to_profile().map_err(fault)?;
    summary(
        lines,
        section
            .summary()
            .unwrap_or_else(|| MemProfSummary::of(&heap)),
    );
    if let Some(data) = &heap.data_access {
        for (what, count) in [
            ("Num hot symbols and string literals", data.records.len()),
            ("Num known cold symbols", data.cold_symbols.len()),
            ("Num known cold string literals", data.cold_hashes.len()),
        ] {
            lines
                .text(b"#   ")
                .text(what)
                .text(b": ")
                .number(count as u64)
                .end();
        }
    }
    let mut out = Vec::new();
    yaml::write(&heap, &mut out as &mut dyn Sink).map_err(fault)?;
    lines.text(&out);
    Ok(())
}

fn summary(lines: &mut Lines<'_>, summary: MemProfSummary) {
    lines.text(b"---").end();
    lines.text(b"# MemProfSummary:").end();
    for (what, count) in [
        ("Total contexts", summary.contexts),
        ("Total cold contexts", summary.cold_contexts),
        ("Total hot contexts", summary.hot_contexts),
        ("Maximum cold context total size", summary.max_cold_size),
        ("Maximum warm context total size", summary.max_warm_size),
        ("Maximum hot context total size", summary.max_hot_size),
    ] {
        lines
            .text(b"#   ")
            .text(what)
            .text(b": ")
            .number(count)
            .end();
    }
}

/// Prints a raw profile as `RawMemProfReader::printYAML` does.
fn show_raw(lines: &mut Lines<'_>, raw: &Raw) {
    let records = raw.profile.records();
    let allocating = || {
        records
            .iter()
            .filter(|record| !record.alloc_sites.is_empty())
    };
    let sites: usize = allocating().map(|record| record.alloc_sites.len()).sum();
    lines.text(b"MemprofProfile:").end();
    lines.text(b"  Summary:").end();
    for (what, count) in [
        ("Version", u64::from(raw.version)),
        ("NumSegments", raw.segments.len() as u64),
        ("NumMibInfo", sites as u64),
        ("NumAllocFunctions", allocating().count() as u64),
        ("NumStackOffsets", raw.stacks as u64),
    ] {
        lines
            .text(b"    ")
            .text(what)
            .text(b": ")
            .number(count)
            .end();
    }
    lines.text(b"  Segments:").end();
    for segment in &raw.segments {
        lines.text(b"  -").end();
        lines
            .text(b"    BuildId: ")
            .text(id_text(&segment.build_id))
            .end();
        for (what, address) in [
            ("Start", segment.start),
            ("End", segment.end),
            ("Offset", segment.offset),
        ] {
            lines.text(format!("    {what}: {address:#X}")).end();
        }
    }
    lines.text(b"  Records:").end();
    for record in records {
        show_record(lines, &raw.profile, record);
        lines.flush_if_full();
    }
}

fn show_record(lines: &mut Lines<'_>, profile: &MemProfile, record: &Record) {
    lines.text(b"  -").end();
    lines
        .text(b"    FunctionGUID: ")
        .number(record.function)
        .end();
    if !record.alloc_sites.is_empty() {
        lines.text(b"    AllocSites:").end();
    }
    for site in &record.alloc_sites {
        lines.text(b"    -").end();
        lines.text(b"      Callstack:").end();
        show_frames(lines, profile, site.stack, false);
        lines.text(b"      MemInfoBlock:").end();
        for field in Field::ALL {
            let value = site.block.get(field);
            lines
                .text(b"        ")
                .text(field.name())
                .text(b": ")
                .number(value)
                .end();
        }
        if !site.histogram.is_empty() {
            lines.text(b"        AccessHistogramValues:");
            for &value in &site.histogram {
                lines.text(b" ").number(value);
            }
            lines.end();
        }
    }
    if !record.call_sites.is_empty() {
        lines.text(b"    CallSites:").end();
    }
    for site in &record.call_sites {
        show_frames(lines, profile, site.stack, true);
    }
}

/// Prints the frames of a stack. If `items` is true (for call sites), each frame is an item of a list.
fn show_frames(lines: &mut Lines<'_>, profile: &MemProfile, stack: StackId, items: bool) {
    for frame in profile.stack(stack) {
        if items {
            lines.text(b"    -").end();
        }
        let name = profile.names.get(&frame.function);
        lines.text(b"      -").end();
        lines
            .text(b"        Function: ")
            .number(frame.function)
            .end();
        lines
            .text(b"        SymbolName: ")
            .text(name.map_or(b"<None>".as_slice(), Vec::as_slice))
            .end();
        for (what, number) in [
            ("LineOffset", frame.line_offset),
            ("Column", frame.column),
            ("Inline", u32::from(frame.is_inline)),
        ] {
            lines
                .text(b"        ")
                .text(what)
                .text(b": ")
                .number(u64::from(number))
                .end();
        }
    }
}
