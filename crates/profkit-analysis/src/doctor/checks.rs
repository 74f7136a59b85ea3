//! Checks whether the parts of an indexed profile agree with each other. The readers do not check this.
use profkit_abi::{indexed, raw};
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::ids::NameRef;
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::instr::{Record, TemporalTraces};
use profkit_data::summary::{Summary, SummaryBuilder};
use profkit_data::{Error, ErrorKind, Structure};

/// Returns an error if the hash that is stored for a function name is not the MD5 of the name. A compiler then cannot
/// find the function. `offset` is the offset of the record in the file.
pub fn key_hash(record: &Record, offset: u64) -> Option<Error> {
    let expected = NameRef::of(&record.name);
    (record.name_ref != expected).then(|| {
        ErrorKind::Malformed
            .error("the hash that is stored for a function name is not the MD5 of the name")
            .at(offset)
            .within(Structure::HashTable)
            .within(Structure::IndexedProfile)
            .found(record.name_ref)
            .expected(expected)
            .with_hint("compilers find functions by this hash: merge the raw profiles again")
    })
}

/// Returns an error for the first counter that is larger than any program can count; `None` if there is no such
/// counter.
pub fn implausible_counter(record: &Record) -> Option<Error> {
    if record.is_pseudo() {
        return None;
    }
    let (index, &count) = (0..).zip(&record.counts).find(|&(_, &count): &(u64, _)| {
        count > raw::MAX_PLAUSIBLE_COUNT && count < indexed::MAX_COUNT
    })?;
    Some(
        ErrorKind::CounterTooLarge
            .error("a counter is too large to be true")
            .within(Structure::Counter(index))
            .within(Structure::Function(record.name_ref.to_string()))
            .found(count)
            .expected("at most 2^56"),
    )
}

/// Computes the summaries of an indexed profile from its records.
#[derive(Debug, Default)]
pub struct RecordSums {
    stages: [SummaryBuilder; 2],
}

impl RecordSums {
    pub fn add(&mut self, record: &Record) {
        // Bit 60 of the hash marks context-sensitive functions. LLVM's writer tests only this bit, whatever the kind of
        // the profile. So a front-end function whose hash has the bit by chance is left out of the summary, and a
        // front-end profile has no context-sensitive summary.
        let stage = usize::from(record.func_hash.is_context_sensitive());
        if let Some(stage) = self.stages.get_mut(stage)
            && !record.is_pseudo()
        {
            stage.add_counts(&record.counts);
        }
    }

    /// Compares the summaries that the file states with the summaries that were computed from its records. Returns an
    /// error for each summary that differs.
    pub fn differences(self, profile: &IndexedProfile<'_>) -> Vec<Error> {
        let [first, second] = self.stages;
        let stated = [
            (Structure::Summary, profile.summary(), first),
            (
                Structure::ContextSensitiveSummary,
                profile.cs_summary(),
                second,
            ),
        ];
        let mut errors = Vec::new();
        for (name, stated, builder) in stated {
            let Some(stated) = stated else { continue };
            let cutoffs = stated.cutoffs.iter();
            let cutoffs = cutoffs.map(|one| u32::try_from(one.cutoff).unwrap_or(u32::MAX));
            let cutoffs: Vec<_> = cutoffs.collect();
            errors.extend(difference(name, stated, &builder.finish_with(&cutoffs)));
        }
        errors
    }
}

fn difference(name: Structure, stated: &Summary, actual: &Summary) -> Option<Error> {
    let fields = [
        ("number of functions", stated.functions, actual.functions),
        ("number of counters", stated.blocks, actual.blocks),
        (
            "largest first counter",
            stated.max_function_count,
            actual.max_function_count,
        ),
        ("largest counter", stated.max_count, actual.max_count),
        (
            "largest counter that is not the first of its function",
            stated.max_internal_count,
            actual.max_internal_count,
        ),
        ("sum of counters", stated.total_count, actual.total_count),
    ];
    let differs = |what: &str, found: &dyn std::fmt::Display, expected: &dyn std::fmt::Display| {
        ErrorKind::Malformed.error(format!("the stated {what} does not match the records"))
        .within(name.clone())
        .within(Structure::IndexedProfile)
        .found(found)
        .expected(expected)
        .with_hint("compilers take hotness thresholds from the summary: merge the file again to compute the summary anew")
    };
    if let Some((what, found, expected)) = fields.iter().find(|(_, one, two)| one != two) {
        return Some(differs(what, found, expected));
    }
    let mut cutoffs = stated.cutoffs.iter().zip(&actual.cutoffs);
    let (found, expected) = cutoffs.find(|(one, two)| one != two)?;
    let threshold = |one: &profkit_data::summary::SummaryCutoff| {
        format!("{} counters of at least {}", one.blocks, one.min_count)
    };
    let what = format!("threshold for {}%", found.cutoff as f64 / 10_000.0);
    Some(differs(&what, &threshold(found), &threshold(expected)))
}

/// Checks that the sections fill the file, and returns an error for each gap or overlap. Each section must end where
/// the next one begins, and the last section at the end of the file. Padding to a multiple of 8 is allowed. The length
/// of a MemProf section is not known here, so it is not checked.
pub fn section_gaps(
    profile: &IndexedProfile<'_>,
    data: &[u8],
    traces: &TemporalTraces,
) -> Vec<Error> {
    let word_at = |offset: u64| {
        let mut cursor = Cursor::new(data, 0, Endian::Little);
        cursor.take_u64(offset).ok()?;
        cursor.u64().ok()
    };
    let mut errors = Vec::new();
    for (section, offset, reaches) in profile.named_sections() {
        let end = match section {
            Structure::HashTableIndex => profile.table().end(),
            Structure::BuildIds => offset
                .saturating_add(8)
                .saturating_add(word_at(offset).unwrap_or(0)),
            Structure::VTableNames => {
                let len = word_at(offset).and_then(|len| len.checked_next_multiple_of(8));
                offset.saturating_add(8).saturating_add(len.unwrap_or(0))
            }
            Structure::TemporalTraces => {
                let lengths = traces
                    .traces
                    .iter()
                    .map(|trace| 2 + trace.functions.len() as u64);
                offset + 8 * (2 + lengths.sum::<u64>())
            }
            _ => continue,
        };
        let next = offset + reaches;
        if end > next {
            errors.push(
                ErrorKind::Malformed
                    .error("a section overlaps the section after it")
                    .at(next)
                    .within(section)
                    .within(Structure::IndexedProfile)
                    .found(format_args!("an end at {end:#x}"))
                    .expected(format_args!("at most {next:#x}")),
            );
        } else if end
            .checked_next_multiple_of(8)
            .is_some_and(|end| end < next)
        {
            errors.push(
                ErrorKind::Malformed
                    .error("some bytes belong to no section")
                    .at(end)
                    .within(Structure::After(Box::new(section)))
                    .within(Structure::IndexedProfile)
                    .found(format_args!("{} bytes", next - end)),
            );
        }
    }
    errors
}
