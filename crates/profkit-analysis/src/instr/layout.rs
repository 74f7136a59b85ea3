//! Finds the headers and sections of a file.
use profkit_data::Structure;
use profkit_data::instr::raw::{RawProfile, RawReadOptions, RawReader};
use profkit_data::instr::{InstrReader, InstrSource, Record};

/// The header and sections of one profile. A raw file may hold several profiles.
#[derive(Clone, Debug)]
pub struct ProfileLayout {
    /// The offset of the profile in the file.
    pub offset: u64,
    /// Each word of the header: LLVM's name, the absolute offset, and the value.
    pub header: Vec<(&'static str, u64, u64)>,
    /// The sections of the profile.
    pub sections: Vec<SectionPlace>,
}

/// The place of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionPlace {
    /// The section.
    pub structure: Structure,
    /// The absolute offset of the section.
    pub offset: u64,
    /// The size in bytes that the header states.
    pub size: u64,
    /// The number of bytes of the section that are missing because the file is cut.
    pub missing: u64,
}

/// Returns the layout (the header and the sections) of each profile in an open file. `data` is the whole file. Text
/// profiles have no layout.
pub fn layouts(reader: &InstrReader<'_>, data: &[u8]) -> Vec<ProfileLayout> {
    match reader {
        InstrReader::Text(_) => Vec::new(),
        InstrReader::Indexed(reader) => {
            let profile = reader.profile();
            let file_end = data.len() as u64;
            let section = |(structure, offset, size): (_, u64, u64)| SectionPlace {
                structure,
                offset,
                size,
                missing: offset
                    .saturating_add(size)
                    .saturating_sub(file_end.max(offset)),
            };
            vec![ProfileLayout {
                offset: 0,
                header: profile.header().named_fields(),
                sections: profile.named_sections().into_iter().map(section).collect(),
            }]
        }
        InstrReader::Raw(_) => raw_layouts(data),
    }
}

/// Finds the profiles of a raw file. This reads the records, but not their value data.
fn raw_layouts(data: &[u8]) -> Vec<ProfileLayout> {
    let options = RawReadOptions::default().salvage(true).values(false);
    let Ok(mut reader) = RawReader::parse_with(data, &options) else {
        return Vec::new();
    };
    let mut layouts = Vec::new();
    let mut current = reader.profile().cloned();
    let mut record = Record::default();
    loop {
        // Errors are ignored in this pass; they are reported when the records are read for output.
        let more = reader.next_record(&mut record).is_some();
        let entered = reader.profile();
        let left = entered.map(RawProfile::offset) != current.as_ref().map(RawProfile::offset);
        if (left || !more)
            && let Some(profile) = current.take()
        {
            let end = match entered {
                Some(next) if left => next.offset(),
                _ => data.len(),
            };
            let offset = profile.offset() as u64;
            layouts.push(ProfileLayout {
                offset,
                header: profile.header().named_fields(offset),
                sections: raw_sections(&profile, end as u64),
            });
            current = entered.cloned();
        }
        if !more {
            return layouts;
        }
    }
}

fn raw_sections(profile: &RawProfile<'_>, end: u64) -> Vec<SectionPlace> {
    let sections = profile.sections().named();
    let sections = sections.into_iter().filter_map(|(structure, section)| {
        // The header does not state the size of the value data. They end where the profile ends.
        let size = if structure == Structure::ValueData {
            end.saturating_sub(section.offset)
        } else {
            section.size
        };
        (size > 0).then(|| SectionPlace {
            structure,
            offset: section.offset,
            size,
            missing: size.saturating_sub(section.bytes.len() as u64),
        })
    });
    sections.collect()
}
