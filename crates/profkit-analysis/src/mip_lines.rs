//! Which source lines of a program ran, by the blocks of a MIP profile and the program's debug info.
//!
//! Each address of a function belongs to the block that begins there or last before it. A line ran in as many runs as
//! the block of its addresses that ran most often; with inlined functions, so did the lines of the calls around it.
//! Lines of which the optimiser left no address are not known.
use profkit_data::mip::{Function, Identity, MipProfile, Modes};
use profkit_data::{Error, ErrorKind, Structure, path_text};
use profkit_object::binaries::Binaries;
use profkit_object::build_id::build_id;
use profkit_object::mip_sections::MipSections;
use profkit_object::symbolize::{
    DebugInfo, FrameId, Locations, Options, ProgramFiles, Symbolizer, clean_path,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The addresses of one call of the symbolizer. Each takes about sixteen bytes.
const ADDRESSES_AT_ONCE: usize = 1 << 24;

/// The largest size of a function in bytes.
const LARGEST_FUNCTION: u32 = 1 << 24;

/// The source lines of a program, and in how many runs each of them ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCoverage {
    /// The source files by path, as in the debug info. Relative paths are joined to the folder of the compilation.
    pub files: BTreeMap<Vec<u8>, FileLines>,
    /// The number of functions of whose blocks the profile has no coverage. Of each of them, only the lines of the
    /// first instruction are known.
    pub without_blocks: u64,
    /// The number of functions for which the debug info has no line.
    pub without_lines: u64,
}

/// The lines of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLines {
    /// For each line with code, in how many runs it ran.
    pub lines: BTreeMap<u32, u64>,
    /// The functions that begin in the file, by line and symbol name, each with the number of runs that entered it. If
    /// the first line of a function is not known, the line of its first instruction.
    pub functions: BTreeMap<(u32, Vec<u8>), u64>,
}

impl LineCoverage {
    /// Finds the program of a profile among `binaries`, and the lines of the functions that `wanted` accepts.
    ///
    /// # Errors
    /// If no binary has the build id of the profile, or the program or its debug info is damaged or has no source
    /// lines. The error comes with the name of a file, or with that of the profile's build id.
    pub fn find(
        profile: &MipProfile,
        binaries: &Binaries,
        wanted: &dyn Fn(&Function) -> bool,
    ) -> Result<Self, (String, Error)> {
        let mut first = None;
        for path in programs(profile, binaries)? {
            let found = of_program(profile, &path, binaries, wanted);
            match found.map_err(|error| (path_text(&path), error)) {
                Ok(lines) => return Ok(lines),
                // Another file of the same build may have the debug info.
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| unknown(profile)))
    }

    /// Finds the lines of the functions that `wanted` accepts. `section` is the address of the program's record
    /// section.
    pub fn of(
        profile: &MipProfile,
        symbolizer: &Symbolizer<'_>,
        section: Option<u64>,
        wanted: &dyn Fn(&Function) -> bool,
    ) -> Self {
        let mut coverage = LineCoverage::default();
        let functions = profile.functions.iter();
        let functions = functions.filter(|function| wanted(function));
        let all: Vec<(&Function, u64)> = functions
            .filter_map(|function| Some((function, profile.address_of(function, section)?)))
            .collect();
        let mut rest = &*all;
        while !rest.is_empty() {
            let mut addresses = Vec::new();
            let mut taken = 0;
            for (function, start) in rest {
                let size = known_size(function);
                if taken > 0 && addresses.len() + size as usize > ADDRESSES_AT_ONCE {
                    break;
                }
                let offsets = 0..u64::from(size);
                addresses.extend(offsets.map(|offset| start.wrapping_add(offset)));
                taken += 1;
            }
            let locations = symbolizer.symbolize(&addresses);
            let (now, later) = rest.split_at(taken);
            coverage.add(now, &locations);
            rest = later;
        }
        coverage
    }

    /// The number of lines with code, and the number of those that ran.
    pub fn totals(&self) -> (u64, u64) {
        let lines = || self.files.values().flat_map(|file| file.lines.values());
        let ran = lines().filter(|&&runs| runs > 0).count();
        (lines().count() as u64, ran as u64)
    }

    fn add(&mut self, functions: &[(&Function, u64)], locations: &Locations) {
        let mut runs_of: FxHashMap<FrameId, u64> = FxHashMap::default();
        let mut first = 0;
        for (function, _) in functions {
            let blocks = blocks(function);
            let mut block = 0;
            let mut lines = false;
            for offset in 0..known_size(function) {
                while blocks.get(block + 1).is_some_and(|next| next.0 <= offset) {
                    block += 1;
                }
                let runs = blocks.get(block).filter(|block| block.0 <= offset);
                let frame = locations.leaf(first + offset as usize);
                if let (Some((_, runs)), Some(frame)) = (runs, frame) {
                    let known = runs_of.entry(frame).or_default();
                    *known = (*known).max(*runs);
                    lines |= locations.frame(frame).is_some_and(|frame| frame.line > 0);
                }
            }
            if !function.is_part() {
                self.without_lines += u64::from(!lines);
                self.without_blocks += u64::from(!has_blocks(function));
                self.begin(function, locations, first);
            }
            first += known_size(function) as usize;
        }
        for (frame, runs) in runs_of {
            let mut next = Some(frame);
            while let Some(id) = next {
                next = locations.caller(id);
                if let Some(frame) = locations.frame(id)
                    && let Some(path) = frame.file.filter(|_| frame.line > 0)
                {
                    let lines = &mut self.file(path).lines;
                    let known = lines.entry(frame.line).or_default();
                    *known = (*known).max(runs);
                }
            }
        }
    }

    /// Adds the place where a function begins. `first` is the index of its first address.
    fn begin(&mut self, function: &Function, locations: &Locations, first: usize) {
        let Some(frame) = locations.stack(first).last() else {
            return;
        };
        let line = match frame.function_line {
            0 => frame.line,
            line => line,
        };
        if let Some(path) = frame.file.filter(|_| line > 0) {
            let functions = &mut self.file(path).functions;
            let known = functions.entry((line, function.name.clone())).or_default();
            *known = (*known).max(function.called_runs);
        }
    }

    fn file(&mut self, path: &[u8]) -> &mut FileLines {
        self.files.entry(clean_path(path)).or_default()
    }
}

fn has_blocks(function: &Function) -> bool {
    function.modes.contains(Modes::BLOCK_COVERAGE)
}

/// How many bytes of a function have known coverage: one, if only its entry has. No function is larger than the limit,
/// but a damaged profile may say so.
fn known_size(function: &Function) -> u32 {
    match has_blocks(function) {
        true => function.size.min(LARGEST_FUNCTION),
        false => function.size.min(1),
    }
}

/// For each block of a function its offset and in how many runs it ran, sorted by offset.
fn blocks(function: &Function) -> Vec<(u32, u64)> {
    let entry = (!function.is_part()).then_some((0, function.called_runs));
    let others = function
        .blocks
        .iter()
        .map(|block| (block.offset, block.runs));
    let mut blocks: Vec<(u32, u64)> = entry.into_iter().chain(others).collect();
    blocks.sort_by_key(|(offset, _)| *offset);
    blocks
}

/// Returns the files that may be the program of a profile, or its debug file: those with its build id, then those
/// without any.
///
/// # Errors
/// If the profile has no build id, and there is not exactly one binary. The error comes with what it is about.
pub fn programs(
    profile: &MipProfile,
    binaries: &Binaries,
) -> Result<Vec<PathBuf>, (String, Error)> {
    let all = || binaries.index.binaries.iter();
    if let Identity::BuildId(id) = &profile.identity
        && !profile.identity.is_unknown()
    {
        let mut found: Vec<PathBuf> = binaries
            .index
            .find(id)
            .into_iter()
            .map(|it| it.path)
            .collect();
        if found.is_empty() {
            found.extend(binaries.program(id));
            found.extend(binaries.debug_info(id));
        }
        // A binary without a build id may be the one.
        let unknown = all().filter(|it| it.named && it.ids.is_empty());
        found.extend(unknown.map(|it| it.path.clone()));
        return Ok(found);
    }
    let named: Vec<PathBuf> = all().map(|it| it.path.clone()).collect();
    match named.as_slice() {
        [_] => Ok(named),
        _ => {
            let error = Error::new(
                ErrorKind::CannotCorrelate,
                "the profile has no build id, so its program cannot be chosen",
            );
            let error = error.found(format_args!("{} binaries", named.len()));
            Err((
                "--binaries".to_owned(),
                error.with_hint("name the one program that the profile was created from"),
            ))
        }
    }
}

fn unknown(profile: &MipProfile) -> (String, Error) {
    let what = match &profile.identity {
        Identity::BuildId(id) => format!("build id {id}"),
        Identity::ModuleHash(hash) => format!("module hash {hash:#010x}"),
    };
    let error = Error::new(
        ErrorKind::MissingCorrelation,
        "none of the binaries is the program of the profile",
    )
    .with_hint("give the program that the profile was created from, or its debug file");
    (what, error)
}

fn of_program(
    profile: &MipProfile,
    path: &Path,
    binaries: &Binaries,
    wanted: &dyn Fn(&Function) -> bool,
) -> Result<LineCoverage, Error> {
    let mut files = ProgramFiles::open(path, &binaries.debug_folders)?;
    let id = build_id(&files.program()?)?;
    if files.debug_file().is_none()
        && let Some(id) = &id
        && let Some(debug) = binaries.debug_info(id)
    {
        files = files.with_debug_file(&debug)?;
    }
    let section = MipSections::record_address(&files.program()?);
    let symbolizer = files.symbolizer(&Options::default().symbol_names(false).symbols(false))?;
    if !matches!(
        symbolizer.debug_info(),
        DebugInfo::Binary | DebugInfo::DebugFile
    ) {
        return Err(Error::new(
            ErrorKind::MissingCorrelation,
            "there is no debug info, so the source lines are not known",
        )
        .with_hint("compile with -g, and give the program before stripping or its debug file"));
    }
    if profile.section_address.is_none() && section.is_none() {
        let section = profkit_abi::mip::section::RECORDS;
        return Err(Error::new(
            ErrorKind::CannotCorrelate,
            "the section is missing from which the profile counts addresses",
        )
        .within(Structure::NamedSection(section.into()))
        .with_hint("give the program that was built with profkit mip cc"));
    }
    Ok(LineCoverage::of(profile, &symbolizer, section, wanted))
}
