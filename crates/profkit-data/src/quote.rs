//! Formats a text from a file for a message: in quotes, with escapes, and cut if it is long.
pub(crate) fn quote(text: &[u8]) -> String {
    const SHOWN: usize = 60;
    match text.get(..SHOWN) {
        Some(head) if text.len() > SHOWN => format!("\"{}…\"", head.escape_ascii()),
        _ => format!("\"{}\"", text.escape_ascii()),
    }
}
