//! Opens a profile of any kind. The content of the profile decides which reader is used.
use crate::detect::{Family, FileKind, detect};
use crate::{Error, ErrorKind, Result, Structure};

/// Options for opening a profile of any kind with [`open`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions<'data> {
    /// Whether to read the intact parts of a damaged instrumentation profile. By default, damage is an error as in
    /// LLVM's tools.
    pub salvage: bool,
    /// The functions of raw instrumentation profiles that hold only counters.
    #[cfg(feature = "instr")]
    pub metadata: Option<&'data dyn crate::instr::raw::RawMetadataSource>,
    #[cfg(not(feature = "instr"))]
    no_metadata: std::marker::PhantomData<&'data ()>,
    /// The options for reading sample profiles.
    #[cfg(feature = "sample")]
    pub sample: crate::sample::SampleReadOptions,
}

impl<'data> ReadOptions<'data> {
    /// Returns the default options: damage is an error, and sample profiles are read with their own default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether to read the intact parts of a damaged instrumentation profile.
    #[must_use]
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    /// Sets the functions of raw instrumentation profiles that hold only counters.
    #[cfg(feature = "instr")]
    #[must_use]
    pub fn metadata(
        mut self,
        metadata: Option<&'data dyn crate::instr::raw::RawMetadataSource>,
    ) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the options for reading sample profiles.
    #[cfg(feature = "sample")]
    #[must_use]
    pub fn sample(mut self, options: crate::sample::SampleReadOptions) -> Self {
        self.sample = options;
        self
    }
}

/// An opened profile of any kind. Most readers borrow the bytes of the file. For formats that must be read completely,
/// the variant holds the profile in memory.
#[derive(Debug)]
#[non_exhaustive]
#[allow(
    clippy::large_enum_variant,
    reason = "a program has one such value for each open file, and seldom moves it"
)]
pub enum Profile<'data> {
    /// An instrumentation profile: raw, indexed or text.
    #[cfg(feature = "instr")]
    Instr(crate::instr::InstrReader<'data>),
    /// A sample profile of any encoding.
    #[cfg(feature = "sample")]
    Sample(crate::sample::SampleFile<'data>),
    /// A raw heap profile.
    #[cfg(feature = "memprof")]
    MemProfRaw(Box<crate::memprof::raw::RawMemProf<'data>>),
    /// A heap profile that was read from YAML.
    #[cfg(feature = "memprof")]
    MemProf(Box<crate::memprof::MemProfile>),
    /// A MIP raw file, or a file of MIP return-address samples.
    #[cfg(feature = "mip")]
    MipRaw(crate::mip::RawParts<'data>),
    /// A MIP map: the list of functions in an executable or a shared library.
    #[cfg(feature = "mip")]
    MipMap(Box<crate::mip::MipMap<'data>>),
    /// A MIP profile, in binary form or read from YAML, with the version that its file states.
    #[cfg(feature = "mip")]
    Mip(Box<crate::mip::MipProfile>, crate::mip::ProfileVersion),
    /// This variant is never constructed. It exists so that the lifetime `'data` is used even if the enabled cargo
    /// features include no other variant with a lifetime.
    #[doc(hidden)]
    Never(
        std::convert::Infallible,
        std::marker::PhantomData<&'data ()>,
    ),
}

/// Opens a profile. The kind of the profile is recognised by the content ([`detect`]).
///
/// ```
/// use profkit_data::instr::{InstrSource, Record};
/// use profkit_data::{Profile, ReadOptions, open};
///
/// let file = b"main\n1234\n2\n7\n0\n\n";
/// let Profile::Instr(mut reader) = open(file, &ReadOptions::new())? else {
///     panic!("this is an instrumentation profile");
/// };
/// let mut record = Record::default();
/// assert!(reader.read_record(&mut record)?);
/// assert_eq!((record.name.as_slice(), record.counts.as_slice()), (b"main".as_slice(), [7, 0].as_slice()));
/// # Ok::<(), profkit_data::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Empty`] if there are no bytes, [`ErrorKind::UnrecognizedFormat`] if the data are not a profile,
/// [`ErrorKind::Unsupported`] if the cargo feature of the profile's family is off, and the errors of the reader for
/// this kind.
pub fn open<'data>(data: &'data [u8], options: &ReadOptions<'data>) -> Result<Profile<'data>> {
    open_as(detect(data), data, options)
}

/// Opens a profile whose kind is known, as [`open`] does.
pub fn open_as<'data>(
    kind: FileKind,
    data: &'data [u8],
    options: &ReadOptions<'data>,
) -> Result<Profile<'data>> {
    match kind {
        FileKind::Part(_) => Err(cannot_open(kind, data)),
        #[cfg(feature = "instr")]
        FileKind::InstrRaw | FileKind::InstrIndexed | FileKind::InstrText => {
            let options = crate::instr::InstrReadOptions {
                salvage: options.salvage,
                metadata: options.metadata,
                ..Default::default()
            };
            let reader = crate::instr::InstrReader::open_as(kind, data, &options)?;
            reader
                .map(Profile::Instr)
                .ok_or_else(|| cannot_open(kind, data))
        }
        #[cfg(feature = "sample")]
        kind if kind.is_sample() => {
            crate::sample::SampleFile::parse(data, &options.sample).map(Profile::Sample)
        }
        #[cfg(feature = "memprof")]
        FileKind::MemProfRaw => {
            let profile = crate::memprof::raw::RawMemProf::parse(data)?;
            Ok(Profile::MemProfRaw(Box::new(profile)))
        }
        #[cfg(feature = "memprof")]
        FileKind::MemProfYaml => {
            let profile = crate::memprof::yaml::parse(data)?;
            Ok(Profile::MemProf(Box::new(profile)))
        }
        #[cfg(feature = "mip")]
        FileKind::MipRaw | FileKind::MipReturnAddresses => {
            Ok(Profile::MipRaw(crate::mip::RawParts::new(data)))
        }
        #[cfg(feature = "mip")]
        FileKind::MipMap => {
            let map = crate::mip::MipMap::parse(data)?;
            Ok(Profile::MipMap(Box::new(map)))
        }
        #[cfg(feature = "mip")]
        FileKind::MipYaml => {
            let (profile, version) = crate::mip::yaml::parse(data)?;
            Ok(Profile::Mip(Box::new(profile), version))
        }
        #[cfg(feature = "mip")]
        FileKind::MipProfile | FileKind::MipUnknown => {
            let (profile, version) = crate::mip::MipProfile::parse_versioned(data)?;
            Ok(Profile::Mip(Box::new(profile), version))
        }
        kind => Err(cannot_open(kind, data)),
    }
}

/// The size in bytes up to which [`sound_family`] reads more of a file than its header. A sample profile of at most
/// this size is read completely. Of a raw instrumentation profile of at most this size, the names are read too. With a
/// larger limit, a merge would take longer to find the family of its inputs.
#[cfg(any(feature = "instr", feature = "sample"))]
const MOST_READ: usize = 4096;

/// Returns the family of a profile if a part of the profile can be read. Returns `None` for other files, and for a
/// profile that is cut off or damaged near its beginning. Only few bytes of a large file are read.
pub fn sound_family(data: &[u8]) -> Option<Family> {
    let kind = detect(data);
    let is_sound = match kind {
        // For these kinds, [`detect`] has checked more than a magic number, so a part of the profile can be read.
        FileKind::SampleText | FileKind::MemProfYaml | FileKind::MipYaml | FileKind::MipMap => true,
        FileKind::MipUnknown | FileKind::SampleUnknown => false,
        FileKind::Part(_) => true,
        kind if kind.is_mip() => true,
        #[cfg(feature = "sample")]
        kind if kind.is_sample() && data.len() <= MOST_READ => {
            let mut profile = crate::sample::SampleProfile::new();
            let options = crate::sample::SampleReadOptions::new();
            crate::sample::read_with(data, &mut profile, 1, &options).functions > 0
        }
        #[cfg(feature = "instr")]
        FileKind::InstrRaw if data.len() > MOST_READ => {
            crate::instr::raw::RawProfile::parse(data).is_ok()
        }
        _ => match open(data, &ReadOptions::new()) {
            #[cfg(feature = "instr")]
            Ok(Profile::Instr(mut reader)) if kind == FileKind::InstrText => {
                use crate::instr::{InstrSource, Record};
                reader.read_record(&mut Record::default()) == Ok(true)
            }
            profile => profile.is_ok(),
        },
    };
    kind.family().filter(|_| is_sound)
}

#[cold]
fn cannot_open(kind: FileKind, data: &[u8]) -> Error {
    if kind == FileKind::Empty {
        return ErrorKind::Empty.error("the file is empty");
    }
    if matches!(kind, FileKind::Part(_)) {
        return ErrorKind::Unsupported
            .error("the file is a part of a merge, which must be finished first")
            .with_hint("`profkit merge PART -o FILE` makes a profile of it");
    }
    if kind.family().is_some() {
        return ErrorKind::Unsupported
            .error("this build of profkit does not support this kind of profile")
            .at(0)
            .within(Structure::FirstBytes)
            .found(kind.description())
            .with_hint("build profkit-data with the cargo feature of this kind of profile");
    }
    let error = ErrorKind::UnrecognizedFormat
        .error("the file is not a profile")
        .at(0)
        .within(Structure::FirstBytes);
    let error = match kind {
        FileKind::Unknown => error
            .found(format_args!(
                "the bytes {:02x?}",
                data.get(..8).unwrap_or(data)
            ))
            .expected("the magic number of a profile, or text"),
        kind => error.found(kind.description()),
    };
    match kind.advice() {
        Some(advice) => error.with_hint(advice),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn opens(data: &[u8], is_right: impl Fn(&Profile<'_>) -> bool) {
        let profile = open(data, &ReadOptions::new()).unwrap();
        assert!(is_right(&profile), "{profile:?}");
    }

    #[test]
    #[cfg(feature = "instr")]
    fn instrumentation_profiles_are_opened() {
        use crate::instr::InstrReader;
        let fixture = profkit_testkit::fixture;
        opens(&fixture("raw/clang-22-ir-plain.profraw"), |profile| {
            matches!(profile, Profile::Instr(InstrReader::Raw(_)))
        });
        let indexed = fixture("indexed/clang-22-temporal-plain.profdata");
        opens(&indexed, |profile| {
            matches!(profile, Profile::Instr(InstrReader::Indexed(_)))
        });
        opens(
            &fixture("text/clang-22-vtables-shapes.proftext"),
            |profile| matches!(profile, Profile::Instr(InstrReader::Text(_))),
        );
    }

    #[test]
    #[cfg(feature = "sample")]
    fn sample_profiles_of_each_encoding_are_opened() {
        use crate::sample::SampleEncoding;
        for (name, encoding) in [
            (
                "sample/llvm-22-nested-text.sampleprof",
                SampleEncoding::Text,
            ),
            (
                "sample/llvm-22-nested-binary.sampleprof",
                SampleEncoding::Binary,
            ),
            (
                "sample/llvm-16-nested-compact.sampleprof",
                SampleEncoding::CompactBinary,
            ),
            (
                "sample/llvm-22-nested-ext.sampleprof",
                SampleEncoding::ExtBinary,
            ),
            ("gcov/create_gcov-v407.afdo", SampleEncoding::Gcov),
        ] {
            opens(
                &profkit_testkit::fixture(name),
                |profile| matches!(profile, Profile::Sample(file) if file.encoding() == encoding),
            );
        }
    }

    #[test]
    #[cfg(all(feature = "memprof", feature = "instr"))]
    fn heap_profiles_of_each_form_are_opened() {
        use crate::instr::InstrProfile;
        use crate::instr::indexed::{self, IndexedWriteOptions};
        use crate::memprof::indexed::IndexedMemProfOptions;
        use crate::memprof::raw::{self, DumpToWrite, RawMemProfOptions, Version};
        use crate::memprof::{Frame, MemProfile, guid, yaml};
        let dump = DumpToWrite::default();
        let mut file = Vec::new();
        let options = RawMemProfOptions::for_version(Version::new(5).unwrap());
        raw::write(&dump, &options, &mut file).unwrap();
        opens(
            &file,
            |profile| matches!(profile, Profile::MemProfRaw(raw) if raw.dumps().len() == 1),
        );
        let mut heap = MemProfile::default();
        heap.add_frame(Frame::default());
        heap.record_mut(guid(b"main"));
        let mut text = Vec::new();
        yaml::write(&heap, &mut text).unwrap();
        opens(
            &text,
            |profile| matches!(profile, Profile::MemProf(heap) if heap.record(guid(b"main")).is_some()),
        );
        let options = IndexedMemProfOptions::for_version(3, false);
        let profile = InstrProfile {
            memprof: Some(crate::HeapSection::Profile(Box::new(heap), options)),
            ..InstrProfile::default()
        };
        let mut file = Vec::new();
        indexed::write(&profile, &IndexedWriteOptions::for_version(12), &mut file).unwrap();
        opens(
            &file,
            |profile| matches!(profile, Profile::Instr(file) if file.memprof().is_some()),
        );
    }

    #[test]
    #[cfg(feature = "mip")]
    fn mip_files_of_each_kind_are_opened() {
        let fixture = profkit_testkit::fixture;
        for name in ["mip/mixed-1.mipraw", "mip/v8-b.mipraw"] {
            opens(
                &fixture(name),
                |profile| matches!(profile, Profile::MipRaw(parts) if parts.clone().count() == 1),
            );
        }
        for name in ["mip/mixed.mipmap", "mip/v8-a1.mipmap"] {
            opens(&fixture(name), |profile| {
                matches!(profile, Profile::MipMap(_))
            });
        }
        for name in [
            "mip/mixed-empty.mip",
            "mip/mixed-empty.yaml",
            "mip/v8-b.mip",
        ] {
            opens(
                &fixture(name),
                |profile| matches!(profile, Profile::Mip(profile, _) if !profile.functions.is_empty()),
            );
        }
    }

    #[test]
    fn what_is_not_a_profile_is_named() {
        let options = ReadOptions::new();
        let message = |data: &[u8]| open(data, &options).unwrap_err().to_string();
        assert_eq!(message(b""), "the file is empty");
        assert_eq!(
            message(b"\x7fELF\x02\x01\x01\0"),
            "the file is not a profile: found a program or object file"
        );
        assert_eq!(
            message(b"PERFILE2h\0\0\0"),
            "the file is not a profile: found a recording of Linux perf"
        );
        assert_eq!(
            message(b"\x01\x02\x03\x04\x05\x06\x07\x08"),
            "the file is not a profile: found the bytes [01, 02, 03, 04, 05, 06, 07, 08], \
             expected the magic number of a profile, or text"
        );
    }
}
