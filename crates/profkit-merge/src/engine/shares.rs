//! Large indexed inputs: each thread takes the names of its share of the hashes from one input after the other. No two
//! threads have the same name, so nothing has to be joined at the end.
use super::strategy::Instr;
use super::worker::Worker;
use crate::driver::{Cancelled, MergeKind, ReportPart};
use crate::inputs::Inputs;
use profkit_data::detect::FileKind;
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions};

/// Indexed inputs of at least this size are read by several threads. For smaller ones, starting the threads costs more
/// than it saves.
const MIN_BYTES: usize = 1 << 20;

/// If at most this many inputs are left, all of them are left to the threads. If there are more, a raw input at this
/// point is read first, because its layout may be that of the others.
const FEW_INPUTS: usize = 8;

/// Reads the large indexed inputs at the start of the list into `worker`, and also the first raw input if there are
/// many inputs. Returns the number of inputs that were read.
///
/// # Errors
/// If the merge is cancelled.
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
        // The ordinary way reports an input that cannot be opened, and rescues what is left of a damaged one.
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
                // If other inputs come from the same program, the threads know its layout from the start.
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
        let outcome = worker.conclude_shares(&opened, &profile, parts, part);
        part.count(outcome, opened.bytes().len());
        driver.progress(done, outcome);
        drop(profile);
        driver.close(opened, &mut buffer);
        done += 1;
    }
    // A renamed function may belong to the share of another thread.
    let disjoint = context.options.remapping.is_none();
    for other in others {
        worker.absorb(other, disjoint);
    }
    Ok(done)
}

fn prev_power_of_two(number: usize) -> usize {
    1 << (usize::BITS - 1 - number.max(1).leading_zeros())
}
