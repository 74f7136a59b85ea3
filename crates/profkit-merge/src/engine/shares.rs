//! Large indexed inputs: each thread takes the names of its share of the hashes, from one input after the other, so
//! that nothing has to be merged afterwards.
use super::lane::Lane;
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions};

/// From this size on an indexed input is worth the start of threads.
const MIN_BYTES: usize = 1 << 20;

/// Up to so many inputs are all left to the threads.
const FEW_INPUTS: usize = 8;

/// Reads the leading inputs that are large indexed profiles into `lane`, and the first of many raw ones. Returns how many
/// inputs that were.
pub(super) fn run(lane: &mut Lane<'_>, threads: usize) -> usize {
    let shares = match threads {
        0 | 1 => return 0,
        threads => prev_power_of_two(threads),
    };
    let context = lane.context;
    let mut others: Vec<Lane<'_>> = (1..shares).map(|_| Lane::new(context)).collect();
    let mut scratch = std::mem::take(&mut lane.scratch);
    let mut done = 0;
    while done < context.inputs.len() {
        let Ok(data) = context.inputs.open(done, &mut scratch) else {
            break;
        };
        let data = data.as_ref();
        if data.len() < MIN_BYTES || detect(data) != FileKind::InstrIndexed {
            let many = context.inputs.len() - done > FEW_INPUTS;
            if many && context.fast && detect(data) == FileKind::InstrRaw {
                // It is here: if others are of the same program, its layout is known when the threads start.
                lane.take_data(done, data);
                done += 1;
            }
            break;
        }
        // What cannot be opened is reported by the ordinary path, which also salvages what is left.
        let options = IndexedReadOptions::new().salvage(true);
        let profile = match IndexedProfile::parse_with(data, &options) {
            Ok(profile) if !profile.is_damaged() => profile,
            _ => break,
        };
        let parts = std::thread::scope(|scope| {
            let profile = &profile;
            let handles: Vec<_> = (1..)
                .zip(&mut others)
                .map(|(share, other)| {
                    scope.spawn(move || other.read_share(done, profile, share, shares))
                })
                .collect();
            let mut parts = vec![lane.read_share(done, profile, 0, shares)];
            for handle in handles {
                match handle.join() {
                    Ok(part) => parts.push(part),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            parts
        });
        lane.totals.files += 1;
        lane.totals.bytes += data.len() as u64;
        lane.conclude_shares(done, &profile, parts);
        done += 1;
    }
    lane.scratch = scratch;
    // Renaming takes names out of their share.
    let disjoint = context.options.remapping.is_none();
    for other in others {
        lane.absorb(other, disjoint);
    }
    done
}

fn prev_power_of_two(number: usize) -> usize {
    1 << (usize::BITS - 1 - number.max(1).leading_zeros())
}
