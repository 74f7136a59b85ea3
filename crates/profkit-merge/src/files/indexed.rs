//! Writing indexed profiles with several threads; the bytes are those of
//! [`IndexedPlan::write`].
use profkit_data::bytes::Sink;
use profkit_data::instr::indexed::{IndexedPlan, Summaries};
use profkit_data::{Error, ErrorKind, Result};
use rayon::prelude::*;
use std::num::NonZeroUsize;

/// Outputs below this are written by one thread: starting others would cost more than it saves.
const PARALLEL_FROM: u64 = 4 << 20;
/// How much a thread encodes at a time. The output waits in memory as one such piece a thread.
const PIECE: u64 = 1 << 20;

/// Writes what was planned with at most so many threads, or as many as there are cores.
///
/// # Errors
/// As [`IndexedPlan::write`].
pub fn write_indexed(
    plan: &IndexedPlan<'_>,
    threads: Option<NonZeroUsize>,
    sink: &mut dyn Sink,
) -> Result<()> {
    let threads = match threads {
        Some(threads) => threads.get(),
        None => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    if threads == 1 || plan.total_len() < PARALLEL_FROM {
        let summaries = plan.summarize(0..plan.function_count());
        return plan.write(summaries, sink);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    match pool {
        Ok(pool) => write_in_pieces(plan, &pool, sink),
        // Without threads it only takes longer.
        Err(_) => plan.write(plan.summarize(0..plan.function_count()), sink),
    }
}

fn write_in_pieces(
    plan: &IndexedPlan<'_>,
    pool: &rayon::ThreadPool,
    sink: &mut dyn Sink,
) -> Result<()> {
    let count = plan.function_count();
    let step = count.div_ceil(pool.current_num_threads() * 4).max(1);
    let summaries = pool.install(|| {
        (0..count.div_ceil(step))
            .into_par_iter()
            .map(|index| plan.summarize(index * step..((index + 1) * step).min(count)))
            .reduce(Summaries::default, |mut all, one| {
                all.merge(one);
                all
            })
    });
    let mut written = 0;
    let mut put = |bytes: &[u8]| {
        written += bytes.len() as u64;
        sink.put(bytes)
    };
    let mut head = Vec::new();
    plan.encode_head(summaries, &mut head);
    put(&head)?;

    let mut pieces = vec![Vec::new(); pool.current_num_threads()];
    let mut from = 0;
    while from < count {
        let mut cuts = Vec::with_capacity(pieces.len());
        while from < count && cuts.len() < pieces.len() {
            let to = plan.next_cut(from, PIECE);
            cuts.push(from..to);
            from = to;
        }
        pool.install(|| {
            let pairs = cuts.par_iter().zip(&mut pieces);
            pairs.try_for_each(|(cut, piece)| {
                piece.clear();
                plan.encode_range(cut.clone(), piece)
            })
        })?;
        for (_, piece) in cuts.iter().zip(&pieces) {
            put(piece)?;
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
    use profkit_data::instr::indexed::IndexedWriteOptions;
    use profkit_data::instr::{FunctionTable, InstrProfile, NewRecord};

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
                bitmap: &[],
                values: None,
                order,
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
            write_indexed(&plan, NonZeroUsize::new(threads), &mut bytes).unwrap();
            bytes
        };
        let one = write(1);
        assert_eq!(one.len() as u64, plan.total_len());
        assert!(one == write(2) && one == write(5));
    }
}
