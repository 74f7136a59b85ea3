//! The texts of errors from the operating system.

/// Returns the text of an I/O error without Rust's "(os error N)". All messages state I/O errors in this form.
///
/// ```
/// let error = std::fs::read("/no/such/file").unwrap_err();
/// assert!(!profkit_data::system_text(&error).contains("os error"));
/// ```
pub fn system_text(error: &std::io::Error) -> String {
    let mut text = error.to_string();
    // An error of the crate `tempfile` ends with the path of its temporary file. The path does not help the user, so
    // the path is removed too.
    if let Some(end) = text.find(" (os error ") {
        text.truncate(end);
    }
    text
}
