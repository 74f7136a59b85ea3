use super::GcovProfile;
use super::header::{
    GcovVersion, INDIRECT_CALLS, MAGIC, NO_FILE, TAG_FUNCTIONS, TAG_MODULES, TAG_NAMES,
    TAG_SUMMARY, TAG_WORKING_SETS, WORKING_SETS,
};
use crate::bytes::{Bytes, Endian, Sink};
use crate::loss_counts::fmt_counts;
use crate::sample::{Location, NameId, SampleName, SampleProfile, Samples};
use crate::{ErrorKind, Result};
use profkit_abi::indexed::SUMMARY_CUTOFFS;
use std::fmt;

/// Options for writing a sample profile of GCC.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GcovOptions {
    /// The version of GCC's format to write.
    pub version: GcovVersion,
    /// The byte order of the file, which must be the byte order of the machine on which GCC runs.
    pub endian: Endian,
    /// The names of the source files. Only version 3 stores them.
    pub files: Vec<Box<[u8]>>,
    /// For each name, the index of its source file in `files`, by [`NameId`]; `None` for a name without a source file.
    pub file_of: Vec<Option<u32>>,
}

impl GcovOptions {
    /// Returns the options for a file of this version. The file is little-endian and has no names of source files.
    pub fn new(version: GcovVersion) -> Self {
        GcovOptions {
            version,
            endian: Endian::Little,
            files: Vec::new(),
            file_of: Vec::new(),
        }
    }

    /// Sets the byte order of the file.
    #[must_use]
    pub fn endian(mut self, endian: Endian) -> Self {
        self.endian = endian;
        self
    }

    /// Takes the source files and the byte order from a file that was read. `profile` is the profile to write. It must
    /// come from that file, but the ids of its names may differ from those in `read`.
    #[must_use]
    pub fn like(mut self, read: &GcovProfile, profile: &SampleProfile) -> Self {
        let names = &read.profile.names;
        for (id, name) in profile.names.iter() {
            let there = names.find(name);
            let file = there.and_then(|there| read.file_of.get(there.index()).copied().flatten());
            if self.file_of.len() <= id.index() {
                self.file_of.resize(id.index() + 1, None);
            }
            if let Some(slot) = self.file_of.get_mut(id.index()) {
                *slot = file;
            }
        }
        self.files.clone_from(&read.files);
        self.endian = read.endian;
        self
    }

    /// Sets the names of the source files, and for each name the index of its source file.
    #[must_use]
    pub fn files(mut self, files: Vec<Box<[u8]>>, file_of: Vec<Option<u32>>) -> Self {
        self.files = files;
        self.file_of = file_of;
        self
    }
}

/// The number of parts that were left out because GCC's encoding cannot hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GcovLosses {
    /// The number of lines, call targets and inlined functions at locations whose line or discriminator needs more than
    /// 16 bits.
    pub places: u64,
    /// The number of functions whose total is not the sum of their lines. The file does not store totals; GCC computes
    /// them as this sum.
    pub totals: u64,
    /// The number of functions whose checksum (of pseudo probes) was left out.
    pub checksums: u64,
    /// The number of functions whose attributes were left out.
    pub attributes: u64,
    /// The number of vtables that were left out.
    pub vtables: u64,
    /// The number of names of the profile symbol list that were left out.
    pub symbols: u64,
    /// The number of names that are known only by their hash. The hash is written as a decimal number, which matches no
    /// function in GCC.
    pub hashes: u64,
    /// The number of source files that were left out, because only version 3 can hold them.
    pub files: u64,
}

impl GcovLosses {
    /// Whether the file holds the whole profile: nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the counts that are not 0, each with a plural noun for messages. The iterator is empty if and only if
    /// nothing was left out.
    pub fn counts(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (
                self.places,
                "locations with a line or discriminator above 65535",
            ),
            (
                self.totals,
                "totals that differ from the sum of their lines",
            ),
            (self.checksums, "checksums"),
            (self.attributes, "attributes"),
            (self.vtables, "vtables"),
            (self.symbols, "names of the symbol list"),
            (self.hashes, "names that are known by their hash only"),
            (self.files, "names of source files"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
    }
}

/// Writes the [`counts`](GcovLosses::counts) in one line, or `nothing` if there are none.
impl fmt::Display for GcovLosses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_counts(f, self.counts())
    }
}

#[derive(Debug)]
struct GcovWriter<'p> {
    profile: &'p SampleProfile,
    options: &'p GcovOptions,
    losses: GcovLosses,
    /// For each name of the profile, its index in the names of the file. The list is indexed by [`NameId`]. For a name
    /// that the file does not need, the list has 0, the index of the empty name.
    numbers: Vec<u32>,
    names: Vec<NameId>,
    order: Vec<usize>,
    out: Vec<u8>,
}

/// Writes a sample profile of GCC as a complete file. Returns how many parts of the profile were left out because GCC's
/// encoding cannot hold them.
///
/// ```
/// use profkit_data::sample::gcov::{GcovOptions, GcovProfile, GcovVersion, write};
/// use profkit_data::sample::{SampleProfile, read};
///
/// let mut profile = SampleProfile::new();
/// read(b"main:100:5\n 1: 100\n", &mut profile, 1).strict()?;
/// let mut file = Vec::new();
/// let losses = write(&profile, &GcovOptions::new(GcovVersion::V2), &mut file)?;
/// assert!(losses.is_empty(), "{losses}");
/// assert_eq!(GcovProfile::parse(&file)?.profile.functions().len(), 1);
/// # Ok::<(), profkit_data::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if the profile has calling contexts; [`nest`](crate::sample::nest) removes them.
/// [`ErrorKind::WriteFailed`] if the sink cannot write the bytes.
pub fn write(
    profile: &SampleProfile,
    options: &GcovOptions,
    sink: &mut dyn Sink,
) -> Result<GcovLosses> {
    let mut contexts = profile.functions().iter();
    if contexts.any(|function| !function.callers.is_empty()) {
        return Err(ErrorKind::CannotRepresent
            .error("GCC's encoding cannot hold calling contexts")
            .with_hint("convert the contexts to nested functions first"));
    }
    let mut writer = GcovWriter {
        profile,
        options,
        losses: GcovLosses::default(),
        numbers: Vec::new(),
        names: Vec::new(),
        order: Vec::new(),
        out: Vec::new(),
    };
    writer.plan();
    writer.header()?;
    sink.put(&writer.out)?;
    writer.out.clear();
    writer.functions()?;
    writer.tail();
    sink.put(&writer.out)?;
    Ok(writer.losses)
}

impl<'p> GcovWriter<'p> {
    fn fits(location: Location) -> bool {
        location.line <= 0xffff && location.discriminator <= 0xffff
    }

    /// Assigns an index in the file to each name that is needed, orders the functions, and counts losses.
    fn plan(&mut self) {
        self.numbers = vec![0; self.profile.names.len()];
        let mut needed = Vec::new();
        for function in self.profile.functions() {
            self.plan_instance(&function.samples, &mut needed);
        }
        self.losses.symbols = self.profile.symbol_count() as u64;
        if self.options.version < GcovVersion::V3 {
            self.losses.files = self.options.files.len() as u64;
        }
        needed.sort_unstable();
        needed.dedup();
        let spelled = |id: &NameId| spell(self.profile.names.get(*id));
        needed.sort_by_cached_key(spelled);
        for (number, id) in (1u32..).zip(&needed) {
            if let Some(slot) = self.numbers.get_mut(id.index()) {
                *slot = number;
            }
        }
        for id in &needed {
            if let SampleName::Guid(_) = self.profile.names.get(*id) {
                self.losses.hashes += 1;
            }
        }
        self.names = needed;
        let mut order: Vec<usize> = (0..self.profile.functions().len()).collect();
        let number = |index: &usize| {
            let function = self.profile.functions().get(*index);
            function.map_or(0, |function| self.number(function.samples.name))
        };
        order.sort_by_key(number);
        self.order = order;
    }

    fn plan_instance(&mut self, samples: &Samples, needed: &mut Vec<NameId>) -> u64 {
        needed.push(samples.name);
        self.losses.checksums += u64::from(samples.checksum != 0);
        self.losses.attributes += u64::from(samples.attributes != 0);
        self.losses.vtables += samples.vtables.len() as u64;
        let mut sum = 0u64;
        for line in &samples.body {
            sum = sum.saturating_add(line.samples);
            self.losses.places += u64::from(!Self::fits(line.location));
        }
        for target in &samples.targets {
            if Self::fits(target.location) {
                needed.push(target.name);
            }
        }
        for inlined in &samples.inlined {
            sum = sum.saturating_add(inlined.samples.total);
            if Self::fits(inlined.location) {
                self.plan_instance(&inlined.samples, needed);
            } else {
                self.losses.places += 1;
            }
        }
        self.losses.totals += u64::from(sum != samples.total);
        sum
    }

    fn number(&self, id: NameId) -> u32 {
        self.numbers.get(id.index()).copied().unwrap_or(0)
    }

    fn word(&mut self, word: u32) {
        let bytes = self.options.endian.u32_bytes(word);
        self.out.extend_from_slice(&bytes);
    }

    /// Appends the length of a list as a 32-bit number. The conversion to 32 bits cannot fail, because the entries of a
    /// list have different 32-bit locations or names, and 2^32 of them would not fit into memory.
    fn count(&mut self, count: usize) {
        self.word(u32::try_from(count).unwrap_or(u32::MAX));
    }

    fn wide(&mut self, value: u64) {
        let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
        self.word(u32::from_le_bytes([a, b, c, d]));
        self.word(u32::from_le_bytes([e, f, g, h]));
    }

    fn string(&mut self, text: &[u8]) {
        if self.options.version.pads_strings() {
            let words = (text.len() + 4) / 4;
            self.count(words);
            let end = self.out.len() + words * 4;
            self.out.extend_from_slice(text);
            self.out.resize(end, 0);
        } else {
            self.count(text.len() + 1);
            self.out.extend_from_slice(text);
            self.out.push(0);
        }
    }

    fn header(&mut self) -> Result<()> {
        self.word(MAGIC);
        self.word(self.options.version.word());
        self.word(0);
        let has_files = self.options.version == GcovVersion::V3;
        if has_files {
            self.summary();
        }
        self.word(TAG_NAMES);
        let length_at = self.out.len();
        self.word(0);
        let start = self.out.len();
        let options = self.options;
        if has_files {
            self.count(options.files.len());
            for file in &options.files {
                self.string(file);
            }
        }
        self.count(self.names.len() + 1);
        self.string(b"");
        if has_files {
            self.word(NO_FILE);
        }
        for id in std::mem::take(&mut self.names) {
            self.string(&for_gcc(spell(self.profile.names.get(id))));
            if has_files {
                let file = options.file_of.get(id.index()).copied().flatten();
                self.word(file.unwrap_or(NO_FILE));
            }
        }
        self.set_length(length_at, start)
    }

    /// Sets the length of a section that was written. `at` is the position of the length in the output, and `start` the
    /// position at which the section begins. Before version 2 the length is in words, since version 2 in bytes.
    fn set_length(&mut self, at: usize, start: usize) -> Result<()> {
        let length = section_length(self.options.version, self.out.len() - start)?;
        let word = self.options.endian.u32_bytes(length);
        if let Some(slot) = self.out.get_mut(at..at + 4) {
            slot.copy_from_slice(&word);
        }
        Ok(())
    }

    fn functions(&mut self) -> Result<()> {
        self.word(TAG_FUNCTIONS);
        let length_at = self.out.len();
        self.word(0);
        let start = self.out.len();
        self.count(self.order.len());
        for index in std::mem::take(&mut self.order) {
            let Some(function) = self.profile.functions().get(index) else {
                continue;
            };
            self.wide(function.samples.head);
            self.word(self.number(function.samples.name));
            self.instance(&function.samples);
        }
        self.set_length(length_at, start)
    }

    fn instance(&mut self, samples: &Samples) {
        let lines = || samples.body.iter().filter(|line| Self::fits(line.location));
        let sites = || {
            let inlined = samples.inlined.iter();
            inlined.filter(|inlined| Self::fits(inlined.location))
        };
        self.count(lines().count());
        self.count(sites().count());
        for line in lines() {
            self.place(line.location);
            let mut targets: Vec<(u32, u64)> = samples
                .targets_at(line.location)
                .iter()
                .map(|target| (self.number(target.name), target.count))
                .collect();
            targets.sort_unstable();
            self.count(targets.len());
            self.wide(line.samples);
            for (name, count) in targets {
                self.word(INDIRECT_CALLS);
                self.wide(u64::from(name));
                self.wide(count);
            }
        }
        let mut sites: Vec<_> = sites().collect();
        sites.sort_by_key(|site| (site.location, self.number(site.samples.name)));
        for site in sites {
            self.place(site.location);
            self.word(self.number(site.samples.name));
            self.instance(&site.samples);
        }
    }

    fn place(&mut self, location: Location) {
        self.word(location.line << 16 | location.discriminator);
    }

    fn counts(&self) -> Vec<u64> {
        fn add(samples: &Samples, counts: &mut Vec<u64>) {
            let lines = samples.body.iter();
            let kept = lines.filter(|line| GcovWriter::fits(line.location));
            counts.extend(kept.map(|line| line.samples));
            for inlined in &samples.inlined {
                if GcovWriter::fits(inlined.location) {
                    add(&inlined.samples, counts);
                }
            }
        }
        let mut counts = Vec::new();
        for function in self.profile.functions() {
            add(&function.samples, &mut counts);
        }
        counts.sort_unstable_by(|one, two| two.cmp(one));
        counts
    }

    fn summary(&mut self) {
        let counts = self.counts();
        let total = counts
            .iter()
            .fold(0u64, |sum, &count| sum.saturating_add(count));
        let functions = self.profile.functions();
        let heads = functions.iter().map(|function| function.samples.head);
        self.word(TAG_SUMMARY);
        self.wide(total);
        self.wide(counts.first().copied().unwrap_or(0));
        self.wide(heads.max().unwrap_or(0));
        self.wide(counts.len() as u64);
        self.wide(functions.len() as u64);
        self.wide(SUMMARY_CUTOFFS.len() as u64);
        let mut largest = Largest::new(&counts);
        for cutoff in SUMMARY_CUTOFFS {
            let share = u128::from(total) * u128::from(cutoff) / 1_000_000;
            largest.advance(share);
            self.word(cutoff);
            self.wide(largest.least);
            self.wide(largest.taken as u64);
        }
    }

    /// Writes an empty list of modules, and the working sets. Working set n describes the largest counts that together
    /// make up n/128 of all samples: the number of these counts, and the smallest of them.
    fn tail(&mut self) {
        self.word(TAG_MODULES);
        let none = if self.options.version.pads_strings() {
            1
        } else {
            0
        };
        self.word(none);
        self.word(0);
        self.word(TAG_WORKING_SETS);
        self.count(WORKING_SETS * 3);
        let counts = self.counts();
        let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        let mut largest = Largest::new(&counts);
        for set in 1..=WORKING_SETS {
            largest.advance(total * set as u128 / WORKING_SETS as u128);
            self.count(largest.taken);
            self.wide(largest.least);
        }
    }
}

/// Converts the length of a section from bytes to the unit in which the file stores it.
pub(super) fn section_length(version: GcovVersion, bytes: usize) -> Result<u32> {
    let length = if version.pads_strings() {
        bytes / 4
    } else {
        bytes
    };
    u32::try_from(length).map_err(|_| {
        ErrorKind::CannotRepresent
            .error("a section is too long for GCC's encoding")
            .found(Bytes(bytes))
            .expected("a length of 32 bits")
    })
}

/// Finds how many of the largest counts are needed so that their sum reaches a given number.
struct Largest<'c> {
    counts: &'c [u64],
    taken: usize,
    least: u64,
    sum: u128,
}

impl<'c> Largest<'c> {
    fn new(counts: &'c [u64]) -> Self {
        Largest {
            counts,
            taken: 0,
            least: 0,
            sum: 0,
        }
    }

    /// Adds further counts to the sum until it reaches `wanted`. All counts that are equal to the last added count are
    /// added too.
    fn advance(&mut self, wanted: u128) {
        while self.sum < wanted {
            let Some(&count) = self.counts.get(self.taken) else {
                return;
            };
            self.least = count;
            while self.counts.get(self.taken) == Some(&count) {
                self.sum += u128::from(count);
                self.taken += 1;
            }
        }
    }
}

fn spell(name: SampleName<'_>) -> Vec<u8> {
    match name {
        SampleName::Text(text) => text.to_vec(),
        SampleName::Guid(_) => name.to_string().into_bytes(),
    }
}

/// Changes C4 to C2 and D4 to D2 in names of C++ constructors and destructors, as `create_gcov` does. In GCC's debug
/// info, the constructors and destructors of base classes have the variants C4 and D4, which no object file contains
/// (<https://gcc.gnu.org/bugzilla/show_bug.cgi?id=64346>).
fn for_gcc(mut name: Vec<u8>) -> Vec<u8> {
    const VARIANTS: [(&[u8], usize); 4] = [
        (b"D4Ev", 5),
        (b"C4Ev", 5),
        (b"C4EPKc", 7),
        (b"C4EPKcRKS2_", 12),
    ];
    for (ending, least) in VARIANTS {
        if name.len() > least && name.ends_with(ending) {
            let digit = name.len() - ending.len() + 1;
            if let Some(digit) = name.get_mut(digit) {
                *digit = b'2';
            }
            break;
        }
    }
    name
}
