//! Build ids, by which a profile is matched with the program that wrote it.
//!
//! | format | what it is | LLVM |
//! |---|---|---|
//! | ELF | descriptor of the note of type 3 and name `GNU`, from its section, or from its segment if section headers were stripped | `llvm/lib/Object/BuildID.cpp` |
//! | Mach-O | the 16 bytes of `LC_UUID` | the same |
//! | PE | the 16 bytes of the GUID in the CodeView record (`RSDS`), which the linker writes with `/debug` or `/build-id` | `COFFObjectFile::getDebugPDBInfo` |
use crate::binary::damaged;
use object::read::elf::{ElfFile, FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Object, ReadRef, elf};
use profkit_data::ids::BuildId;
use profkit_data::{Error, ErrorKind, Result, Structure};

/// Returns the build id of an object file, if it has one.
///
/// # Errors
/// If the notes or headers that contain build ids are damaged.
pub fn build_id<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
) -> Result<Option<BuildId>> {
    let id = match file {
        object::File::Elf32(elf) => elf_id(elf)?,
        object::File::Elf64(elf) => elf_id(elf)?,
        object::File::MachO32(_) | object::File::MachO64(_) => file
            .mach_uuid()
            .map_err(|error| damaged(&error))?
            .map(|uuid| uuid.to_vec()),
        object::File::Pe32(_) | object::File::Pe64(_) => file
            .pdb_info()
            .map_err(|error| damaged(&error))?
            .map(|info| info.guid().to_vec()),
        _ => None,
    };
    Ok(id.filter(|id| !id.is_empty()).map(BuildId))
}

/// A part of the smallest note, which has 12 bytes: each can be in several segments and sections.
const NOTE: u64 = 3;

#[cold]
fn too_many_notes() -> Error {
    Error::new(
        ErrorKind::LimitExceeded,
        "the notes of the segments and sections overlap",
    )
    .within(Structure::ObjectFile)
    .with_hint("the file is damaged: build or fetch it again")
}

fn elf_id<'data, Elf, R>(file: &ElfFile<'data, Elf, R>) -> Result<Option<Vec<u8>>>
where
    Elf: FileHeader,
    R: ReadRef<'data>,
{
    let (endian, data) = (file.endian(), file.data());
    // Segments and sections can share their notes, usually two of each.
    let mut left = data.len().unwrap_or_default() / NOTE;
    let mut id_in = |mut notes: NoteIterator<'data, Elf>| {
        while let Some(note) = notes.next().map_err(|error| damaged(&error))? {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                return Ok(Some(note.desc().to_vec()));
            }
            left = left.checked_sub(1).ok_or_else(too_many_notes)?;
        }
        Ok(None)
    };
    for section in file.elf_section_table().iter() {
        let notes = section.notes(endian, data);
        if let Some(notes) = notes.map_err(|error| damaged(&error))?
            && let Some(id) = id_in(notes)?
        {
            return Ok(Some(id));
        }
    }
    // The section headers may have been stripped.
    for segment in file.elf_program_headers() {
        let notes = segment.notes(endian, data);
        if let Some(notes) = notes.map_err(|error| damaged(&error))?
            && let Some(id) = id_in(notes)?
        {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Parses a build id from hexadecimal digits. `None` if the text is not valid.
pub fn parse_build_id(text: &str) -> Option<BuildId> {
    let text = text.as_bytes();
    if text.is_empty() || !text.len().is_multiple_of(2) {
        return None;
    }
    let (pairs, _) = text.as_chunks::<2>();
    let digit = |byte: u8| (byte as char).to_digit(16);
    let byte = |pair: &[u8; 2]| u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok();
    pairs.iter().map(byte).collect::<Option<_>>().map(BuildId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_ids_are_the_same() {
        let id = BuildId(vec![0x01, 0xab, 0xff]);
        assert_eq!(parse_build_id("01abff"), Some(id.clone()));
        assert_eq!(parse_build_id(&id.to_string()), Some(id));
        assert_eq!(parse_build_id("01ABf"), None);
        assert_eq!(parse_build_id(""), None);
        assert_eq!(parse_build_id("0g"), None);
    }
}
