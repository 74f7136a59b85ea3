//! Makes text from files safe to print.
use std::borrow::Cow;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Formats bytes as one line of text that cannot control a terminal. Control characters, line breaks and bytes that are
/// not UTF-8 are written as escapes.
///
/// ```
/// assert_eq!(profkit_data::printable(b"a\nb\xff"), "a\\nb\\xff");
/// ```
pub fn printable(bytes: &[u8]) -> Cow<'_, str> {
    // Nearly all names consist of printable ASCII characters (space to tilde). This check, without a branch per byte,
    // recognises them quickly.
    let is_plain = bytes
        .iter()
        .fold(true, |plain, &byte| plain & matches!(byte, b' '..=b'~'));
    match std::str::from_utf8(bytes) {
        Ok(text) if is_plain => Cow::Borrowed(text),
        Ok(text) if !text.chars().any(char::is_control) => Cow::Borrowed(text),
        _ => {
            let mut text = String::with_capacity(bytes.len() + 8);
            for chunk in bytes.utf8_chunks() {
                for one in chunk.valid().chars() {
                    if one.is_control() {
                        text.extend(one.escape_default());
                    } else {
                        text.push(one);
                    }
                }
                for byte in chunk.invalid() {
                    let _ = write!(text, "\\x{byte:02x}");
                }
            }
            Cow::Owned(text)
        }
    }
}

/// The bytes that [`printable`] formats as this text. A text that has a backslash of its own gives other bytes than its
/// own.
///
/// ```
/// assert_eq!(profkit_data::from_printable(r"a\nb\xff\u{1b}\d"), b"a\nb\xff\x1b\\d");
/// ```
pub fn from_printable(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let hex = |digits: &str| u32::from_str_radix(digits, 16).ok();
        let braced = || after.strip_prefix("u{")?.split_once('}');
        let mut utf8 = [0; 4];
        if let Some((digits, end)) = braced()
            && let Some(one) = hex(digits).and_then(char::from_u32)
        {
            bytes.extend_from_slice(one.encode_utf8(&mut utf8).as_bytes());
            rest = end;
        } else if let Some(digits) = after.strip_prefix('x').and_then(|after| after.get(..2))
            && let Some(byte) = hex(digits).and_then(|byte| u8::try_from(byte).ok())
        {
            bytes.push(byte);
            rest = after.get(3..).unwrap_or_default();
        } else {
            let control = match after.as_bytes().first() {
                Some(b'n') => Some(b'\n'),
                Some(b'r') => Some(b'\r'),
                Some(b't') => Some(b'\t'),
                _ => None,
            };
            bytes.push(control.unwrap_or(b'\\'));
            rest = after
                .get(usize::from(control.is_some())..)
                .unwrap_or_default();
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Formats a path as one line of text. All messages name files this way.
///
/// ```
/// assert_eq!(profkit_data::path_text("a\nb".as_ref()), "a\\nb");
/// ```
pub fn path_text(path: &Path) -> String {
    printable(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// Makes a path from its bytes, for example from an argument, a line in a list of files, or a path in a binary. On
/// systems on which paths are not bytes (all but Unix), bytes that are not UTF-8 are replaced.
pub fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
    }
    #[cfg(not(unix))]
    {
        PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
    }
}
