//! The compilers and linkers that made a binary, as it states them itself.
use object::{Object, ObjectSection};

/// The most statements that are read of a binary, and the most bytes of each: a damaged file can have any.
const MOST: usize = 64;
const MOST_BYTES: usize = 200;

/// The statements in the section `.comment` of an ELF file, such as `clang version 22.1.8`: sorted, each once. Empty if
/// there is no such section, or the bytes are not those of an object file.
pub fn producers(binary: &[u8]) -> Vec<String> {
    let Ok(file) = object::File::parse(binary) else {
        return Vec::new();
    };
    let section = file.section_by_name(".comment");
    match section.map(|section| section.data()) {
        Some(Ok(texts)) => statements(texts),
        _ => Vec::new(),
    }
}

fn statements(section: &[u8]) -> Vec<String> {
    let texts = section.split(|&byte| byte == 0);
    let texts = texts.filter(|text| !text.is_empty()).take(MOST);
    let texts = texts.map(|text| {
        let text = text.get(..MOST_BYTES).unwrap_or(text);
        String::from_utf8_lossy(text).trim().to_owned()
    });
    let mut texts: Vec<_> = texts.collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_is_read_once_and_not_too_long() {
        let long = "x".repeat(1000);
        let text = format!("clang version 22\0Linker: LLD\0\0clang version 22\0{long}");
        let expected = ["Linker: LLD", "clang version 22", &long[..MOST_BYTES]];
        assert_eq!(statements(text.as_bytes()), expected);
        assert_eq!(statements("a\0b\0".repeat(1000).as_bytes()), ["a", "b"]);
    }

    #[test]
    fn a_file_states_its_compilers_or_nothing() {
        let found = producers(&profkit_testkit::fixture("heap/heap.debug"));
        let is_clang = |text: &String| text.contains("clang version");
        assert!(found.iter().any(is_clang), "{found:?}");
        assert!(producers(b"no binary").is_empty());
    }
}
