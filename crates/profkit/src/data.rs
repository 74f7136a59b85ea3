//! Every format: readers, models and writers.
//!
//! # Read and print
//! [`open`](crate::open) recognises a file by its content and returns a [`Profile`](crate::Profile), an enum with one variant per kind. An
//! [`InstrSource`](instr::InstrSource) reads the records of an instrumentation profile one after another. Readers
//! borrow the bytes.
//!
//! ```
//! # #[cfg(feature = "instr")] {
//! use profkit::data::instr::{InstrSource, Record};
//! use profkit::data::printable;
//! use profkit::{Profile, ReadOptions, open};
//!
//! fn print(source: &mut dyn InstrSource) -> profkit::Result<()> {
//!     let mut record = Record::default();
//!     while source.read_record(&mut record)? {
//!         println!("{}: {:?}", printable(&record.name), record.counts);
//!     }
//!     Ok(())
//! }
//!
//! let file = b":ir\nmain\n1234\n2\n90\n10\n";
//! match open(file, &ReadOptions::new())? {
//!     Profile::Instr(mut reader) => print(&mut reader)?,
//!     _ => println!("another kind: {:?}", profkit::data::detect::detect(file)),
//! }
//! # }
//! # Ok::<(), profkit::Error>(())
//! ```
//!
//! | variant | how to go on |
//! |---|---|
//! | `Instr` | an [`InstrReader`](instr::InstrReader) of any form; in an indexed profile, [`lookup`](instr::indexed::IndexedProfile::lookup) finds one function |
//! | `Sample` | [`read_into`](sample::SampleFile::read_into) a [`SampleProfile`](sample::SampleProfile), then [`functions`](sample::SampleProfile::functions) |
//! | `MemProf` | [`contexts`](memprof::MemProfile::contexts) |
//! | `MemProfRaw` | addresses only, in [`dumps`](memprof::raw::RawMemProf::dumps): see [Heap contexts](crate::analysis#heap-contexts) |
//! | `Mip` | the field [`functions`](mip::MipProfile::functions) |
//! | `MipRaw`, `MipMap` | no functions with counts yet: [`merge_mip`](crate::merge::mip::merge_mip) adds raw files to a profile |
//!
//! [`InstrReader`](instr::InstrReader) opens an instrumentation profile of any form;
//! [`AnyProfile`](crate::analysis::any::AnyProfile) opens every kind of profile that has functions, but not heap profiles. An indexed profile that holds only a heap profile opens without functions:
//! [`is_heap_alone`](crate::analysis::heap::is_heap_alone) recognises it. Both read the sound parts of damaged profiles, where
//! [`open`](crate::open) refuses a file whose sections are cut off. `next_record` then returns an error for each damaged record or
//! part of the file:
//!
//! ```
//! # #[cfg(feature = "instr")] {
//! use profkit::data::instr::{InstrReader, InstrSource, Record};
//!
//! let mut reader = InstrReader::open(b":ir\nmain\n1234\n2\n90\n10\n")?;
//! let mut record = Record::default();
//! while let Some(read) = reader.next_record(&mut record) {
//!     match read {
//!         Ok(()) => println!("{} counters", record.counts.len()),
//!         Err(error) => eprintln!("{error}"),
//!     }
//! }
//! # }
//! # Ok::<(), profkit::Error>(())
//! ```
//!
//! The name of a record is empty if the names are lost. If a raw profile contains only counters, reading it fails with [`ErrorKind::MissingCorrelation`](crate::ErrorKind::MissingCorrelation): [`InstrReader::salvage`](instr::InstrReader::salvage)
//! takes the functions from [`Plan::joined`](crate::analysis::correlate::Plan::joined), see [Correlate](crate::analysis#correlate).
//! [`names::display`](crate::analysis::names::display) demangles names of functions.
//!
//! Whatever the bytes are, no reader panics, and none allocates memory because of a count in the file.
//!
//! # Sample profile to another encoding
//! [`sample::read`] adds the samples of a file of any encoding to a
//! [`SampleProfile`](sample::SampleProfile), so that reading several files merges them. Each encoding has a
//! module with a `write`, which returns the losses: data that were left out because the encoding cannot contain them.
//! If the meaning of the profile would change, `write` returns an error instead ([`ErrorKind::CannotRepresent`](crate::ErrorKind::CannotRepresent)):
//!
//! | encoding | calling contexts | pseudo probes |
//! |---|---|---|
//! | [`text`](sample::text) | yes; an error for releases before LLVM 13 | yes |
//! | [`ext_binary`](sample::ext_binary) | yes; an error with `split_layout` | yes |
//! | [`binary`](sample::binary), and `write_compact` | error | error |
//! | [`gcov`](sample::gcov), for GCC | error | the checksums are lost |
//!
//! [`nest`](sample::nest) turns contexts into functions inlined into their callers, so that
//! every encoding can contain them. [`GcovOptions::new`](sample::gcov::GcovOptions::new) needs a version:
//! [`GcovVersion::of_gcc`](sample::gcov::GcovVersion::of_gcc) returns the version that a release of GCC reads.
//! LLVM reads only [`Gcc47`](sample::gcov::GcovVersion::Gcc47), and not versions 1 to 3.
//!
//! ```
//! # #[cfg(feature = "sample")] {
//! use profkit::data::sample::ext_binary::{self, ExtBinaryOptions};
//! use profkit::data::sample::{SampleProfile, read};
//!
//! let mut profile = SampleProfile::new();
//! let weight = 1;
//! let report = read(b"main:100:5\n 1: 3\n", &mut profile, weight);
//! assert!(report.faults.is_empty());
//! let mut bytes = Vec::new();
//! let losses = ext_binary::write(&profile, &ExtBinaryOptions::default(), &mut bytes)?;
//! assert!(losses.is_empty(), "not written: {losses}");
//! # }
//! # Ok::<(), profkit::Error>(())
//! ```
pub use profkit_data::{ForeignFile, Weight, path_text, printable};

/// Destinations of writers, and byte order.
pub mod bytes {
    pub use profkit_data::bytes::{Endian, Sink};
}

/// What a file is, by its content.
pub mod detect {
    pub use profkit_data::detect::{Family, FileKind, detect};
}

/// Every limit for hostile input, with its cost.
pub use profkit_data::limits;

/// Hashes of names, of control flow, and of builds.
pub mod ids {
    pub use profkit_data::ids::{BuildId, FuncHash, NameRef};
}

/// Instrumentation profiles.
#[cfg(feature = "instr")]
pub mod instr {
    pub use profkit_data::instr::{
        FunctionId, FunctionRef, FunctionTable, InstrKind, InstrProfile, InstrReader, InstrSource,
        KindValues, Losses, MemProfSection, NewRecord, Record, RecordId, RecordRef, Renamed,
        SiteValues, TemporalTrace, TemporalTraces, TraceOptions, TraceSampling, ValueData,
        ValueEntry,
    };

    /// The indexed format (`.profdata`).
    pub mod indexed {
        pub use profkit_data::instr::indexed::{
            FunctionEncoder, IndexedFrame, IndexedHeader, IndexedPlan, IndexedProfile,
            IndexedReadOptions, IndexedReader, IndexedWriteOptions, NameRecords, Summaries, write,
        };
    }

    /// Raw files (`.profraw`), which programs write.
    pub mod raw {
        pub use profkit_abi::variant;
        pub use profkit_data::instr::raw::{
            ImplausibleCount, MetadataRecord, PointerWidth, ProgramMetadata, RawDialect, RawForm,
            RawHeader, RawImage, RawImageRecord, RawImageVTable, RawMetadata, RawMetadataSource,
            RawProfile, RawReadOptions, RawReader, RawSection, write,
        };
    }

    /// The text format.
    pub mod text {
        pub use profkit_data::instr::text::{
            Names, TextOptions, TextReader, TextWriter, is_readable, losses, write,
        };
    }
}

/// Heap profiles (MemProf).
#[cfg(feature = "memprof")]
pub mod memprof {
    pub use profkit_data::memprof::{
        AllocSite, Allocations, CallSite, Context, DataAccess, DataRecord, Datum, Field, Frame,
        FrameId, FrameList, Hotness, Losses, MemInfoBlock, MemProfSummary, MemProfile, Record,
        Schema, SourceLocation, StackId, Thresholds, guid,
    };

    /// The section of indexed profiles.
    pub mod indexed {
        pub use profkit_data::memprof::indexed::{
            IndexedMemProf, IndexedMemProfOptions, encode, options_of, read_section,
        };
    }

    /// The section with names and source locations, which LLVM's tools pass over.
    pub mod portable {
        pub use profkit_data::memprof::portable::{PortableSection, encode, find};
    }

    /// Dumps, which programs write: call stacks are addresses.
    pub mod raw {
        pub use profkit_data::memprof::raw::{Module, RawDump, RawMemProf, RawMemProfOptions};
    }

    /// YAML.
    pub mod yaml {
        pub use profkit_data::memprof::yaml::{parse, write};
    }
}

/// MIP profiles.
#[cfg(feature = "mip")]
pub mod mip {
    pub use profkit_data::mip::{
        Block, CallEdge, EntryKind, EntryRecord, Function, FunctionId, Identity, ImageId, Layout,
        Losses, MapEntry, MapReadOptions, MipForm, MipKind, MipMap, MipProfile, MipWriteOptions,
        Modes, ProfileVersion, RawPart, RawParts, Sample, add_profile, write, write_raw,
    };

    /// YAML.
    pub mod yaml {
        pub use profkit_data::mip::yaml::{parse, write};
    }
}

/// Which versions each release of LLVM reads and writes.
pub mod releases {
    pub use profkit_data::releases::{
        RELEASES, Release, ReleaseFacts, TextPart, display_compilers, display_range,
    };
}

/// Other names for functions of any profile.
#[cfg(any(feature = "instr", feature = "sample"))]
pub mod remap {
    pub use profkit_data::remap::{Remapping, RemappingError};
}

/// Sample profiles.
#[cfg(feature = "sample")]
pub mod sample {
    pub use profkit_data::sample::{
        AddOutcome, Extremes, Facts, FlatFunction, FormLosses, FormOptions, Frame, Function,
        Inlined, LeftOut, Location, Losses, NameId, ProfileKind, ReadReport, SampleEncoding,
        SampleFile, SampleForm, SampleLayout, SampleName, SampleNames, SampleProfile,
        SampleReadOptions, Samples, Step, Target, base_discriminator, encoding, flatten, nest,
        nest_keeping_bases, read, read_with, remap, rename_all, scale, summarize, trim_cold,
        unify_hashes, unite_variants,
    };

    /// The binary encoding.
    pub mod binary {
        pub use profkit_data::sample::binary::{write, write_compact};
    }

    /// The extensible binary encoding.
    pub mod ext_binary {
        pub use profkit_data::sample::ext_binary::{ExtBinaryOptions, write};
    }

    /// GCC's encoding.
    pub mod gcov {
        pub use profkit_data::sample::gcov::{
            GcovLosses, GcovOptions, GcovProfile, GcovVersion, write,
        };
    }

    /// The text encoding.
    pub mod text {
        pub use profkit_data::sample::text::{TextOptions, write};
    }
}

/// Compressed files and archives.
#[cfg(feature = "stored")]
pub mod stored {
    pub use profkit_data::stored::{
        Archive, Compression, MOST_EXPANDED, MemberError, StoredError, expand, is_archive,
    };
}

/// The summary of a profile.
pub mod summary {
    pub use profkit_data::summary::{
        Markers, RecordSums, Summary, SummaryBuilder, SummaryCutoff, Thresholds,
    };
}

/// An instrumentation profile corrected by a sample profile.
#[cfg(all(feature = "instr", feature = "sample"))]
pub mod supplement {
    pub use profkit_data::supplement::{Supplement, SupplementOptions, Supplemented};
}
