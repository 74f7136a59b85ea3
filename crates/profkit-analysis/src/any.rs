//! Opens and reads a profile of any kind except heap profiles.
use crate::faults::Faults;
use crate::instr::InstrTable;
use crate::samples::SampleView;
use profkit_data::Result;
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::raw::RawMetadataSource;
use profkit_data::instr::{InstrReader, not_an_instr_profile};
use profkit_data::mip::{MipProfile, ProfileVersion};

/// A profile of any kind whose counts belong to functions: all kinds except heap profiles. Its sound parts are in memory,
/// so that several questions can be asked about one file that is read once.
///
/// ```
/// use profkit_analysis::any::AnyProfile;
///
/// for file in [b":ir\nmain\n1234\n1\n5\n".as_slice(), b"main:100:5\n 1: 3\n"] {
///     match AnyProfile::open(file, None)? {
///         AnyProfile::Instr(table) => assert_eq!(table.facts.instrumentation.to_string(), "IR"),
///         AnyProfile::Sample(view) => assert_eq!(view.profile.functions().len(), 1),
///         AnyProfile::Mip(profile, _) => println!("{} functions", profile.functions.len()),
///     }
/// }
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Debug)]
pub enum AnyProfile<'data> {
    /// An instrumentation profile.
    Instr(Box<InstrTable<'data>>),
    /// A sample profile.
    Sample(Box<SampleView<'data>>),
    /// A MIP profile, with the version of its file.
    Mip(Box<MipProfile>, ProfileVersion),
}

impl<'data> AnyProfile<'data> {
    /// Opens a profile by its content. A raw profile may hold only counters; `metadata` then supplies its function
    /// records. [`Plan::joined`](crate::correlate::Plan::joined) can be passed as `metadata`.
    ///
    /// # Errors
    /// If the file is not a profile, or if nothing of it can be read.
    pub fn open(data: &'data [u8], metadata: Option<&'data dyn RawMetadataSource>) -> Result<Self> {
        Self::open_as(detect(data), data, metadata)
    }

    /// Opens a profile whose kind is known, as [`open`](Self::open) does.
    pub fn open_as(
        kind: FileKind,
        data: &'data [u8],
        metadata: Option<&'data dyn RawMetadataSource>,
    ) -> Result<Self> {
        match kind {
            kind if kind.is_sample() => {
                let view = SampleView::open(data, None)?;
                Ok(AnyProfile::Sample(Box::new(view)))
            }
            kind if kind.is_mip() && kind != FileKind::MipMap => {
                let (profile, form) = MipProfile::open(data)?;
                let version = form.version().ok_or_else(|| not_an_instr_profile(kind))?;
                Ok(AnyProfile::Mip(Box::new(profile), version))
            }
            kind => {
                let reader = InstrReader::salvage(kind, data, metadata)?;
                reader.check_text()?;
                Ok(AnyProfile::Instr(Box::new(InstrTable::read(reader))))
            }
        }
    }

    /// The errors of the file.
    pub fn faults(&self) -> Faults {
        match self {
            AnyProfile::Instr(table) => table.damage.clone(),
            AnyProfile::Sample(view) => view.faults(),
            AnyProfile::Mip(..) => Faults::default(),
        }
    }
}
