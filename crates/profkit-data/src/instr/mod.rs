//! Instrumentation profiles: what the raw, indexed and text forms share.
//!
//! A reader yields [`Record`]s, one a function and hash; a writer takes an [`InstrProfile`]. Raw, indexed and text
//! each have a folder with the reader beside the writer.
pub mod indexed;
mod kind;
mod profile;
pub mod raw;
mod record;
pub mod releases;
mod source;
mod table;
pub mod text;
pub mod value_data;

pub use kind::InstrKind;
pub use profile::{InstrProfile, MemProfSection, TemporalTrace, TemporalTraces};
pub(crate) use record::is_pseudo;
pub use record::{KindValues, Record, SiteValues, ValueData, ValueEntry};
pub use source::InstrSource;
pub use table::{FunctionId, FunctionRef, FunctionTable, NewRecord, RecordId, RecordRef};
