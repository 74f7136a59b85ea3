//! Reproduces `overlap` for instrumentation profiles (`overlapInstrProfile` in `llvm-profdata.cpp`,
//! `OverlapStats::dump` in `InstrProf.cpp`). `overlap` measures how similar two profiles are.
use super::input::Profile;
use super::merge::function_line;
use crate::command_line::Parsed;
use crate::lines::Lines;
use crate::messages::{Fault, Session};
use crate::output;
use profkit_abi::value_kind;
use profkit_data::instr::indexed::{InPlace, ReleaseBytes};
use profkit_data::instr::overlap::{
    CountSums, FunctionLookup, InstrIndex, InstrOverlap, Shares, Stage, TestRecord, Verdict,
};
use profkit_data::instr::{InstrProfile, InstrSource, Record};
use profkit_data::releases::Release;
use profkit_merge::files::Content;
use profkit_merge::{InputData, MergeOptions, MergeOutcome, Policy, merge_instr};
use std::num::NonZeroUsize;
use std::sync::mpsc::{channel, sync_channel};

/// The text with which LLVM's error messages about either of the two profiles begin, in place of the file's name.
const WHENCE: &[u8] = b"error in getting profile count sums";
/// LLVM's name for each value kind.
const KINDS: [&str; value_kind::COUNT] = ["IndirectCall", "MemOP", "VTable"];

/// Runs `overlap` for instrumentation profiles.
pub fn run(parsed: &Parsed, session: &Session<'_>) -> Result<(), Fault> {
    let release = session.release();
    let name = parsed.output();
    let output = output::create(session, name, Content::Text)?;
    let [base, test] = [0, 1].map(|index| {
        let file = parsed.positionals.get(index);
        file.map_or(b"".as_slice(), Vec::as_slice)
    });
    let stage = if parsed.flag("cs") {
        Stage::ContextSensitive
    } else {
        Stage::Plain
    };
    // Errors of the first profile are reported before the second profile is opened.
    let base_bytes = session.read_as(base, WHENCE)?;
    let base_profile = open(base_bytes.as_ref(), release)?;
    let test_bytes = session.read_as(test, WHENCE)?;
    let mut test_profile = open(test_bytes.as_ref(), release)?;
    let give_back = |bytes| base_bytes.release(bytes);
    let (test_sums, read) = rayon::join(
        || CountSums::of_source(test_profile.source_mut(), stage),
        || read_in_place(&base_profile, &give_back, stage),
    );
    let base_sums = match &read {
        Some((sums, _)) => *sums,
        None => CountSums::of_source(open(base_bytes.as_ref(), release)?.source_mut(), stage),
    };
    if base_sums.is_zero() || test_sums.is_zero() {
        // LLVM has a message for profiles whose counts are all zero. But it exits before it writes the buffer with this
        // message, so no user ever sees it.
        return output::write(session, output, name, |_| Ok(()));
    }
    let (merged, index);
    let (mut in_place, mut in_memory);
    let functions: &mut dyn FunctionLookup = match &read {
        Some((_, records)) => {
            in_place = records.lookup().sorted(true);
            &mut in_place
        }
        None => {
            merged = finish_load(session, base, load(base, &base_bytes, release));
            index = InstrIndex::new(&merged);
            in_memory = &index;
            &mut in_memory
        }
    };
    let mut overlap = InstrOverlap::new(base_sums, test_sums);
    let source = open(test_bytes.as_ref(), release)?;
    let cutoff = parsed.number("value-cutoff").unwrap_or(u64::MAX);
    let wanted = parsed.text("function");
    let finder = memchr::memmem::Finder::new(wanted);
    output::write(session, output, name, |lines| {
        read_ahead(source, |record| {
            let is_named = !wanted.is_empty() && finder.find(&record.name).is_some();
            let detail = is_named || record.counts.iter().any(|&count| count >= cutoff);
            let verdict = overlap.add(functions, &TestRecord::record(record), detail);
            if let Verdict::Common(Some(function)) = verdict {
                lines.text(b"Function level:\n  Function: ");
                lines.text(&record.name).text(b" (Hash=");
                lines.number(record.func_hash.0).text(b")").end();
                print(lines, "edge counters", &function);
            }
        });
        let title = [
            b"Profile overlap information for base_profile: ".as_slice(),
            base,
            b" and test_profile: ",
            test,
            b"\nProgram level:\n",
        ];
        lines.text(title.concat());
        print(lines, "functions", &overlap);
        Ok(())
    })
}

fn open(data: &[u8], release: Release) -> Result<Profile<'_>, Fault> {
    Profile::open(data, release, false).map_err(|error| Fault::profile(WHENCE, &error))
}

/// Calls `each` for the records of a profile, in the profile's order, up to the first damaged record. Another thread
/// decodes the records in advance.
fn read_ahead(mut source: Profile<'_>, mut each: impl FnMut(&Record)) {
    /// The number of records in a batch. The other thread sends the records in batches. A larger number would need more
    /// memory.
    const BATCH: usize = 256;
    /// The number of batches that may be decoded in advance.
    const AHEAD: usize = 4;
    let (send, receive) = sync_channel::<(Vec<Record>, usize)>(AHEAD);
    let (give_back, used) = channel::<Vec<Record>>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let mut batch = used.try_recv().unwrap_or_default();
                batch.resize_with(BATCH, Record::default);
                let source = source.source_mut();
                let ends = |record| !matches!(source.read_record(record), Ok(true));
                let end = batch.iter_mut().position(ends);
                let sent = send.send((batch, end.unwrap_or(BATCH)));
                if sent.is_err() || end.is_some() {
                    return;
                }
            }
        });
        for (batch, count) in receive {
            batch.iter().take(count).for_each(&mut each);
            // Sending fails if the other thread has ended and needs no more batches.
            let _ = give_back.send(batch);
        }
    });
}

/// Reads an indexed profile once, and adds up its counts. Its functions are then found in the file. Returns `None` if the
/// caller must read the profile by merging it, because only a merge then gives the same result as LLVM's reader: if the
/// profile is not indexed, is damaged, contains a function or a record twice, or a function without a name.
fn read_in_place<'d>(
    source: &Profile<'d>,
    release: &'d ReleaseBytes<'d>,
    stage: Stage,
) -> Option<(CountSums, InPlace<'d>)> {
    let profile = source.indexed()?;
    let kind = profile.kind();
    let mut sums = CountSums::default();
    let add = |record: &Record| sums.add(kind, record, stage);
    let records = InPlace::check(profile.clone(), Some(release), add)?;
    Some((sums, records))
}

/// Reads the whole first profile by LLVM's rules: if it contains a function several times, the records are merged.
/// Reading stops at the first damage, which is not reported.
fn load(file: &[u8], bytes: &InputData<'_>, release: Release) -> Option<MergeOutcome> {
    let options = MergeOptions::new()
        .policy(Policy::Llvm)
        .read_as(Some(release))
        .threads(NonZeroUsize::new(1));
    let inputs = [(String::from_utf8_lossy(file), bytes.as_ref())];
    merge_instr(&inputs[..], &options).ok()
}

/// Reports the functions whose records could not be merged, and returns the profile.
fn finish_load(session: &Session<'_>, file: &[u8], loaded: Option<MergeOutcome>) -> InstrProfile {
    let Some(mut outcome) = loaded else {
        return InstrProfile::default();
    };
    let mut hinted = Vec::new();
    for event in &outcome.report.events {
        if let Some(function) = &event.function {
            function_line(event, file, function, &mut hinted, session);
        }
    }
    let merged = outcome.profiles.pop();
    merged.map(|merged| merged.profile).unwrap_or_default()
}

/// Prints the figures for a profile or for one function. `entries` is the word for the counted items: functions or
/// counters.
fn print(lines: &mut Lines<'_>, entries: &str, overlap: &InstrOverlap) {
    let InstrOverlap {
        base,
        test,
        common,
        mismatched,
        unique,
        ..
    } = overlap;
    for (what, shares, always) in [
        ("overlap", common, true),
        ("mismatch", mismatched, false),
        ("only in test_profile", unique, false),
    ] {
        if always || shares.entries > 0 {
            lines.text(format!("  # of {entries} {what}: "));
            lines.number(shares.entries).end();
        }
    }
    let shares = |lines: &mut Lines<'_>, [name, mismatch, only]: [&str; 3], of: Share| {
        let mut line = |text: String| lines.text(text).end();
        let percent = |shares: &Shares| format!("{:.3}%", of(shares) * 100.0);
        line(format!("  {name} profile overlap: {}", percent(common)));
        if mismatched.entries > 0 {
            let share = percent(mismatched);
            line(format!(
                "  Mismatched count percentage ({mismatch}): {share}"
            ));
        }
        if unique.entries > 0 {
            let share = percent(unique);
            line(format!(
                "  Percentage of {only} profile only in test_profile: {share}"
            ));
        }
    };
    let sums = |lines: &mut Lines<'_>, name: &str, base: f64, test: f64| {
        let mut line = |text: String| lines.text(text).end();
        line(format!("  {name} profile base count sum: {base:.0}"));
        line(format!("  {name} profile test count sum: {test:.0}"));
    };
    shares(lines, ["Edge"; 3], &|shares| shares.counts);
    sums(lines, "Edge", base.counts, test.counts);
    let values = base.values.into_iter().zip(test.values);
    for (index, (name, (base, test))) in KINDS.into_iter().zip(values).enumerate() {
        if base < 1.0 && test < 1.0 {
            continue;
        }
        let of = |shares: &Shares| shares.values.get(index).copied().unwrap_or(0.0);
        shares(lines, [name; 3], &of);
        sums(lines, name, base, test);
    }
}

/// A function that returns one field of [`Shares`]: the share of the counters, or the share of the values of one kind.
type Share<'a> = &'a dyn Fn(&Shares) -> f64;
