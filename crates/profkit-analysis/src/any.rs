//! Opens a profile of any kind except heap profiles.
use crate::samples::SampleView;
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::raw::RawMetadataSource;
use profkit_data::instr::{InstrReader, not_an_instr_profile};
use profkit_data::mip::{MipProfile, ProfileVersion};
use profkit_data::{Profile, ReadOptions, Result, open_as};

/// A profile of any kind whose counts belong to functions: all kinds except heap profiles.
///
/// ```
/// use profkit_analysis::any::AnyProfile;
/// use profkit_data::instr::InstrSource;
///
/// for file in [b":ir\nmain\n1234\n1\n5\n".as_slice(), b"main:100:5\n 1: 3\n"] {
///     match AnyProfile::open(file, None)? {
///         AnyProfile::Instr(reader) => assert_eq!(reader.kind().to_string(), "IR"),
///         AnyProfile::Sample(view) => assert_eq!(view.profile.functions().len(), 1),
///         AnyProfile::Mip(profile, _) => println!("{} functions", profile.functions.len()),
///     }
/// }
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Debug)]
pub enum AnyProfile<'data> {
    /// An instrumentation profile.
    Instr(InstrReader<'data>),
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
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
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
            FileKind::MipProfile | FileKind::MipYaml | FileKind::MipUnknown => {
                match open_as(kind, data, &ReadOptions::new())? {
                    Profile::Mip(profile, version) => Ok(AnyProfile::Mip(profile, version)),
                    _ => Err(not_an_instr_profile(kind)),
                }
            }
            kind => {
                let reader = InstrReader::salvage(kind, data, metadata)?;
                reader.check_text()?;
                Ok(AnyProfile::Instr(reader))
            }
        }
    }
}
