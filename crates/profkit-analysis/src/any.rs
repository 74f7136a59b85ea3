//! Opens a profile of any kind except heap profiles.
use crate::instr::{InstrReader, text_has_records};
use crate::samples::SampleView;
use profkit_data::Result;
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::instr::raw::RawMetadataSource;
use profkit_data::mip::{MipForm, MipProfile, ProfileVersion};

/// A profile of any kind whose counts belong to functions: all kinds except heap profiles.
///
/// ```
/// use profkit_analysis::any::AnyProfile;
///
/// for file in [b":ir\nmain\n1234\n1\n5\n".as_slice(), b"main:100:5\n 1: 3\n"] {
///     match AnyProfile::open(file, None)? {
///         AnyProfile::Instr(mut reader) => assert_eq!(reader.source().kind().to_string(), "IR"),
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
        let kind = detect(data);
        if let FileKind::MipProfile | FileKind::MipYaml = kind
            && let (profile, MipForm::Profile(version) | MipForm::Yaml(version)) =
                MipProfile::open(data)?
        {
            return Ok(AnyProfile::Mip(Box::new(profile), version));
        }
        if kind.family() == Some(Family::Sample) {
            let view = SampleView::open(data, None)?;
            return Ok(AnyProfile::Sample(Box::new(view)));
        }
        let reader = InstrReader::open_correlated(data, metadata)?;
        if let InstrReader::Text(_) = &reader {
            text_has_records(data)?;
        }
        Ok(AnyProfile::Instr(reader))
    }
}
