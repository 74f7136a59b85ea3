//! Reads the instrumented binary to which a MIP profile belongs: its map, the ids of its blocks, its build id and its
//! debug info.
use object::{Object as _, ObjectSection as _};
use profkit_abi::mip::section;
use profkit_data::mip::{Identity, ImageFacts, MapReadOptions, MipMap, MipProfile};
use profkit_data::{Error, ErrorKind, path_text};
use profkit_object::bb_addr_map::{self, FunctionBlocks};
use profkit_object::binary::{BinaryFile, Image};
use profkit_object::build_id::build_id;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::{DebugInfo, ProgramFiles};
use std::path::Path;

fn no_map() -> Error {
    let message = format!("there is no section {}", section::MAP);
    Error::new(ErrorKind::CannotCorrelate, message)
        .with_hint("give the instrumented binary as it was linked, before stripping")
}

fn no_block_ids() -> Error {
    let message = format!(
        "there is no section {}, which holds the block ids",
        bb_addr_map::SECTION
    );
    Error::new(ErrorKind::CannotCorrelate, message).with_hint(
        "compile with -fbasic-block-address-map (clang 19 and later) or -fbasic-block-sections=labels (clang 15 to 19)",
    )
}

/// The error for a binary whose source lines are not known.
pub fn no_debug_info() -> Error {
    Error::new(
        ErrorKind::MissingCorrelation,
        "there is no debug info, so the source lines are not known",
    )
    .with_hint("compile with -g -fdebug-info-for-profiling, or give the debug info with --debug")
}

/// Reads the blocks of a binary. Returns an empty profile with the functions of the binary's map, and the block ids of
/// the compiler. The function [`hot_blocks`](super::blocks::hot_blocks) needs both.
///
/// # Errors
/// If the binary lacks the map or the block ids, or one of them is damaged.
pub fn blocks_of(file: &BinaryFile) -> Result<(MipProfile, Vec<FunctionBlocks>), Error> {
    let image = only_image(file)?;
    let map = section_bytes(&image, section::MAP)?.ok_or_else(no_map)?;
    let ids = bb_addr_map::of_image(&image)?.ok_or_else(no_block_ids)?;
    let options = MapReadOptions::new().section_address(records_address(&image));
    let map = MipMap::parse_with(&map, &options)?;
    let current = MipProfile::create(&map, &ImageFacts::new())?.profile;
    Ok((current, ids))
}

/// Checks that a binary and a profile have the same build id. If one of them has no build id, the check is skipped.
/// Returns the address of the binary's record section, if it is known.
///
/// # Errors
/// If the build ids differ.
pub fn check_build(file: &BinaryFile, profile: &MipProfile) -> Result<Option<u64>, Error> {
    let image = only_image(file)?;
    if let (Identity::BuildId(expected), Some(found)) = (&profile.identity, build_id(&image)?)
        && !profile.identity.is_unknown()
        && *expected != found
    {
        let message =
            format!("found build id {found}, expected {expected}, the build id of the profile");
        return Err(Error::new(ErrorKind::CannotCorrelate, message)
            .with_hint("give the binary that the profile was created from"));
    }
    Ok(records_address(&image))
}

/// Opens the files that are needed to symbolise a binary: the binary itself, and its debug info, which may be in a
/// separate file.
///
/// # Errors
/// The name of a file that is damaged or cannot be read, and the problem with it.
pub fn program_files(binary: &Path, debug: Option<&Path>) -> Result<ProgramFiles, (String, Error)> {
    let files = ProgramFiles::open(binary, &DebugFolders::default())
        .map_err(|error| (path_text(binary), error))?;
    match debug {
        Some(debug) => files
            .with_debug_file(debug)
            .map_err(|error| (path_text(debug), error)),
        None => Ok(files),
    }
}

/// Whether the debug info that a symbolizer found has source lines, and not only symbols.
pub fn has_lines(found: DebugInfo) -> bool {
    matches!(found, DebugInfo::Binary | DebugInfo::DebugFile)
}

fn records_address(image: &Image<'_>) -> Option<u64> {
    image
        .section_by_name(section::RECORDS)
        .map(|section| section.address())
}

fn only_image(file: &BinaryFile) -> Result<Image<'_>, Error> {
    let mut images = file.images()?;
    match (images.pop(), images.len()) {
        (Some(image), 0) => Ok(image),
        _ => Err(Error::new(
            ErrorKind::Unsupported,
            "the file is a universal file with several architectures",
        )
        .with_hint("extract one: lipo -thin ARCHITECTURE")),
    }
}

fn section_bytes(image: &Image<'_>, name: &'static str) -> Result<Option<Vec<u8>>, Error> {
    let Some(found) = image.section_by_name(name) else {
        return Ok(None);
    };
    let data = found.data().map_err(|error| {
        let message = format!("section {name} cannot be read: {error}");
        Error::new(ErrorKind::Malformed, message)
    })?;
    Ok(Some(data.to_vec()))
}
