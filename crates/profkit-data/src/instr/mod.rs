//! Instrumentation profiles: the types that the raw, indexed and text formats share.
//!
//! A reader returns [`Record`]s, one for each function name and function hash. A writer needs a whole [`InstrProfile`].
//! Each of the three formats has a folder with its reader and its writer.
pub mod indexed;
mod kind;
mod losses;
pub mod overlap;
mod profile;
pub mod raw;
mod reader;
mod record;
mod rename;
mod reservoir;
mod source;
mod table;
mod target;
pub mod text;
pub mod value_data;

pub use crate::memprof_section::{HeapSection, MemProfSection};
pub use kind::InstrKind;
pub use losses::Losses;
pub use profile::{InstrProfile, TemporalTrace, TemporalTraces};
pub use reader::{InstrReadOptions, InstrReader, not_an_instr_profile};
pub use record::{KindValues, Record, SiteValues, ValueData, ValueEntry};
pub use rename::Renamed;
pub use reservoir::{Reservoir, TraceOptions, TraceSampling};
pub use source::InstrSource;
pub use table::{
    FunctionId, FunctionRef, FunctionTable, NewRecord, RecordId, RecordRef, TableBuilder,
};
pub use target::Target;
