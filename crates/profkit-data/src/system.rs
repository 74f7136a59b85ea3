//! What the operating system says.

/// The text of an I/O error without Rust's "(os error N)", as every message has it.
///
/// ```
/// let error = std::fs::read("/no/such/file").unwrap_err();
/// assert!(!profkit_data::system_text(&error).contains("os error"));
/// ```
pub fn system_text(error: &std::io::Error) -> String {
    let mut text = error.to_string();
    // Errors of `tempfile` have the path of its own file after it, which means nothing to the user.
    if let Some(end) = text.find(" (os error ") {
        text.truncate(end);
    }
    text
}
