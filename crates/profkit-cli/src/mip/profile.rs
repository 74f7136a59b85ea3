//! What the commands on profiles share: opening a profile, making one of a binary or a map, source locations.
use crate::exit::{Failure, Result};
use clap::{Args, ValueEnum};
use profkit_data::ids::BuildId;
use profkit_data::mip::{
    Created, Identity, ImageFacts, MipKind, MipMap, MipProfile, ProfileVersion, has_magic, is_map,
    preamble,
};
use profkit_data::tables::{Frame, StackFlags, StackId, Tables};
use profkit_data::{Error, ErrorKind};
use profkit_merge::files::{Content, Input, Output};
use profkit_object::binary::{BinaryFile, Image};
use profkit_object::debug_files::DebugFolders;
use profkit_object::mip_sections::MipSections;
use profkit_object::symbolize::{DebugInfo, Options, ProgramFiles};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A version of the profile's format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatVersion {
    /// The original's, for profiles that were made of its maps
    #[value(name = "8")]
    V8,
    /// profkit's own
    #[value(name = "9")]
    V9,
}

impl From<FormatVersion> for ProfileVersion {
    fn from(version: FormatVersion) -> Self {
        match version {
            FormatVersion::V8 => ProfileVersion::V8,
            FormatVersion::V9 => ProfileVersion::V9,
        }
    }
}

/// How maps are read, and where debug info is.
#[derive(Clone, Debug, Default, Args)]
pub struct ImageArgs {
    /// Take source locations from this program or debug file, instead of from the binary itself
    #[arg(long, value_name = "FILE")]
    pub debug: Option<PathBuf>,

    /// The architecture, of a universal Mach-O file: arm64, x86_64, …
    #[arg(long, value_name = "NAME")]
    pub arch: Option<String>,
}

/// A profile with the version of its file.
#[derive(Debug)]
pub struct Opened {
    pub name: String,
    pub profile: MipProfile,
    pub version: ProfileVersion,
}

/// Opens a profile.
///
/// # Errors
/// If it cannot be read, or is none.
pub fn open(path: &Path) -> Result<Opened> {
    let input = Input::open(path)?;
    let profile = MipProfile::parse(&input).map_err(|error| Failure::file(input.name(), &error))?;
    let header = MipProfile::parse_header(&input);
    let version = match header.map(|header| header.version) {
        Ok(profkit_abi::mip::v8::VERSION) => ProfileVersion::V8,
        _ => ProfileVersion::V9,
    };
    Ok(Opened {
        name: input.name().to_owned(),
        profile,
        version,
    })
}

/// Writes a profile.
///
/// # Errors
/// If the version has no place for something of it, or it cannot be written.
pub fn write(path: &Path, profile: &MipProfile, version: ProfileVersion) -> Result<()> {
    let output = Output::new(path, Content::Binary)?;
    let mut bytes = Vec::new();
    profile
        .write(version, &mut bytes)
        .map_err(|error| Failure::file(path.display(), &error))?;
    output.write(|sink| sink.put(&bytes))?;
    Ok(())
}

/// An empty profile, and what there is to say about it.
#[derive(Debug)]
pub struct Made {
    pub profile: MipProfile,
    pub notes: Vec<String>,
    /// What was left out, in words.
    pub dropped: Vec<String>,
}

/// Makes an empty profile of a binary or a map. `build_id` stands for that of a map, which has none.
///
/// # Errors
/// If the file is neither, or damaged.
pub fn make(path: &Path, args: &ImageArgs, build_id: Option<BuildId>) -> Result<Made> {
    let input = Input::open(path)?;
    let name = input.name().to_owned();
    let fail = |error: &Error| Failure::file(&name, error);
    let from_map = |data: &[u8], facts: &ImageFacts, section: Option<u64>| {
        MipMap::parse(data, section)
            .and_then(|map| MipProfile::create(&map, facts))
            .map_err(|error| fail(&error))
    };
    let mut made;
    if has_magic(&input) || is_map(&input) {
        if let Ok(preamble) = preamble(&input)
            && preamble.kind != MipKind::Map
        {
            let error = Error::new(ErrorKind::Unsupported, "neither a binary nor a map")
                .found(format_args!("a MIP {}", preamble.kind.name()))
                .with_hint(
                    "give the program that was built with profkit mip cc, before it is stripped",
                );
            return Err(fail(&error));
        }
        let facts = ImageFacts::new().build_id(build_id);
        made = finish(&name, from_map(&input, &facts, None)?);
        if made.profile.identity.is_unknown() {
            made.notes.push(format!(
                "{name}: a map does not know its build id: raw files of any build will be taken, the first one decides (--build-id sets it)"
            ));
        }
    } else {
        drop(input);
        let sections = sections_of(path, args)?.ok_or_else(|| {
            fail(
                &Error::new(ErrorKind::Unsupported, "no section __llvm_mipmap")
                    .within("sections")
                    .with_hint("the file was stripped, or not built with profkit mip cc: give the program as it was linked"),
            )
        })?;
        let facts = ImageFacts::new()
            .build_id(build_id.or(sections.build_id))
            .width(Some(sections.width))
            .section_size(sections.section_size);
        made = finish(
            &name,
            from_map(&sections.map, &facts, sections.section_address)?,
        );
        if made.profile.identity.is_unknown() {
            made.notes.push(format!(
                "{name}: the binary has no build id, so that raw files of other builds cannot be told from its own (link with -Wl,--build-id)"
            ));
        }
    }
    let symbols = args.debug.as_deref().or_else(|| {
        // A map has no debug info.
        (made.profile.width.is_some() && made.profile.section_size.is_some()).then_some(path)
    });
    if let Some(symbols) = symbols {
        let located = locate(&made.profile, symbols, args.arch.as_deref());
        match located {
            Ok(located) => {
                if args.debug.is_some() || located.found() {
                    made.notes.extend(located.notes);
                }
                made.profile.tables = located.tables;
                for (function, stack) in made.profile.functions.iter_mut().zip(located.stacks) {
                    function.location = stack;
                }
            }
            Err(failure) if args.debug.is_some() => return Err(failure),
            // The binary need not have debug info.
            Err(_) => made.notes.push(format!(
                "{name}: no source locations: its debug info cannot be read"
            )),
        }
    }
    Ok(made)
}

fn finish(name: &str, created: Created) -> Made {
    let mut notes = Vec::new();
    if created.shared_records > 0 {
        notes.push(format!(
            "{name}: {} functions share their record with another: what one does counts for both",
            created.shared_records
        ));
    }
    let dropped = created.dropped.iter();
    Made {
        profile: created.profile,
        notes,
        dropped: dropped
            .map(|error| format!("{name}: left out: {error}"))
            .collect(),
    }
}

/// The MIP sections of a binary.
fn sections_of(path: &Path, args: &ImageArgs) -> Result<Option<MipSections>> {
    let name = path.display();
    let file = BinaryFile::open(path).map_err(|error| Failure::io("cannot read", name, &error))?;
    let fail = |error: &Error| Failure::file(path.display(), error);
    let image = one_image(&file, args.arch.as_deref()).map_err(|error| fail(&error))?;
    MipSections::of(&image).map_err(|error| fail(&error))
}

fn one_image<'a>(
    file: &'a BinaryFile,
    arch: Option<&str>,
) -> std::result::Result<Image<'a>, Error> {
    use profkit_object::binary::architecture_name;
    let mut images = file.images()?;
    if arch.is_none() && images.len() > 1 {
        let names: Vec<_> = images
            .iter()
            .map(|image| architecture_name(image))
            .collect();
        return Err(
            Error::new(ErrorKind::Unsupported, "a file of several architectures")
                .found(names.join(", "))
                .with_hint("choose one with --arch"),
        );
    }
    let found: Vec<_> = images
        .iter()
        .map(|image| architecture_name(image))
        .collect();
    let index = match arch {
        None => 0,
        Some(arch) => found.iter().position(|name| name == arch).ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "no such architecture in the file")
                .found(found.join(", "))
                .expected(arch)
        })?,
    };
    if index < images.len() {
        Ok(images.swap_remove(index))
    } else {
        Err(Error::new(
            ErrorKind::UnrecognizedFormat,
            "a file of no architecture",
        ))
    }
}

/// Source locations of a profile's functions.
#[derive(Debug)]
pub struct Located {
    pub tables: Tables,
    pub stacks: Vec<Option<StackId>>,
    pub notes: Vec<String>,
}

impl Located {
    /// Whether there is any.
    pub fn found(&self) -> bool {
        self.stacks.iter().any(Option::is_some)
    }
}

/// Finds the source locations where the functions of a profile begin.
///
/// # Errors
/// If the file is no program or debug file, or of another build.
pub fn locate(profile: &MipProfile, path: &Path, arch: Option<&str>) -> Result<Located> {
    let name = path.display().to_string();
    let fail = |error: &Error| Failure::file(&name, error);
    let file = BinaryFile::open(path).map_err(|error| Failure::io("cannot read", &name, &error))?;
    let image = one_image(&file, arch).map_err(|error| fail(&error))?;
    let id = profkit_object::build_id::build_id(&image).map_err(|error| fail(&error))?;
    if let (Identity::BuildId(expected), Some(found)) = (&profile.identity, id)
        && !profile.identity.is_unknown()
        && *expected != found
    {
        return Err(fail(
            &Error::new(ErrorKind::Unsupported, "the debug info of another build")
                .found(format_args!("build id {found}"))
                .expected(format_args!("build id {expected}"))
                .with_hint("give the program or debug file of the build that was profiled"),
        ));
    }
    let section = MipSections::record_address(&image);
    let mut addresses = Vec::with_capacity(profile.functions.len());
    for function in &profile.functions {
        let address = profile.address_of(function, section).ok_or_else(|| {
            fail(
                &Error::new(ErrorKind::Unsupported, "no section __llvm_mipraw")
                    .within("sections")
                    .with_hint("addresses of this profile are relative to it: give the program that was profiled"),
            )
        })?;
        addresses.push(address);
    }
    let files = ProgramFiles::open(path, &DebugFolders::default()).map_err(|error| fail(&error))?;
    let symbolizer = files
        .symbolizer(&Options::default())
        .map_err(|error| fail(&error))?;
    let mut located = Located {
        tables: Tables::default(),
        stacks: vec![None; addresses.len()],
        notes: Vec::new(),
    };
    if !matches!(
        symbolizer.debug_info(),
        DebugInfo::Binary | DebugInfo::DebugFile
    ) {
        located
            .notes
            .push(format!("{name}: there is no debug info (compile with -g)"));
        return Ok(located);
    }
    let found = symbolizer.symbolize(&addresses);
    for (index, stack) in located.stacks.iter_mut().enumerate() {
        let frames: Vec<_> = found.stack(index).collect();
        let outermost = frames.len().saturating_sub(1);
        let frames: Vec<_> = frames
            .iter()
            .enumerate()
            .map(|(depth, frame)| Frame {
                function: frame.function.unwrap_or_default(),
                path: frame.file.map(Cow::Borrowed),
                line: frame.line,
                column: frame.column,
                flags: if depth < outermost {
                    StackFlags::INLINED
                } else {
                    StackFlags::default()
                },
            })
            .collect();
        // Functions without a line are known by their name alone.
        if frames.iter().any(|frame| frame.line > 0) {
            *stack = located
                .tables
                .intern_stack(&frames)
                .map_err(|error| fail(&error))?;
        }
    }
    let warnings = found.warnings().iter().take(3);
    located
        .notes
        .extend(warnings.map(|warning| format!("{name}: {warning}")));
    Ok(located)
}

/// A regular expression over names, which are bytes; it may match anywhere in them.
///
/// # Errors
/// If it is none.
pub fn pattern(text: Option<&str>) -> Result<Option<regex::bytes::Regex>> {
    let Some(text) = text else { return Ok(None) };
    let built = regex::bytes::RegexBuilder::new(text).unicode(false).build();
    built.map(Some).map_err(|error| {
        let error = error.to_string();
        let reason = error.lines().next_back().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        Failure::usage(format_args!(
            "--regex {text}: not a regular expression: {reason}"
        ))
    })
}
