use super::header::{
    GcovVersion, INDIRECT_CALLS, NO_FILE, TAG_FUNCTIONS, TAG_MODULES, TAG_NAMES, TAG_SUMMARY,
    TAG_WORKING_SETS, WORKING_SETS, read_header,
};
use crate::bytes::{Bytes, Cursor, Endian};
use crate::limits;
use crate::sample::{
    AddOutcome, Additions, Location, NameId, ReadReport, SampleName, SampleProfile,
    SampleReadOptions, Samples,
};
use crate::{Error, ErrorKind, Result, Structure};

/// A sample profile of GCC. Opening it reads the whole file.
#[derive(Clone, Debug)]
pub struct GcovProfile {
    /// The version of GCC's format that the file has.
    pub version: GcovVersion,
    /// The byte order of the numbers in the file.
    pub endian: Endian,
    /// The profile with the functions of the file. If the file has a function twice, its samples are added up. The
    /// total of a function is the sum of its lines, as `create_gcov` computes it.
    pub profile: SampleProfile,
    /// The names of the source files. Only version 3 has them.
    pub files: Vec<Box<[u8]>>,
    /// For each name, the index of its source file in `files`, by [`NameId`]. The index is `None` for a name without a
    /// source file. This list may be shorter than the list of names.
    pub file_of: Vec<Option<u32>>,
    /// The number of names that the file lists for several source files, as for static functions with the same name. In
    /// the profile, all functions of the same name are one function.
    pub shared_names: u64,
    /// The error at which reading stopped; `None` if the file is intact. The functions before the error were read.
    pub damage: Option<Error>,
    as_llvm: bool,
}

/// The minimum size of a function name or a file name in bytes. The reader uses this size to compute how many names the
/// remaining bytes can hold at most.
const NAME_BYTES: usize = 4;

impl GcovProfile {
    /// Reads a profile. If the file is damaged after the names, the functions before the damage are kept, and
    /// [`damage`](Self::damage) has the error.
    ///
    /// The memory that reading takes is at most a constant multiple of the file's size. Inlined functions may nest up
    /// to [`limits::SAMPLE_INLINE_DEPTH`].
    ///
    /// # Errors
    /// An error if the header or the names cannot be read.
    pub fn parse(data: &[u8]) -> Result<Self> {
        Self::parse_with(data, &SampleReadOptions::default())
    }

    /// Reads a profile as [`parse`](Self::parse) does, with options. With the option `llvm_checks`, three things
    /// differ: the sections after the functions are not read; an empty name is reported as damage; and a name without a
    /// zero byte at its end is not reported as damage.
    pub fn parse_with(data: &[u8], options: &SampleReadOptions) -> Result<Self> {
        let (mut cursor, version) = read_header(data)?;
        let mut profile = GcovProfile {
            version,
            endian: cursor.endian(),
            profile: SampleProfile::new(),
            files: Vec::new(),
            file_of: Vec::new(),
            shared_names: 0,
            damage: None,
            as_llvm: options.llvm_checks,
        };
        let names = profile
            .read_names(&mut cursor)
            .map_err(|error| error.within(Structure::Names))?;
        profile.damage = profile.read_rest(&mut cursor, &names).err();
        Ok(profile)
    }

    /// Adds the functions of this file to another profile, each count times `weight`.
    pub fn add_to(&self, sum: &mut SampleProfile, weight: u64) -> ReadReport {
        let mut report = ReadReport::default();
        let Some(names) = sum.names.insert_all(&self.profile.names) else {
            report.fault(ErrorKind::LimitExceeded.error("there are too many names"));
            return report;
        };
        let name = |id: NameId| names.get(id).copied().unwrap_or(id);
        let mut additions = sum.additions();
        for function in self.profile.functions() {
            let outcome = &mut report.outcome;
            additions.merge(&[], &function.samples, name, weight, outcome);
            report.functions += 1;
        }
        if let Some(damage) = &self.damage {
            report.fault(damage.clone());
        }
        report
    }

    /// Reads the table of names. In version 3, the summary precedes it.
    fn read_names(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<NameId>> {
        let mut at = cursor.offset();
        let mut tag = cursor.u32()?;
        if tag == TAG_SUMMARY && self.version == GcovVersion::V3 {
            skip_summary(cursor).map_err(|error| error.within(Structure::Summary))?;
            at = cursor.offset();
            tag = cursor.u32()?;
        }
        expect_tag(at, tag, TAG_NAMES)?;
        // The length of the section is ignored, because some writers store it in words, some in bytes, and some as 0.
        cursor.u32()?;
        if self.version == GcovVersion::V3 {
            let count = read_count(cursor, NAME_BYTES, "files")?;
            self.files.reserve(count);
            for _ in 0..count {
                self.files.push(self.read_string(cursor)?.into());
            }
        }
        let count = read_count(cursor, NAME_BYTES, "names")?;
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            let name = self.read_string(cursor)?;
            let known = self.profile.names.find(SampleName::Text(name)).is_some();
            let id = intern(&mut self.profile, name, cursor.offset())?;
            names.push(id);
            if self.version != GcovVersion::V3 {
                continue;
            }
            let at = cursor.offset();
            let file = cursor.u32()?;
            if file != NO_FILE && file as usize >= self.files.len() {
                return Err(ErrorKind::Malformed
                    .error("the index of a source file is beyond the table of files")
                    .at(at)
                    .found(file)
                    .expected(format_args!("below {}, or 0xffffffff", self.files.len())));
            }
            if known && !name.is_empty() {
                self.shared_names += 1;
            } else if file != NO_FILE {
                if self.file_of.len() <= id.index() {
                    self.file_of.resize(id.index() + 1, None);
                }
                if let Some(slot) = self.file_of.get_mut(id.index()) {
                    *slot = Some(file);
                }
            }
        }
        Ok(names)
    }

    /// Reads a string. Returns its bytes up to the first zero byte. A string without a zero byte is an error, except if
    /// it is empty or if LLVM's checks are used.
    fn read_string<'data>(&self, cursor: &mut Cursor<'data>) -> Result<&'data [u8]> {
        let at = cursor.offset();
        let length = u64::from(cursor.u32()?);
        let bytes = if self.version.pads_strings() {
            cursor.take_u64(length * 4)?
        } else {
            cursor.take_u64(length)?
        };
        let end = bytes.iter().position(|&byte| byte == 0);
        match end {
            _ if self.as_llvm && length == 0 => {
                Err(ErrorKind::Truncated.error("a string is empty").at(at))
            }
            None if self.as_llvm => Ok(bytes),
            Some(end) => Ok(bytes.get(..end).unwrap_or_default()),
            None if bytes.is_empty() => Ok(bytes),
            None => Err(ErrorKind::Malformed
                .error("a string is not terminated")
                .at(at)
                .found(format_args!("{} bytes without a zero", bytes.len()))),
        }
    }

    /// Reads the functions and the sections after them.
    fn read_rest(&mut self, cursor: &mut Cursor<'_>, names: &[NameId]) -> Result<()> {
        let functions = |error: Error| error.within(Structure::Functions);
        let at = cursor.offset();
        let tag = cursor.u32().map_err(functions)?;
        expect_tag(at, tag, TAG_FUNCTIONS).map_err(functions)?;
        cursor.u32().map_err(functions)?;
        let count = cursor.u32().map_err(functions)?;
        let mut additions = self.profile.additions();
        for _ in 0..count {
            read_function(cursor, names, &mut additions).map_err(functions)?;
        }
        drop(additions);
        if cursor.is_empty() || self.as_llvm {
            // LLVM, and GCC from release 12 on, do not read the sections after the functions.
            return Ok(());
        }
        skip_modules(cursor).map_err(|error| error.within(Structure::Modules))?;
        skip_working_sets(cursor).map_err(|error| error.within(Structure::WorkingSets))
    }
}

/// Reads a function. If the function is damaged, no part of it is added to the profile.
fn read_function(
    cursor: &mut Cursor<'_>,
    names: &[NameId],
    additions: &mut Additions<'_>,
) -> Result<()> {
    let head = read_u64(cursor)?;
    let mut samples = Samples::default();
    let mut reader = InstanceReader {
        names,
        outcome: AddOutcome::default(),
    };
    reader.read(cursor, &mut samples, 0)?;
    samples.head = head;
    let outcome = &mut reader.outcome;
    additions.merge(&[], &samples, |name| name, 1, outcome);
    Ok(())
}

/// Reads copies of functions: a function at the top level, or one that was inlined. A copy contains the copies of the
/// functions that were inlined into it.
struct InstanceReader<'n> {
    names: &'n [NameId],
    outcome: AddOutcome,
}

impl InstanceReader<'_> {
    fn read(&mut self, cursor: &mut Cursor<'_>, samples: &mut Samples, depth: usize) -> Result<()> {
        if depth > limits::SAMPLE_INLINE_DEPTH {
            return Err(too_deep(cursor.offset()));
        }
        let at = cursor.offset();
        let name = cursor.u32()?;
        samples.name = self.name(u64::from(name), at)?;
        self.read_samples(cursor, samples, depth)
    }

    /// Reads the rest of one copy of a function. The cursor must be after the name.
    fn read_samples(
        &mut self,
        cursor: &mut Cursor<'_>,
        samples: &mut Samples,
        depth: usize,
    ) -> Result<()> {
        let lines = cursor.u32()?;
        let sites = cursor.u32()?;
        let mut adding = samples.adding();
        let mut total = 0;
        for _ in 0..lines {
            let location = read_place(cursor)?;
            let targets = cursor.u32()?;
            let count = read_u64(cursor)?;
            adding.add_line(location, count, 1, &mut self.outcome);
            self.outcome.accumulate(&mut total, count, 1);
            for _ in 0..targets {
                let at = cursor.offset();
                let sort = cursor.u32()?;
                if sort != INDIRECT_CALLS {
                    return Err(ErrorKind::Malformed
                        .error("a value has an unknown kind")
                        .at(at)
                        .found(sort)
                        .expected("7, targets of indirect calls"));
                }
                let at = cursor.offset();
                let index = read_u64(cursor)?;
                let name = self.name(index, at)?;
                let count = read_u64(cursor)?;
                adding.add_target(location, name, count, 1, &mut self.outcome);
            }
        }
        for _ in 0..sites {
            let location = read_place(cursor)?;
            if depth >= limits::SAMPLE_INLINE_DEPTH {
                return Err(too_deep(cursor.offset()));
            }
            let at = cursor.offset();
            let index = cursor.u32()?;
            let name = self.name(u64::from(index), at)?;
            let (inlined, _) = adding.inlined_at(location, name);
            let before = inlined.total;
            self.read_samples(cursor, inlined, depth + 1)?;
            let added = inlined.total - before;
            self.outcome.accumulate(&mut total, added, 1);
        }
        drop(adding);
        self.outcome.accumulate(&mut samples.total, total, 1);
        Ok(())
    }

    fn name(&self, index: u64, at: u64) -> Result<NameId> {
        let found = usize::try_from(index).ok();
        let name = found.and_then(|index| self.names.get(index));
        name.copied().ok_or_else(|| {
            ErrorKind::Malformed
                .error("the index of a name is beyond the name table")
                .at(at)
                .found(index)
                .expected(format_args!("below {}", self.names.len()))
        })
    }
}

#[cold]
fn too_deep(at: u64) -> Error {
    ErrorKind::LimitExceeded
        .error("inlined functions nest too deeply")
        .at(at)
        .expected(format_args!(
            "at most {} levels",
            limits::SAMPLE_INLINE_DEPTH
        ))
}

fn intern(profile: &mut SampleProfile, name: &[u8], at: u64) -> Result<NameId> {
    let id = profile.intern(SampleName::Text(name));
    id.ok_or_else(|| {
        ErrorKind::LimitExceeded
            .error("there are too many names")
            .at(at)
    })
}

fn read_u64(cursor: &mut Cursor<'_>) -> Result<u64> {
    let low = cursor.u32()?;
    let high = cursor.u32()?;
    Ok(u64::from(high) << 32 | u64::from(low))
}

fn read_place(cursor: &mut Cursor<'_>) -> Result<Location> {
    let place = cursor.u32()?;
    Ok(Location::new(place >> 16, place & 0xffff))
}

/// Reads the number of items that follow. Fails if the remaining bytes cannot hold that many items of at least `least`
/// bytes. `what` names the items in the error.
fn read_count(cursor: &mut Cursor<'_>, least: usize, what: &str) -> Result<usize> {
    let at = cursor.offset();
    let count = cursor.u32()? as usize;
    match count.checked_mul(least) {
        Some(bytes) if bytes <= cursor.remaining() => Ok(count),
        _ => Err(ErrorKind::Truncated
            .error("the data are too short here")
            .at(at)
            .found(format_args!(
                "{count} {what} in {} bytes",
                cursor.remaining()
            ))),
    }
}

fn expect_tag(at: u64, found: u32, expected: u32) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(ErrorKind::Malformed
        .error("a section has the wrong tag")
        .at(at)
        .found(format_args!("tag {found:#010x}"))
        .expected(format_args!("tag {expected:#010x}")))
}

/// Skips the summary section, because the summary can be computed from the other sections.
fn skip_summary(cursor: &mut Cursor<'_>) -> Result<()> {
    cursor.take(5 * 8)?;
    let entries = read_u64(cursor)?;
    cursor.take_u64(entries.saturating_mul(4 + 8 + 8))?;
    Ok(())
}

/// Skips the list of modules, which describes how source files were compiled. Only GCC's LIPO mode used it;
/// current writers leave it empty.
fn skip_modules(cursor: &mut Cursor<'_>) -> Result<()> {
    let at = cursor.offset();
    let tag = cursor.u32()?;
    expect_tag(at, tag, TAG_MODULES)?;
    let words = u64::from(cursor.u32()?);
    let modules = cursor.u32()?;
    if modules > 0 {
        // The length of the section includes the word that holds the number of modules.
        cursor.take_u64(words.saturating_sub(1) * 4)?;
    }
    Ok(())
}

fn skip_working_sets(cursor: &mut Cursor<'_>) -> Result<()> {
    let at = cursor.offset();
    let tag = cursor.u32()?;
    expect_tag(at, tag, TAG_WORKING_SETS)?;
    cursor.u32()?;
    if cursor.remaining() > 4 {
        cursor.take(WORKING_SETS * (4 + 8))?;
    } else {
        // In some files the section of working sets (statistics of the largest counts) has a single 0 instead of the
        // sets.
        cursor.take(cursor.remaining())?;
    }
    match cursor.remaining() {
        0 => Ok(()),
        more => Err(ErrorKind::Malformed
            .error("there are bytes after the last section")
            .at(cursor.offset())
            .found(Bytes(more))),
    }
}
