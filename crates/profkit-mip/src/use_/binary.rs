//! Reads the instrumented binary to which a MIP profile belongs: its map, the ids of its blocks, its build id and its
//! debug info.
use object::{Object as _, ObjectSection as _};
use profkit_abi::mip::section;
use profkit_data::ids::BuildId;
use profkit_data::mip::{Identity, ImageFacts, MapReadOptions, MipMap, MipProfile};
use profkit_data::{Error, path_text};
use profkit_object::bb_addr_map::{self, FunctionBlocks};
use profkit_object::binary::{BinaryFile, Image};
use profkit_object::build_id::build_id;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::{DebugInfo, ProgramFiles};
use std::fmt;
use std::path::Path;

/// The reason why a binary cannot be used with a profile.
#[derive(Debug)]
#[non_exhaustive]
pub enum BinaryError {
    /// The binary, or the file with its debug info, is damaged or cannot be read.
    Data(Error),
    /// The file contains code for several architectures.
    SeveralArchitectures,
    /// The binary has no MIP map: it was stripped, or was never instrumented.
    NoMap,
    /// The binary has no section `.llvm_bb_addr_map`, which contains the ids of blocks.
    NoBlockIds,
    /// A section of the binary cannot be read. The variant holds the section's name and the reason.
    Section(&'static str, object::Error),
    /// The build ids of the binary and the profile differ.
    OtherBuild {
        /// The build id of the binary.
        found: BuildId,
        /// The build id in the profile.
        expected: BuildId,
    },
    /// The binary has no debug info.
    NoDebugInfo,
}

impl From<Error> for BinaryError {
    fn from(error: Error) -> Self {
        BinaryError::Data(error)
    }
}

impl BinaryError {
    /// Returns what the user can do about the error; `None` if nothing is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            BinaryError::Data(error) => error.hint(),
            BinaryError::SeveralArchitectures => Some("extract one: lipo -thin ARCHITECTURE"),
            BinaryError::NoMap => {
                Some("give the instrumented binary as it was linked, before stripping")
            }
            BinaryError::NoBlockIds => Some(
                "compile with -fbasic-block-address-map (clang 19 and later) or -fbasic-block-sections=labels (clang 15 to 19)",
            ),
            BinaryError::Section(..) => None,
            BinaryError::OtherBuild { .. } => {
                Some("give the binary that the profile was created from")
            }
            BinaryError::NoDebugInfo => Some(
                "compile with -g -fdebug-info-for-profiling, or give the debug info with --debug",
            ),
        }
    }
}

impl fmt::Display for BinaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BinaryError::Data(error) => error.fmt(f),
            BinaryError::SeveralArchitectures => {
                f.write_str("the file is a universal file with several architectures")
            }
            BinaryError::NoMap => write!(f, "there is no section {}", section::MAP),
            BinaryError::NoBlockIds => write!(
                f,
                "there is no section {}, which holds the block ids",
                bb_addr_map::SECTION
            ),
            BinaryError::Section(name, error) => {
                write!(f, "section {name} cannot be read: {error}")
            }
            BinaryError::OtherBuild { found, expected } => write!(
                f,
                "found build id {found}, expected {expected}, the build id of the profile"
            ),
            BinaryError::NoDebugInfo => {
                f.write_str("there is no debug info, so the source lines are not known")
            }
        }
    }
}

impl std::error::Error for BinaryError {}

/// Reads the blocks of a binary. Returns an empty profile with the functions of the binary's map, and the block ids of
/// the compiler. The function [`hot_blocks`](super::blocks::hot_blocks) needs both.
///
/// # Errors
/// If the binary lacks the map or the block ids, or one of them is damaged.
pub fn blocks_of(file: &BinaryFile) -> Result<(MipProfile, Vec<FunctionBlocks>), BinaryError> {
    let image = only_image(file)?;
    let map = section_bytes(&image, section::MAP)?.ok_or(BinaryError::NoMap)?;
    let ids = bb_addr_map::of_image(&image)?.ok_or(BinaryError::NoBlockIds)?;
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
pub fn check_build(file: &BinaryFile, profile: &MipProfile) -> Result<Option<u64>, BinaryError> {
    let image = only_image(file)?;
    if let (Identity::BuildId(expected), Some(found)) = (&profile.identity, build_id(&image)?)
        && !profile.identity.is_unknown()
        && *expected != found
    {
        return Err(BinaryError::OtherBuild {
            found,
            expected: expected.clone(),
        });
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

fn only_image(file: &BinaryFile) -> Result<Image<'_>, BinaryError> {
    let mut images = file.images()?;
    match (images.pop(), images.len()) {
        (Some(image), 0) => Ok(image),
        _ => Err(BinaryError::SeveralArchitectures),
    }
}

fn section_bytes(image: &Image<'_>, name: &'static str) -> Result<Option<Vec<u8>>, BinaryError> {
    let Some(found) = image.section_by_name(name) else {
        return Ok(None);
    };
    match found.data() {
        Ok(data) => Ok(Some(data.to_vec())),
        Err(error) => Err(BinaryError::Section(name, error)),
    }
}
