//! Fuzzes everything that is read of programs, libraries and debug files, in all formats.
use profkit_data::ErrorKind;
use profkit_object::bb_addr_map;
use profkit_object::binary::{BinaryFile, Image};
use profkit_object::build_id::build_id;
use profkit_object::code_symbols::{code_symbols, read_code_symbols};
use profkit_object::debug_files::{DebugFolders, DebugLink};
use profkit_object::functions::{functions, mip_functions, sampled_functions};
use profkit_object::index::{BinaryIndex, Contents, IndexCache};
use profkit_object::library::{bitcode_in, members};
use profkit_object::memprof::{ModuleFrames, code_mappings};
use profkit_object::mip_sections::MipSections;
use profkit_object::producers::producers;
use profkit_object::symbolize::{Declarations, Options, ProgramFiles, inlined_functions};
use std::path::Path;

/// Takes any bytes as a file with machine code or debug info, and reads all that commands read of such files.
///
/// # Panics
/// If the functions that read the same part of it contradict each other.
pub(crate) fn binary(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program");
    std::fs::write(&path, data).expect("written");
    let file = BinaryFile::open(&path).expect("a file that was just written");
    assert_eq!(file.size(), data.len() as u64);
    let images = match file.images() {
        Ok(images) => images,
        Err(error) => {
            assert!(!file.is_linked());
            if error.kind() == ErrorKind::Archive {
                let _ = bitcode_in(&path);
                let _ = members(&path, data);
            }
            return;
        }
    };
    for image in &images {
        read_image(image, &path);
    }
    let _ = code_mappings(&file);
    assert!(producers(data).len() <= data.len());
    let _ = read_code_symbols(&path);
    let _ = BinaryIndex::build(std::slice::from_ref(&path), &mut IndexCache::none());
    // No folder of this machine has a debug file for it.
    let folders = DebugFolders {
        folders: Vec::new(),
    };
    let _ = Declarations::read(std::slice::from_ref(&path), &folders);
    let Ok(files) = ProgramFiles::open(&path, &folders) else {
        return;
    };
    let addresses: Vec<u64> = (0..0x4000).step_by(0x40).chain([u64::MAX]).collect();
    if let Ok(symbolizer) = files.symbolizer(&Options::default()) {
        let _ = symbolizer.code_places();
        let _ = symbolizer.subprograms();
        let _ = symbolizer.symbolize(&addresses);
    }
    let _ = ModuleFrames::new(&files, &addresses);
}

fn read_image(image: &Image<'_>, path: &Path) {
    let link = DebugLink::of(image);
    if let (Ok(id), Ok(link)) = (build_id(image), link) {
        assert_eq!(id, link.build_id);
    }
    let _ = Contents::of(image);
    if let Ok(symbols) = code_symbols(image) {
        assert!(symbols.is_sorted_by(|one, next| one.address <= next.address));
    }
    let _ = functions(image, path);
    let _ = mip_functions(image, path);
    let _ = sampled_functions(image);
    let _ = inlined_functions(image);
    let _ = MipSections::of(image);
    let _ = bb_addr_map::of_image(image);
}
