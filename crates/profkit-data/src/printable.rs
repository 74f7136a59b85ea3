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
