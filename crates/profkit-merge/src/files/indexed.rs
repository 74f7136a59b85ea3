//! Writes indexed profiles with several threads. The bytes are the same as those that [`IndexedPlan::write`] writes.
use crate::driver::Threads;
use crate::join::{Joined, JoinedPlan};
use profkit_data::bytes::Sink;
use profkit_data::instr::indexed::{IndexedPlan, IndexedWriteOptions, Summaries};
use profkit_data::instr::{InstrProfile, Losses};
use profkit_data::{Error, ErrorKind, Result};

/// The smallest output that several threads write. For smaller ones, starting threads costs more than it saves.
const PARALLEL_FROM: u64 = 4 << 20;
/// The number of bytes that a thread encodes at a time. Each thread needs memory for one such piece.
const PIECE: u64 = 1 << 20;
/// The number of parts per thread for the summary. Small parts keep all threads busy until the end.
const PARTS_PER_THREAD: usize = 4;

/// The plan of an indexed profile, whose functions are in tables or joined while it is written.
#[derive(Debug)]
pub enum IndexedFile<'p> {
    /// The functions are in tables.
    Whole(IndexedPlan<'p>),
    /// The functions are joined.
    Joined(JoinedPlan<'p>),
}

impl<'p> IndexedFile<'p> {
    /// Plans a file. With `joined`, its functions are those of the profile, whose tables are empty. `options` must be those
    /// with which they were joined.
    ///
    /// # Errors
    /// The errors of [`IndexedPlan::new`].
    pub fn new(
        profile: &'p InstrProfile,
        joined: Option<&'p Joined<'_>>,
        options: &IndexedWriteOptions,
    ) -> Result<Self> {
        Ok(match joined {
            Some(joined) => IndexedFile::Joined(JoinedPlan::new(joined, profile, options)?),
            None => IndexedFile::Whole(IndexedPlan::new(profile, options)?),
        })
    }

    /// The number of records that are written. Functions that share a name have several.
    pub fn record_count(&self) -> u64 {
        match self {
            IndexedFile::Whole(plan) => plan.record_count(),
            IndexedFile::Joined(plan) => plan.record_count(),
        }
    }

    /// The parts of the profile that are left out, because the version cannot hold them.
    pub fn losses(&self) -> &Losses {
        match self {
            IndexedFile::Whole(plan) => plan.losses(),
            IndexedFile::Joined(plan) => plan.losses(),
        }
    }

    /// Writes the file on the threads of the merge.
    ///
    /// # Errors
    /// The errors of [`write_indexed`] and of the inputs that are joined.
    pub fn write(&self, threads: &Threads, sink: &mut dyn Sink) -> Result<()> {
        match self {
            IndexedFile::Whole(plan) => write_indexed(plan, threads, sink),
            IndexedFile::Joined(plan) => plan.write(threads, sink),
        }
    }
}

/// Writes a planned indexed profile on the threads of the merge. The bytes are those of
/// [`indexed::write`](profkit_data::instr::indexed::write).
///
/// ```
/// use profkit_data::instr::indexed::{IndexedPlan, IndexedWriteOptions};
/// use profkit_data::releases::Release;
/// use profkit_merge::files::write_indexed;
/// use profkit_merge::{MergeOptions, merge_instr};
///
/// let options = MergeOptions::new();
/// let merged = merge_instr(&[b":ir\nmain\n1234\n1\n5\n".as_slice()], &options)?;
/// let profile = &merged.profiles[0].profile;
/// let plan = IndexedPlan::new(profile, &IndexedWriteOptions::for_llvm(Release::new(16)))?;
/// assert!(plan.losses().is_empty(), "not written: {}", plan.losses());
/// let mut file = Vec::new();
/// write_indexed(&plan, &options.run.threads, &mut file)?;
/// assert!(file.starts_with(b"\xfflprofi\x81"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The same as [`IndexedPlan::write`].
pub fn write_indexed(plan: &IndexedPlan<'_>, threads: &Threads, sink: &mut dyn Sink) -> Result<()> {
    if threads.count() == 1 || plan.total_len() < PARALLEL_FROM {
        let summaries = plan.summarize(0..plan.function_count());
        return plan.write(summaries, sink);
    }
    let count = plan.function_count();
    let step = count.div_ceil(threads.count() * PARTS_PER_THREAD).max(1);
    let parts = threads.run(count.div_ceil(step), |index| {
        plan.summarize(index * step..((index + 1) * step).min(count))
    });
    let mut summaries = Summaries::default();
    parts.into_iter().for_each(|part| summaries.merge(part));
    let mut written = 0;
    let mut put = |bytes: &[u8]| {
        written += bytes.len() as u64;
        sink.put(bytes)
    };
    let mut head = Vec::new();
    plan.encode_head(summaries, &mut head);
    put(&head)?;

    let mut buffers = vec![Vec::new(); threads.count()];
    let mut from = 0;
    while from < count {
        let mut cuts = Vec::with_capacity(buffers.len());
        while from < count
            && let Some(buffer) = buffers.pop()
        {
            let to = plan.next_cut(from, PIECE);
            cuts.push((from..to, buffer));
            from = to;
        }
        let pieces = threads.map(cuts, |(cut, mut piece)| {
            piece.clear();
            plan.encode_range(cut, &mut piece).map(|()| piece)
        });
        for piece in pieces {
            let piece = piece?;
            put(&piece)?;
            buffers.push(piece);
        }
    }
    let mut tail = Vec::new();
    plan.encode_tail(&mut tail);
    put(&tail)?;
    if written == plan.total_len() {
        Ok(())
    } else {
        Err(Error::new(
            ErrorKind::WriteFailed,
            "the output is not as long as planned",
        )
        .found(format_args!("{written} bytes"))
        .expected(format_args!("{} bytes", plan.total_len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::ids::{FuncHash, NameRef};
    use profkit_data::instr::{FunctionTable, NewRecord};
    use std::num::NonZeroUsize;

    #[test]
    fn any_number_of_threads_writes_the_same_bytes() {
        let mut table = FunctionTable::new();
        for order in 0..60_000u64 {
            let name = format!("function_{order}");
            let name_ref = NameRef::of(name.as_bytes());
            let function = table
                .push_function(name.as_bytes(), name_ref, order)
                .unwrap();
            let counts: Vec<_> = (0..order % 17).map(|count| count * order).collect();
            let record = NewRecord {
                func_hash: FuncHash(order),
                counts: &counts,
                order,
                ..NewRecord::default()
            };
            table.push_record(function, record).unwrap();
        }
        let profile = InstrProfile {
            tables: vec![table],
            ..InstrProfile::default()
        };
        let plan = IndexedPlan::new(&profile, &IndexedWriteOptions::for_version(13)).unwrap();
        assert!(plan.total_len() > PARALLEL_FROM);
        let write = |threads| {
            let mut bytes = Vec::new();
            let threads = Threads::new(NonZeroUsize::new(threads));
            write_indexed(&plan, &threads, &mut bytes).unwrap();
            bytes
        };
        let one = write(1);
        assert_eq!(one.len() as u64, plan.total_len());
        assert!(one == write(2) && one == write(5));
    }
}
