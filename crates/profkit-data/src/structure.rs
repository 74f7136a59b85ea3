//! The parts of files, as error messages name them.
use profkit_abi::sample::section;
use std::borrow::Cow;
use std::fmt;

/// Defines [`Structure`] from two lists. The first list has the variants without a value, each with its text for
/// messages. The second list has the variants with a value, each with code that writes the text.
macro_rules! structures {
    (
        $($fixed:ident = $words:literal,)*
        --
        $($(#[$doc:meta])* $with:ident($data:ty) = |$value:ident, $f:ident| $write:expr,)*
    ) => {
        /// A part of a file that was being read or written when an error was found. Programs can compare values of this
        /// type; `Display` prints the name of the part as messages have it.
        ///
        /// ```
        /// use profkit_data::{Error, ErrorKind, Structure};
        ///
        /// let error = ErrorKind::Truncated.error("the data are too short here")
        ///     .within(Structure::Counter(3))
        ///     .within(Structure::Function("main".to_owned()));
        /// assert!(error.is_within(&Structure::Counter(3)));
        /// assert_eq!(error.to_string(), "counter 3 of function main: the data are too short here");
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Structure {
            $(
                #[doc = concat!("In messages: \"", $words, "\".")]
                $fixed,
            )*
            $(
                $(#[$doc])*
                $with($data),
            )*
        }

        impl fmt::Display for Structure {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Structure::$fixed => f.write_str($words),)*
                    $(Structure::$with($value) => {
                        let $f = f;
                        $write
                    })*
                }
            }
        }
    };
}

structures! {
    // Names of whole files.
    RawProfile = "raw profile",
    IndexedProfile = "indexed profile",
    Recording = "recording of perf",
    MergePart = "part of a merge",
    SampleText = "text with samples by address",
    RawMemProf = "raw MemProf profile",
    MemProfYaml = "MemProf YAML",
    MipRaw = "raw file",
    MipProfile = "MIP profile",
    MipMap = "map",
    MipYaml = "MIP YAML",
    Binary = "binary",
    ObjectFile = "object file",
    DebugFile = "debug file",
    DebugPackage = "debug package",
    // Parts that occur in several formats.
    FirstBytes = "first bytes",
    Magic = "magic",
    Version = "version",
    Header = "header",
    BuildIds = "build ids",
    BuildId = "build id",
    Names = "names",
    Records = "records",
    Record = "record",
    Functions = "functions",
    Summary = "summary",
    Summaries = "summaries",
    ContextSensitiveSummary = "context-sensitive summary",
    HashTable = "hash table",
    HashTableItems = "items of the hash table",
    HashTableIndex = "index of the hash table",
    StringTable = "string table",
    PathTable = "file path table",
    StackTable = "stack entry table",
    Frame = "frame",
    Path = "path",
    Frames = "frames",
    CallStacks = "call stacks",
    Section = "section",
    Sections = "sections",
    Padding = "padding",
    BytesTag = "!bytes",
    // Parts of instrumentation profiles.
    DataRecords = "data records",
    Counters = "counters",
    Bitmap = "bitmap",
    UniformCounters = "uniform counters",
    VTableRecords = "vtable records",
    VTableNames = "vtable names",
    ValueData = "value data",
    AfterProfile = "bytes after the profile",
    TemporalTraces = "temporal traces",
    MemProfSection = "MemProf section",
    // Parts of sample profiles.
    NameTable = "name table",
    SectionTable = "section table",
    FunctionTable = "function table",
    FunctionTableOffset = "offset of the function table",
    FirstLine = "first line of a function",
    Modules = "modules",
    WorkingSets = "working sets",
    // Parts of heap profiles.
    MemProfSchema = "MemProf schema",
    Segments = "segments",
    Blocks = "blocks",
    Stacks = "stacks",
    DataAccess = "data access",
    PortableSection = "portable section",
    // Parts of recordings of perf.
    EventTable = "table of events",
    // Parts of MIP files.
    MapEntry = "map entry",
    SectionList = "list of sections",
    FunctionCount = "number of functions",
    CallEdges = "call edges",
    Strings = "strings",
    FilePaths = "file paths",
    StackEntries = "stack entries",
    // Parts of binaries and debug info.
    UniversalHeader = "universal header",
    ChainedFixups = "LC_DYLD_CHAINED_FIXUPS",
    Dwarf = "DWARF",
    SplitPart = "split part",
    LineTable = "line table",
    UnitHeaders = "unit headers of .debug_info",
    PackageIndex = "index of the debug package",
    --
    /// A data record of a raw profile: its index, counted from 0, and the name hash that the record contains, if there
    /// is one.
    DataRecord((u64, Option<crate::ids::NameRef>)) = |record, f| match record {
        (index, Some(name_ref)) => write!(f, "data record {index} (function {name_ref})"),
        (index, None) => write!(f, "data record {index}"),
    },
    /// A function, by its index in the file, counted from 0.
    FunctionNumber(u64) = |index, f| write!(f, "function {index}"),
    /// A function, by the hash of its name.
    FunctionHash(u64) = |hash, f| write!(f, "function {hash:#018x}"),
    /// A function, by its name.
    Function(String) = |name, f| write!(f, "function {name}"),
    /// A function of a text profile, by its name. The name is already in quotes.
    RecordOf(String) = |name, f| write!(f, "record of {name}"),
    /// A function of a sample profile, by the offset at which the function begins in its section.
    FunctionAt(u64) = |offset, f| write!(f, "function that begins at {offset:#x}"),
    /// An entry of a section of a sample profile, by the offset at which the entry begins in its section.
    EntryAt(u64) = |offset, f| write!(f, "entry that begins at {offset:#x}"),
    /// A counter, by its index in the function, counted from 0.
    Counter(u64) = |index, f| write!(f, "counter {index}"),
    /// A byte of a bitmap, by its index in the bitmap of the function, counted from 0.
    BitmapByte(u64) = |index, f| write!(f, "bitmap byte {index}"),
    /// A value at a value site: the index of the value, the index of the site and LLVM's number for the value kind.
    Value((u64, u64, u64)) = |value, f| write!(
        f,
        "value {} of site {} of value kind {}",
        value.0, value.1, value.2
    ),
    /// A bucket of a hash table, by its index, counted from 0.
    Bucket(usize) = |index, f| write!(f, "bucket {index}"),
    /// A dump of a raw MemProf profile, by the offset at which the dump begins.
    DumpAt(u64) = |offset, f| write!(f, "the dump at {offset:#x}"),
    /// A dump of a raw MemProf profile, by its position in the file, counted from 1.
    DumpNumber(u64) = |number, f| write!(f, "dump {number}"),
    /// A section of a file, by its index, counted from 0.
    SectionNumber(u64) = |index, f| write!(f, "section {index}"),
    /// A part of a raw MIP file, by its position in the file, counted from 1.
    Part(u64) = |number, f| write!(f, "part {number}"),
    /// A call edge of a MIP profile, by its index, counted from 0.
    CallEdge(u64) = |index, f| write!(f, "call edge {index}"),
    /// A section of a sample profile, by its kind (`profkit_abi::sample::section`).
    SampleSection(u64) = |kind, f| f.write_str(sample_section_name(*kind)),
    /// A section of an object file, by its name.
    NamedSection(Cow<'static, str>) = |name, f| f.write_str(name),
    /// The bytes between the end of a section and the next section.
    After(Box<Structure>) = |section, f| write!(f, "bytes after the {section}"),
    /// A part that has a name from the user or from another file, for example a file or a compilation unit.
    Named(String) = |name, f| f.write_str(name),
}

impl From<String> for Structure {
    fn from(name: String) -> Self {
        Structure::Named(name)
    }
}

/// Returns LLVM's name of a section of an extensible binary sample profile (`getSecName`).
pub(crate) fn sample_section_name(kind: u64) -> &'static str {
    match kind {
        0 => "InvalidSection",
        section::SUMMARY => "ProfileSummarySection",
        section::NAMES => "NameTableSection",
        section::SYMBOLS => "ProfileSymbolListSection",
        section::FUNCTION_OFFSETS => "FuncOffsetTableSection",
        section::METADATA => "FunctionMetadata",
        section::CONTEXTS => "CSNameTableSection",
        section::COMPOSITE_OFFSETS => "CompositeFuncOffsetTableSection",
        section::SAMPLES => "LBRProfileSection",
        section::COMPOSITE => "CompositeProfileSection",
        _ => "UnknownSection",
    }
}
