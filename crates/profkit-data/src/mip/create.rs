//! Makes a MIP profile without runs from a map.
use super::entry::MapEntry;
use super::inference::Inference;
use super::map::MipMap;
use super::model::{Block, Function, Identity, MipProfile, Modes, Width};
use crate::ids::BuildId;
use crate::{Error, ErrorKind, Result, Structure};

/// Facts about a binary that are not in its map.
///
/// ```
/// use profkit_data::mip::{ImageFacts, Width};
///
/// let facts = ImageFacts::new().width(Some(Width::Bits64)).section_size(Some(0x200));
/// assert_eq!(facts.build_id, None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageFacts {
    /// The build id of the binary; `None` if it is not known.
    pub build_id: Option<BuildId>,
    /// The width of addresses in the binary; `None` if it is not known.
    pub width: Option<Width>,
    /// The size of the binary's record section in bytes; `None` if it is not known.
    pub section_size: Option<u64>,
}

setters!(ImageFacts {
    build_id: Option<BuildId>,
    width: Option<Width>,
    section_size: Option<u64>,
});

/// A MIP profile without runs, and what was left out of it.
#[derive(Clone, Debug)]
pub struct Created {
    /// The MIP profile, which has the functions of the map but no runs.
    pub profile: MipProfile,
    /// For each map entry that was left out, an error with the reason.
    pub dropped: Vec<Error>,
    /// The number of functions that use the record of another function. Such functions are aliases, or functions that
    /// the linker merged because their code is identical. Of the functions that share a record, one is not counted.
    pub shared_records: u64,
}

/// The limit for record offsets if the size of the record section is not known. No real record section is this large.
/// If the linker removed a record, the offset in its map entry is negative. Read as an unsigned number, it is above
/// this limit, so the entry is left out.
const LARGEST_SECTION: u64 = 1 << 40;

impl MipProfile {
    /// Makes a profile without runs from the functions in a map.
    ///
    /// A map entry is left out and reported if its record is outside the record section or overlaps another record, or if
    /// it says wrongly how blocks are inferred.
    ///
    /// # Errors
    /// An error if the map is damaged. No entry of a damaged map is used; the user can extract an intact map from the
    /// binary.
    pub fn create(map: &MipMap<'_>, facts: &ImageFacts) -> Result<Created> {
        let mut profile = MipProfile {
            identity: match (map.identity(), &facts.build_id) {
                (Identity::BuildId(_), Some(id)) => Identity::BuildId(id.clone()),
                (identity, _) => identity.clone(),
            },
            width: facts.width.or(map.width()),
            section_address: map.section_address(),
            section_size: facts.section_size,
            ..MipProfile::default()
        };
        let mut dropped = Vec::new();
        let end = facts.section_size.unwrap_or(LARGEST_SECTION);
        let mut places = Vec::new();
        for entry in map.entries() {
            let entry = entry?;
            let blocks = entry.blocks.iter().map(|offset| Block {
                offset: u32::from_le_bytes(*offset),
                runs: 0,
            });
            let inference = match inference_of(&entry) {
                Ok(inference) => inference,
                Err(error) => {
                    dropped.push(error);
                    continue;
                }
            };
            let function = Function {
                name: entry.name.to_vec(),
                modes: entry.modes,
                record_offset: entry.record_offset,
                address: entry.address,
                size: entry.size,
                signature: entry.signature,
                blocks: blocks.collect(),
                inference,
                ..Function::default()
            };
            let size = function.record_size().unwrap_or(0);
            let fits = function
                .record_offset
                .checked_add(size)
                .is_some_and(|record_end| record_end <= end);
            if fits {
                places.push(entry.offset);
                profile.functions.push(function);
            } else {
                dropped.push(outside(&function, entry.offset, end));
            }
        }
        let shared_records = drop_overlaps(profile.functions.as_mut_vec(), &places, &mut dropped);
        Ok(Created {
            profile,
            dropped,
            shared_records,
        })
    }
}

/// The inference of a map entry, checked.
fn inference_of(entry: &MapEntry<'_>) -> Result<Option<Box<Inference>>> {
    if !entry.modes.contains(Modes::INFERRED) {
        return Ok(None);
    }
    let blocks = entry.blocks.len();
    let checked = match Inference::from_numbers(blocks, entry.inference) {
        Some(inference) => inference.check(blocks, entry.modes).map(|()| inference),
        None => Err(ErrorKind::Malformed
            .error("the lists of inferred blocks do not fit each other")
            .within(Structure::Blocks)),
    };
    checked
        .map(|inference| Some(Box::new(inference)))
        .map_err(|error| {
            let name = String::from_utf8_lossy(entry.name).into_owned();
            error
                .at(entry.offset)
                .within(Structure::MapEntry)
                .within(Structure::Named(name))
        })
}

#[cold]
fn outside(function: &Function, at: u64, end: u64) -> Error {
    ErrorKind::Malformed
        .error("a record lies outside the record section")
        .at(at)
        .within(Structure::MapEntry)
        .within(name_of(function))
        .found(format_args!(
            "{} bytes at offset {:#x}",
            function.record_size().unwrap_or(0),
            function.record_offset.cast_signed()
        ))
        .expected(format_args!("an end at {end:#x} or before"))
}

fn name_of(function: &Function) -> Structure {
    Structure::Named(String::from_utf8_lossy(&function.name).into_owned())
}

/// Removes functions whose record overlaps a different record, and adds an error for each of them to `dropped`.
/// `places` has the offset of the map entry of each function. Returns the number of functions that use the record of
/// another function (of the functions that share a record, one is not counted).
fn drop_overlaps(functions: &mut Vec<Function>, places: &[u64], dropped: &mut Vec<Error>) -> u64 {
    let mut order: Vec<usize> = (0..functions.len()).collect();
    let extent = |function: &Function| {
        let start = function.record_offset;
        (start, start + function.record_size().unwrap_or(0))
    };
    order.sort_by_key(|&index| functions.get(index).map(extent));
    let mut shared = 0;
    let mut refused = vec![false; functions.len()];
    let mut last: Option<&Function> = None;
    for index in order {
        let (Some(function), Some(refuse)) = (functions.get(index), refused.get_mut(index)) else {
            continue;
        };
        if let Some(before) = last {
            let (start, _) = extent(function);
            let (_, end) = extent(before);
            if extent(function) == extent(before)
                && function.modes == before.modes
                && function.inference == before.inference
            {
                shared += 1;
                continue;
            }
            if start < end {
                *refuse = true;
                dropped.push(
                    ErrorKind::Malformed
                        .error("a record overlaps another record")
                        .at(places.get(index).copied().unwrap_or(0))
                        .within(Structure::MapEntry)
                        .within(name_of(function))
                        .found(format_args!("offset {start:#x}"))
                        .expected(format_args!(
                            "at least {end:#x}, where the record of {} ends",
                            String::from_utf8_lossy(&before.name)
                        )),
                );
                continue;
            }
        }
        last = Some(function);
    }
    let mut refused = refused.into_iter();
    functions.retain(|_| !refused.next().unwrap_or(false));
    shared
}
