//! Instrumentation profiles: what the raw, indexed and text forms share.
//!
//! A reader yields [`Record`]s, one per function and hash; a writer takes an [`InstrProfile`]. Raw, indexed and text
//! each have a folder with the reader beside the writer.
pub mod indexed;
mod kind;
mod losses;
mod profile;
pub mod raw;
mod record;
mod source;
mod table;
pub mod text;
pub mod value_data;

pub use crate::memprof_section::MemProfSection;
pub use crate::releases;
pub use kind::InstrKind;
pub use losses::Losses;
pub use profile::{InstrProfile, TemporalTrace, TemporalTraces};
pub use record::{KindValues, Record, SiteValues, ValueData, ValueEntry};
pub use source::InstrSource;
pub use table::{FunctionId, FunctionRef, FunctionTable, NewRecord, RecordId, RecordRef};
