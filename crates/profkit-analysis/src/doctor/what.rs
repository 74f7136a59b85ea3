//! The type of a file, and the next steps for the user. These are values; front ends turn them into text.
use crate::instr::InstrFacts;
use profkit_data::detect::FileKind;
use profkit_data::mip::MipKind;
use profkit_data::sample::SampleEncoding;
use profkit_data::sample::gcov::GcovVersion;

/// The type of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// There is no such file.
    Missing,
    /// The file cannot be read.
    Unreadable,
    /// The file is empty.
    Empty,
    /// The type is not known.
    Unknown,
    /// A program, a library or an object file.
    ObjectFile,
    /// A file of another known kind that is not a profile.
    Other(FileKind),
    /// Text from which no profile can be read.
    Text,
    /// An instrumentation profile.
    Instr(InstrFacts),
    /// A raw instrumentation profile with a broken header. The field is the version, if it can be read.
    BrokenRaw(Option<u32>),
    /// An indexed profile with a broken header.
    BrokenIndexed,
    /// A part of a merge. The field is the number of its inputs, if it can be read.
    Part(Option<u64>),
    /// A raw heap profile. The field is the version, if it can be read.
    HeapRaw(Option<u64>),
    /// A heap profile in YAML.
    HeapYaml,
    /// A MIP profile in YAML.
    MipYaml,
    /// A sample profile.
    Sample {
        /// The encoding of the profile, if it is known.
        encoding: Option<SampleEncoding>,
        /// The version of a binary encoding, as the file states it.
        version: u64,
        /// The version of GCC's encoding, if the profile has this encoding and the version can be read.
        gcov: Option<GcovVersion>,
    },
    /// A MIP file.
    Mip {
        /// The kind of MIP file; `None` if the header cannot be read.
        kind: Option<MipKind>,
        /// The version of the format.
        version: u8,
        /// What the file holds.
        contents: MipContents,
    },
}

/// The contents of a MIP file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MipContents {
    /// The contents cannot be read.
    #[default]
    Nothing,
    /// The number of runs in a raw file.
    Runs(u64),
    /// The number of functions in a map.
    Functions(u64),
    /// The functions of a profile.
    Covered {
        /// The number of functions.
        functions: u64,
        /// The number of functions that were called in at least one run.
        covered: u64,
    },
}

/// A step that the user can take next with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The file is a program: run it, and examine the profile that it writes.
    RunProgram,
    /// The file is a program with a MIP map: run it, and merge the raw file that it writes.
    RunMipProgram,
    /// Show the heap profile together with the binaries that ran.
    ShowHeap,
    /// Run the program again, because nothing of the raw profile can be used.
    RunAgain,
    /// Merge the raw profiles again, because nothing of the indexed profile can be used.
    MergeAgain,
    /// Give the binary to the merge, because the profile has only counters: their functions are described in the binary.
    Correlate,
    /// Merge the raw heap profile with the binary. The merge keeps the sound dumps, and symbolises them.
    KeepSoundHeap,
    /// Merge the file. The merge keeps the sound parts, and reports the damaged ones.
    KeepSound,
    /// Merge the file together with a complete profile of the same program, because the complete profile has the names
    /// of the functions.
    KeepWithComplete,
    /// Show the profile.
    Show,
    /// Run the program with MemProf again, because nothing of the raw heap profile can be used.
    HeapRunAgain,
    /// Show the hottest functions.
    ShowHot,
    /// Write the profile in a format that an older release reads.
    ForOlderRelease,
    /// Merge the archive that the file is in.
    MergeArchive,
    /// Merge the file to get a profile for compilers.
    ForCompiler,
    /// Convert the sample profile to text, or from text to a binary encoding.
    ConvertSamples {
        /// Whether the profile is text now. If so, it is converted to a binary encoding; otherwise it is converted to
        /// text.
        from_text: bool,
    },
    /// Merge the sample profiles.
    MergeSamples,
    /// Run the program with MIP again, because nothing of the raw file can be used.
    MipRunAgain,
    /// Merge the raw MIP file into the profile of its build.
    MipMerge,
    /// Extract the map from the program again.
    MipExtractMap,
    /// Create an empty MIP profile from the map.
    MipCreate,
    /// Merge the raw MIP files again, because nothing of the profile can be used.
    MipMergeAgain,
    /// Show the MIP profile.
    MipShow,
    /// Turn the YAML into a MIP profile.
    MipConvert,
}
