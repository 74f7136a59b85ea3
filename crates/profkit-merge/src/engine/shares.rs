//! Reads a large indexed input with several threads. The hashes of names are divided among the threads, in the same way
//! for all inputs, and each thread reads only the functions with its hashes. So no two threads read functions of the
//! same name, and the results of the threads need not be merged.
use super::strategy::Instr;
use super::worker::Worker;
use crate::driver::{Cancelled, MergeKind, ReportPart};
use profkit_data::detect::FileKind;
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions};
use profkit_files::Inputs;

/// The smallest indexed input that several threads read together. For smaller ones, starting threads costs more.
const MIN_BYTES: usize = 1 << 20;

/// If more inputs follow the large ones and the next is a raw profile, it is read before the threads start: then they
/// know its layout, and need not parse others of the same program.
const FEW_INPUTS: usize = 8;

/// Reads the large indexed inputs at the start of the list with several threads. Returns how many inputs were read.
pub(super) fn run<'c, 'i>(
    kind: &Instr<'c, 'i>,
    worker: &mut Worker<'c, 'i>,
    part: &mut ReportPart,
) -> Result<usize, Cancelled> {
    let context = kind.context;
    let driver = context.driver;
    let threads = &driver.run.threads;
    let shares = match threads.count() {
        0 | 1 => return Ok(0),
        count => prev_power_of_two(count),
    };
    let options = IndexedReadOptions::new().salvage(true);
    let mut others: Vec<Worker<'_, '_>> = Vec::new();
    let mut buffer = Vec::new();
    let mut done = 0;
    let count = driver.inputs.len();
    while done < count {
        driver.check_cancelled()?;
        // An input that cannot be opened or is damaged is left to the normal reader, which reports its faults.
        let Ok(opened) = driver.open(done, &mut buffer) else {
            break;
        };
        let is_large = opened.bytes().len() >= MIN_BYTES && opened.kind == FileKind::InstrIndexed;
        let profile = if is_large {
            IndexedProfile::parse_with(opened.bytes(), &options)
        } else {
            let many = count - done > FEW_INPUTS;
            let first_of_many = many && worker.fast && opened.kind == FileKind::InstrRaw;
            opened.keep_open();
            driver.close(opened, &mut buffer);
            if first_of_many {
                // The threads then know the layout of this program, and need not parse others of it.
                let outcome = driver.take(kind, worker, part, done, &mut buffer)?;
                driver.progress(done, outcome);
                done += 1;
            }
            break;
        };
        let Some(profile) = profile.ok().filter(|profile| !profile.is_damaged()) else {
            opened.keep_open();
            driver.close(opened, &mut buffer);
            break;
        };
        others.resize_with(shares - 1, || kind.worker());
        let workers: Vec<_> = std::iter::once(&mut *worker).chain(&mut others).collect();
        let parts = threads.map(
            workers.into_iter().enumerate().collect(),
            |(share, worker)| worker.read_share(done, &profile, share, shares),
        );
        if context.strategy.rules.order_free {
            worker.note_content(&opened);
        }
        let outcome = worker.conclude_shares(&opened, &profile, parts, part);
        part.count(outcome, &opened);
        driver.progress(done, outcome);
        drop(profile);
        driver.close(opened, &mut buffer);
        done += 1;
    }
    // Two threads may have functions of the same name after renaming.
    let disjoint = context.options.remapping.is_none();
    for other in others {
        worker.absorb(other, disjoint);
    }
    Ok(done)
}

fn prev_power_of_two(number: usize) -> usize {
    1 << (usize::BITS - 1 - number.max(1).leading_zeros())
}
