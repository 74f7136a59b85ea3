//! What a file turned out to be, and what to do with it: values, which front ends put into words.
use crate::instr::InstrFacts;
use profkit_data::detect::FileKind;
use profkit_data::mip::MipKind;
use profkit_data::sample::SampleEncoding;
use profkit_data::sample::gcov::GcovVersion;

/// What a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It cannot be read.
    Unreadable,
    /// It has no bytes.
    Empty,
    /// Nothing that is known.
    Unknown,
    /// A program, library or object file.
    ObjectFile,
    /// A file of another known kind that is not a profile.
    Other(FileKind),
    /// Text, of which no profile can be read.
    Text,
    /// An instrumentation profile.
    Instr(InstrFacts),
    /// A raw instrumentation profile with a broken header; the version if that can be read.
    BrokenRaw(Option<u32>),
    /// An indexed profile with a broken header.
    BrokenIndexed,
    /// A raw heap profile; the version if it can be read. Only its header is looked at.
    HeapRaw(Option<u64>),
    /// A heap profile in YAML. It is not looked at further.
    HeapYaml,
    /// A MIP profile in YAML. It is not looked at further.
    MipYaml,
    /// A sample profile.
    Sample {
        /// LLVM's encoding, if it is known.
        encoding: Option<SampleEncoding>,
        /// The version of a binary encoding.
        version: u64,
        /// The version of GCC's encoding, if the profile can be read.
        gcov: Option<GcovVersion>,
    },
    /// A MIP file.
    Mip {
        /// What kind; `None` if the header cannot be read.
        kind: Option<MipKind>,
        /// The version of the format.
        version: u8,
        /// What could be counted.
        contents: MipContents,
    },
}

/// What a MIP file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MipContents {
    /// Nothing that can be read.
    #[default]
    Nothing,
    /// So many runs: a raw file.
    Runs(u64),
    /// So many functions: a map.
    Functions(u64),
    /// Functions, and how many of them were called: a profile.
    Covered {
        /// All functions.
        functions: u64,
        /// Those that a run called.
        covered: u64,
    },
}

/// What to do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It is a program: examine what it writes when it runs.
    RunProgram,
    /// Show the heap profile with the binaries that ran.
    ShowHeap,
    /// Run the program again: nothing of the raw profile can be kept.
    RunAgain,
    /// Merge the raw profiles again: nothing of the indexed profile can be kept.
    MergeAgain,
    /// Name the binary: the profile's functions are in it.
    Correlate,
    /// Merge: that keeps what is sound, and reports the rest.
    KeepSound,
    /// Show the hottest functions.
    ShowHot,
    /// Write it for an older release.
    ForOlderRelease,
    /// Merge, to make a profile that compilers take.
    ForCompiler,
    /// Convert the sample profile: to text, or from text to a binary encoding.
    ConvertSamples {
        /// Whether it is text now.
        from_text: bool,
    },
    /// Run the program with MIP again: nothing of the raw file can be kept.
    MipRunAgain,
    /// Merge the MIP raw file into the profile of its build.
    MipMerge,
    /// Take the map out of the program again.
    MipExtractMap,
    /// Create an empty MIP profile from the map.
    MipCreate,
    /// Merge the MIP raw files again: nothing of the profile can be kept.
    MipMergeAgain,
    /// Show the MIP profile.
    MipShow,
}
