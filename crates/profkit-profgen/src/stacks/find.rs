//! The file of a recorded binary, and the functions and lines at its places.
use super::NamesFrom;
use super::symbols::Symbols;
use crate::places::BinaryPlaces;
use profkit_data::Error;
use profkit_data::ids::BuildId;
use profkit_object::binaries::Binaries;
use profkit_object::binary::BinaryFile;
use profkit_object::build_id::build_id;
use profkit_object::symbolize::{Options, ProgramFiles};
use profkit_perf::collect::{BinaryKey, Numbering, same_build_id};
use profkit_perf::same_module;
use std::path::{Path, PathBuf};

/// A function at a line. Parts that are not known are empty or 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    pub symbol: Option<Vec<u8>>,
    pub file: Vec<u8>,
    pub line: u32,
}

/// The file of a binary, opened.
#[derive(Debug)]
pub(super) struct Found {
    pub names: NamesFrom,
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    /// `None` for the running kernel.
    files: Option<ProgramFiles>,
    places: BinaryPlaces,
    symbols: Symbols,
}

impl Opened {
    fn packed_problem(&self) -> Option<&Error> {
        self.files.as_ref()?.packed_problem()
    }
}

fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Whether the file name is that of the recorded binary.
fn same_name(key: &BinaryKey, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_kernel = matches!(key.numbering, Numbering::FromText | Numbering::FromStext);
    name_of(&key.path) == name
        || is_kernel && name.starts_with(b"vmlinux")
        || key.kernel && same_module(&key.path, name)
}

/// Looks for a binary among those that were given, then at its path in the recording.
pub(super) fn find(key: &BinaryKey, binaries: &Binaries, recorded_paths: bool) -> Found {
    let mut other = None;
    let mut path = None;
    if let Some(id) = &key.build_id {
        let indexed = binaries.index.binaries.iter();
        let same = indexed
            .filter(|binary| binary.ids.iter().any(|theirs| same_build_id(theirs, id)))
            .map(|binary| binary.path.clone());
        path = same.into_iter().next().or_else(|| binaries.program(id));
    }
    if path.is_none() {
        let named = binaries.index.binaries.iter();
        let mut named = named.filter(|binary| same_name(key, &binary.path));
        match (&key.build_id, named.next()) {
            (None, Some(binary)) => path = Some(binary.path.clone()),
            (Some(_), Some(binary)) => other = Some(binary.path.clone()),
            _ => {}
        }
    }
    if path.is_none() && recorded_paths {
        path = recorded(key);
        if path.is_none()
            && let Some(opened) = running_kernel(key)
        {
            return Found {
                names: NamesFrom::RunningKernel,
                opened: Some(opened),
            };
        }
    }
    let Some(path) = path else {
        let names = other.map_or(NamesFrom::Nothing, NamesFrom::OtherBuild);
        return Found {
            names,
            opened: None,
        };
    };
    let opened = open(&path, binaries);
    let problem = opened.as_ref().ok().and_then(Opened::packed_problem);
    let problem = problem.map(ToString::to_string);
    match (opened, problem) {
        // The dynamic symbols still give names.
        (Ok(opened), Some(problem)) => Found {
            names: NamesFrom::Unreadable(path, problem),
            opened: Some(opened),
        },
        (Ok(opened), None) if opened.symbols.is_empty() => Found {
            names: NamesFrom::NoSymbols(path),
            opened: Some(opened),
        },
        (Ok(opened), None) => Found {
            names: NamesFrom::File(path),
            opened: Some(opened),
        },
        (Err(error), _) => Found {
            names: NamesFrom::Unreadable(path, error.to_string()),
            opened: None,
        },
    }
}

/// The file at the path in the recording, if it has the recorded build id.
fn recorded(key: &BinaryKey) -> Option<PathBuf> {
    let id = key.build_id.as_ref()?;
    let text = std::str::from_utf8(&key.path).ok()?;
    let path = Path::new(text);
    // Only regular files are opened: a path may be that of a device or a pipe.
    if !path.is_absolute() || !path.is_file() {
        return None;
    }
    let file = BinaryFile::open(path).ok()?;
    let images = file.images().ok()?;
    let is_same = images
        .iter()
        .filter_map(|image| build_id(image).ok().flatten())
        .any(|found| same_build_id(&found, id));
    is_same.then(|| path.to_owned())
}

/// The symbols of the running kernel, if it is the recorded one and if the user may read them.
fn running_kernel(key: &BinaryKey) -> Option<Opened> {
    let id = key.build_id.as_ref()?;
    if !matches!(key.numbering, Numbering::FromText | Numbering::FromStext) {
        return None;
    }
    let notes = std::fs::read("/sys/kernel/notes").ok()?;
    let running = build_id_in_notes(&notes)?;
    if !same_build_id(&BuildId(running.to_vec()), id) {
        return None;
    }
    let text = std::fs::read("/proc/kallsyms").ok()?;
    let (symbols, [text, stext]) = Symbols::of_kallsyms(&text);
    (!symbols.is_empty()).then(|| Opened {
        files: None,
        places: BinaryPlaces::of_kernel(text, stext),
        symbols,
    })
}

/// Finds the build id in a list of ELF notes of this machine's byte order. A note has the lengths of its name and its
/// content, its type, then both, each padded to 4 bytes.
fn build_id_in_notes(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3;
    loop {
        let (head, rest) = notes.split_at_checked(12)?;
        let mut words = head
            .as_chunks()
            .0
            .iter()
            .map(|&word| u32::from_ne_bytes(word));
        let (name, content, kind) = (words.next()?, words.next()?, words.next()?);
        let padded = |length: u32| usize::try_from(length).ok()?.checked_next_multiple_of(4);
        let (name_bytes, rest) = rest.split_at_checked(padded(name)?)?;
        let found = rest.get(..usize::try_from(content).ok()?)?;
        if kind == BUILD_ID && name_bytes.starts_with(b"GNU\0") {
            return Some(found);
        }
        notes = rest.get(padded(content)?..)?;
    }
}

fn open(path: &Path, binaries: &Binaries) -> profkit_data::Result<Opened> {
    let mut files = ProgramFiles::open(path, &binaries.debug_folders)?;
    let has_symbols = |files: &ProgramFiles| -> profkit_data::Result<(BinaryPlaces, Symbols)> {
        let image = files.program()?;
        let debug = files.debug_image()?;
        let mut places = BinaryPlaces::of(&image);
        if let Some(debug) = &debug {
            places.find_kernel(debug);
        }
        Ok((places, Symbols::of(&image, debug.as_ref())?))
    };
    let (mut places, mut symbols) = has_symbols(&files)?;
    if symbols.is_empty()
        && files.debug_file().is_none()
        && let Some(id) = build_id(&files.program()?)?
        && let Some(debug) = binaries.debug_info(&id)
    {
        files = files.with_debug_file(&debug)?;
        (places, symbols) = has_symbols(&files)?;
    }
    Ok(Opened {
        files: Some(files),
        places,
        symbols,
    })
}

impl Found {
    /// Returns the function, and with `lines` the line, of each place. A place is an offset or address as the key states
    /// it, and whether it is a return address: the call is before it.
    pub fn named(&self, key: &BinaryKey, places: &[(u64, bool)], lines: bool) -> Vec<Named> {
        let Some(opened) = &self.opened else {
            return vec![Named::default(); places.len()];
        };
        let addresses: Vec<Option<u64>> = places
            .iter()
            .map(|&(at, is_return)| {
                let address = opened.places.address(key.numbering, at)?;
                Some(address.wrapping_sub(u64::from(is_return)))
            })
            .collect();
        let mut named: Vec<Named> = addresses
            .iter()
            .map(|address| Named {
                symbol: address
                    .and_then(|at| opened.symbols.name(at))
                    .map(<[u8]>::to_vec),
                ..Named::default()
            })
            .collect();
        let options = Options::new().symbols(false);
        if lines
            && let Some(files) = &opened.files
            && let Ok(symbolizer) = files.symbolizer(&options)
        {
            let wanted: Vec<u64> = addresses.iter().map(|at| at.unwrap_or(0)).collect();
            let locations = symbolizer.symbolize(&wanted);
            for (index, named) in named.iter_mut().enumerate() {
                // The outermost frame is the one of the symbol; the others were inlined into it.
                if addresses.get(index).is_some_and(Option::is_some)
                    && let Some(frame) = locations.stack(index).last()
                {
                    named.file = frame.file.unwrap_or_default().to_vec();
                    named.line = frame.line;
                }
            }
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap();
        let mut bytes: Vec<u8> = [4, length, kind]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        bytes.extend_from_slice(b"GNU\0");
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn the_build_id_is_found_among_notes_of_any_length() {
        let notes = [note(1, b"abcde"), note(3, b"123456789")].concat();
        assert_eq!(build_id_in_notes(&notes), Some(b"123456789".as_slice()));
        for end in 0..notes.len() - 3 {
            assert_eq!(build_id_in_notes(&notes[..end]), None, "{end}");
        }
        assert_eq!(build_id_in_notes(&[0xff; 64]), None);
    }
}
