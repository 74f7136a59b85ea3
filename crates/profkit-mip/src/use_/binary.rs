//! What is needed of the instrumented binary: its map, the ids of its blocks, its build, its debug info.
use super::bb_addr_map::{self, FunctionBlocks};
use object::{Object as _, ObjectSection as _};
use profkit_abi::mip::section;
use profkit_data::bytes::Endian;
use profkit_data::ids::BuildId;
use profkit_data::mip::{Identity, ImageFacts, MapReadOptions, MipMap, MipProfile};
use profkit_data::{Error, path_text};
use profkit_object::binary::{BinaryFile, Image};
use profkit_object::build_id::build_id;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::{DebugInfo, ProgramFiles};
use std::fmt;
use std::path::Path;

/// Why a binary is of no use for a profile.
#[derive(Debug)]
#[non_exhaustive]
pub enum BinaryError {
    /// The binary, or the file with its debug info, is damaged or cannot be read.
    Data(Error),
    /// It has code for several architectures.
    SeveralArchitectures,
    /// It has no MIP map: it was stripped, or not instrumented.
    NoMap,
    /// It has no section `.llvm_bb_addr_map`, which holds the block ids.
    NoBlockIds,
    /// A section cannot be read, with the reason.
    Section(&'static str, object::Error),
    /// It is another build than the profile's.
    OtherBuild {
        /// The build id of the binary.
        found: BuildId,
        /// The build id in the profile.
        expected: BuildId,
    },
    /// It has no debug info.
    NoDebugInfo,
}

impl From<Error> for BinaryError {
    fn from(error: Error) -> Self {
        BinaryError::Data(error)
    }
}

impl fmt::Display for BinaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BinaryError::Data(error) => error.fmt(f),
            BinaryError::SeveralArchitectures => {
                f.write_str("this is a universal file with several architectures")
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
                f.write_str("there is no debug info, which holds the source lines")
            }
        }
    }
}

impl std::error::Error for BinaryError {}

/// The blocks of a binary: an empty profile of its map, and the ids that the compiler gave the blocks of its functions.
/// These are what [`hot_blocks`](super::blocks::hot_blocks) takes.
///
/// # Errors
/// If the binary lacks the map or the ids, or one of them is damaged.
pub fn blocks_of(file: &BinaryFile) -> Result<(MipProfile, Vec<FunctionBlocks>), BinaryError> {
    let image = only_image(file)?;
    let map = section_bytes(&image, section::MAP)?.ok_or(BinaryError::NoMap)?;
    let ids = section_bytes(&image, bb_addr_map::SECTION)?.ok_or(BinaryError::NoBlockIds)?;
    let options = MapReadOptions::new().section_address(records_address(&image));
    let map = MipMap::parse_with(&map, &options)?;
    let current = MipProfile::create(&map, &ImageFacts::new())?.profile;
    let endian = if image.is_little_endian() {
        Endian::Little
    } else {
        Endian::Big
    };
    let ids = bb_addr_map::read(&ids, endian, if image.is_64() { 8 } else { 4 })?;
    Ok((current, ids))
}

/// Checks that a binary is the build of a profile, and returns the address of its section of records. Without a build id
/// on either side nothing can be checked.
///
/// # Errors
/// If it is another build.
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

/// The files that a binary's code is symbolised with: itself, and its debug info, which may be in a file of its own.
///
/// # Errors
/// If a file is damaged or cannot be read: its name, and what is wrong.
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

/// Whether a symbolizer has the lines of the source, and not only symbols.
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
