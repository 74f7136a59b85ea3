//! Response files. An argument `@FILE` stands for the arguments in the file, which are quoted as in GNU tools.
use profkit_data::path_from_bytes;
use profkit_merge::files::system_text;
use std::path::{Path, PathBuf};

/// Replaces every argument `@FILE` by the arguments in the file, if the file exists. The new arguments may contain
/// `@FILE` again. File names are relative to the current folder, even inside response files.
///
/// # Errors
/// LLVM's text if a file names itself, or if it exists and cannot be read.
pub(super) fn expand(args: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
    let mut expanded = Vec::with_capacity(args.len());
    let mut open = Vec::new();
    for arg in args {
        expand_one(arg, &mut open, &mut expanded)?;
    }
    Ok(expanded)
}

fn expand_one(
    arg: &[u8],
    open: &mut Vec<PathBuf>,
    expanded: &mut Vec<Vec<u8>>,
) -> Result<(), String> {
    let path = match arg {
        [b'@', name @ ..] => absolute(&path_from_bytes(name)),
        _ => {
            expanded.push(arg.to_vec());
            return Ok(());
        }
    };
    let Ok(identity) = path.canonicalize() else {
        expanded.push(arg.to_vec());
        return Ok(());
    };
    if open.contains(&identity) {
        return Err(format!("recursive expansion of: '{}'", path.display()));
    }
    let bytes = std::fs::read(&path).map_err(|error| {
        // LLVM's text contains the words "cannot not".
        format!(
            "cannot not open file '{}': {}",
            path.display(),
            system_text(&error)
        )
    })?;
    let text = decode(&bytes).ok_or("Could not convert UTF16 to UTF8")?;
    open.push(identity);
    for inner in split(&text) {
        expand_one(&inner, open, expanded)?;
    }
    open.pop();
    Ok(())
}

fn absolute(path: &Path) -> PathBuf {
    match std::env::current_dir() {
        Ok(folder) => folder.join(path),
        Err(_) => path.to_owned(),
    }
}

/// Converts UTF-16 with a byte-order mark to UTF-8, and removes the byte-order mark of UTF-8.
fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Option<Vec<u16>> = bytes
            .chunks(2)
            .map(|pair| pair.try_into().ok().map(unit))
            .collect();
        String::from_utf16(&units?).ok().map(String::into_bytes)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => Some(rest.to_vec()),
        _ => Some(bytes.to_vec()),
    }
}

/// Splits a text at white space. A backslash makes the next character literal, inside quotes too. An empty pair of
/// quotes does not make an argument.
fn split(text: &[u8]) -> Vec<Vec<u8>> {
    let mut arguments = Vec::new();
    let mut argument = Vec::new();
    let mut quote = None;
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) if bytes.peek().is_some() => argument.extend(bytes.next()),
            (_, Some(open)) if byte == open => quote = None,
            (_, Some(_)) => argument.push(byte),
            (b'"' | b'\'', None) => quote = Some(byte),
            (b' ' | b'\t' | b'\r' | b'\n', None) => {
                if !argument.is_empty() {
                    arguments.push(std::mem::take(&mut argument));
                }
            }
            _ => argument.push(byte),
        }
    }
    if !argument.is_empty() {
        arguments.push(argument);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gnu_quoting() {
        let words = |text: &str| {
            split(text.as_bytes())
                .into_iter()
                .map(|word| String::from_utf8(word).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            words("a  'b c'\"d\\\"\"\r\n\te\\ f '' g\\"),
            ["a", "b cd\"", "e f", "g\\"]
        );
        assert_eq!(words("'open end"), ["open end"]);
    }

    #[test]
    fn byte_order_marks() {
        assert_eq!(decode(b"\xff\xfea\0b\0").unwrap(), b"ab");
        assert_eq!(decode(b"\xfe\xff\0a\0b").unwrap(), b"ab");
        assert_eq!(decode(b"\xef\xbb\xbfab").unwrap(), b"ab");
        assert_eq!(decode(b"\xff\xfea"), None);
    }
}
