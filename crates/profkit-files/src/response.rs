//! Response files of compilers and linkers. In a command line, a word `@FILE` stands for the words in the file.
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The largest nesting depth of response files. GCC's libiberty has a similar limit.
const RESPONSE_DEPTH: usize = 20;

/// Replaces each word `@FILE` by the words in that file. A word whose file cannot be read is kept, as in compilers.
#[must_use]
pub fn expand(words: &[OsString]) -> Vec<OsString> {
    expand_within(words, 0)
}

fn expand_within(words: &[OsString], depth: usize) -> Vec<OsString> {
    let mut all = Vec::new();
    for word in words {
        let named = word
            .as_bytes()
            .strip_prefix(b"@")
            .filter(|_| depth < RESPONSE_DEPTH);
        match named.map(|name| std::fs::read(PathBuf::from(OsStr::from_bytes(name)))) {
            Some(Ok(text)) => all.extend(expand_within(&split(&text), depth + 1)),
            Some(Err(_)) | None => all.push(word.clone()),
        }
    }
    all
}

fn split(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            _ if quote == Some(byte) => quote = None,
            _ if quote.is_some() => word.get_or_insert_default().push(byte),
            b'"' | b'\'' => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            _ if byte.is_ascii_whitespace() => {
                words.extend(word.take().map(|word| OsStr::from_bytes(&word).to_owned()));
            }
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word.map(|word| OsStr::from_bytes(&word).to_owned()));
    words
}

/// Returns the text of a response file that contains these words.
#[must_use]
pub fn text(words: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for word in words {
        text.push(b'"');
        for &byte in word.as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.extend_from_slice(b"\"\n");
    }
    text
}
