//! What `profkit doctor` prints: one block per file or per group of like files, or JSON.
//! [docs/formats/doctor-json.md] describes the JSON.
//!
//! [docs/formats/doctor-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/doctor-json.md
pub mod json;
mod remarks;
mod text;
mod words;

pub use remarks::{record_remarks, remarks};
pub use text::{end, file, group};
pub(crate) use words::gcc_releases;
pub use words::{short, verdict};
