//! The order of the blocks of a function by extended TSP. The goal is that frequent branches are short, or become a
//! fall-through to the next block. Chains of blocks are joined step by step, always the pair of chains with the largest
//! gain.
use std::collections::BTreeMap;

/// The score of each fall-through to the next block.
const NEXT: f64 = 10.0;
/// The score of each forward branch of length 0. A longer branch has a lower score.
const FORWARD: f64 = 1.0;
/// The score of each backward branch of length 0. A longer branch has a lower score.
const BACKWARD: f64 = 1.0;
/// The length in bytes from which a forward branch has the score 0.
const FORWARD_REACH: u64 = 1024;
/// The length in bytes from which a backward branch has the score 0.
const BACKWARD_REACH: u64 = 680;
/// The longest chain that is split to put another between its parts. The time of a join grows with its square.
const LONGEST_SPLIT: usize = 128;

/// A block of a function.
#[derive(Clone, Copy, Debug)]
pub struct BlockSize {
    /// The size of the block in bytes.
    pub size: u64,
    /// How often the block ran.
    pub weight: u64,
}

/// A jump from one block of a function to another, and how often it was taken.
#[derive(Clone, Copy, Debug)]
pub struct Jump {
    pub from: usize,
    pub to: usize,
    pub weight: u64,
    /// Whether the jump is a call. A call can be anywhere in its block; it counts as being in the middle.
    pub call: bool,
}

#[allow(clippy::cast_precision_loss, reason = "a score is no exact number")]
fn number(value: u64) -> f64 {
    value as f64
}

/// The score of a jump from the block at `from`, which has `size` bytes, to the block at `to`.
fn score_of(jump: &Jump, size: u64, from: u64, to: u64) -> f64 {
    let end = if jump.call {
        from.saturating_add(size / 2)
    } else {
        from.saturating_add(size)
    };
    let weight = number(jump.weight);
    if to == end && !jump.call {
        return weight * NEXT;
    }
    let share = |distance: u64, reach: u64| {
        if distance < reach {
            1.0 - number(distance) / number(reach)
        } else {
            0.0
        }
    };
    if to >= end {
        weight * FORWARD * share(to - end, FORWARD_REACH)
    } else {
        weight * BACKWARD * share(end - to, BACKWARD_REACH)
    }
}

/// The score of the blocks in `order`. Jumps from or to other blocks do not count.
pub fn score(blocks: &[BlockSize], jumps: &[Jump], order: &[usize]) -> f64 {
    let mut scorer = Scorer::new(blocks, jumps);
    scorer.score(&[order])
}

struct Scorer<'f> {
    blocks: &'f [BlockSize],
    /// The jumps from each block.
    jumps: Vec<Vec<Jump>>,
    /// The latest call of `score` that placed each block, and its position in bytes.
    places: Vec<(u64, u64)>,
    calls: u64,
}

impl<'f> Scorer<'f> {
    fn new(blocks: &'f [BlockSize], jumps: &[Jump]) -> Self {
        let mut from = vec![Vec::new(); blocks.len()];
        for jump in jumps {
            if jump.to < blocks.len()
                && let Some(list) = from.get_mut(jump.from)
            {
                list.push(*jump);
            }
        }
        Scorer {
            blocks,
            jumps: from,
            places: vec![(0, 0); blocks.len()],
            calls: 0,
        }
    }

    fn size(&self, block: usize) -> u64 {
        self.blocks.get(block).map_or(0, |block| block.size)
    }

    fn from(&self, block: usize) -> &[Jump] {
        self.jumps.get(block).map_or(&[], |jumps| jumps)
    }

    /// The score of the blocks in `pieces`, laid out one after the other.
    fn score(&mut self, pieces: &[&[usize]]) -> f64 {
        self.calls += 1;
        let mut place: u64 = 0;
        for &block in pieces.iter().copied().flatten() {
            let size = self.size(block);
            if let Some(known) = self.places.get_mut(block) {
                *known = (self.calls, place);
            }
            place = place.saturating_add(size);
        }
        let mut sum = 0.0;
        for &block in pieces.iter().copied().flatten() {
            let Some(&(_, from)) = self.places.get(block) else {
                continue;
            };
            for jump in self.from(block) {
                if let Some(&(call, to)) = self.places.get(jump.to)
                    && call == self.calls
                {
                    sum += score_of(jump, self.size(block), from, to);
                }
            }
        }
        sum
    }

    /// Whether a jump goes from the last block of `before` to the first block of `after`.
    fn meets(&self, before: &[usize], after: &[usize]) -> bool {
        let (Some(&from), Some(&to)) = (before.last(), after.first()) else {
            return false;
        };
        let jumps = self.from(from);
        jumps.iter().any(|jump| jump.to == to && !jump.call)
    }
}

/// Blocks that are laid out together, in this order.
#[derive(Clone, Debug, Default)]
struct Chain {
    blocks: Vec<usize>,
    score: f64,
}

#[derive(Clone, Debug)]
struct Join {
    gain: f64,
    blocks: Vec<usize>,
}

/// Returns the order of the blocks. The first block stays the first.
pub fn order_blocks(blocks: &[BlockSize], jumps: &[Jump]) -> Vec<usize> {
    let mut scorer = Scorer::new(blocks, jumps);
    let (mut chains, bundle_of) = bundles(blocks.len(), jumps, &mut scorer);
    // The chain of each block, and for each chain those that a jump connects with it.
    let mut owner = vec![0; blocks.len()];
    for (index, chain) in chains.iter().enumerate() {
        for &block in &chain.blocks {
            if let Some(owner) = owner.get_mut(block) {
                *owner = index;
            }
        }
    }
    let mut neighbours = vec![Vec::new(); chains.len()];
    let at = |owner: &[usize], block: usize| owner.get(block).copied().unwrap_or(0);
    for jump in jumps.iter().filter(|jump| jump.weight > 0) {
        let (one, two) = (at(&owner, jump.from), at(&owner, jump.to));
        if one != two {
            for (one, two) in [(one, two), (two, one)] {
                if let Some(list) = neighbours.get_mut(one) {
                    list.push(two);
                }
            }
        }
    }
    let mut joins: BTreeMap<(usize, usize), Join> = BTreeMap::new();
    let mut fresh: Vec<(usize, usize)> = neighbours
        .iter()
        .enumerate()
        .flat_map(|(one, list)| list.iter().map(move |&two| (one.min(two), one.max(two))))
        .collect();
    loop {
        fresh.sort_unstable();
        fresh.dedup();
        for (one, two) in fresh.drain(..) {
            if let (Some(left), Some(right)) = (chains.get(one), chains.get(two)) {
                match best_join(&mut scorer, left, right, &bundle_of) {
                    Some(join) => joins.insert((one, two), join),
                    None => joins.remove(&(one, two)),
                };
            }
        }
        // Of several pairs with the largest gain, the first is taken. Pairs are sorted by the indices of their chains.
        let mut best: Option<((usize, usize), f64)> = None;
        for (&pair, join) in &joins {
            if best.is_none_or(|(_, gain)| join.gain > gain) {
                best = Some((pair, join.gain));
            }
        }
        let Some(((one, two), _)) = best else {
            break;
        };
        let Some(join) = joins.remove(&(one, two)) else {
            break;
        };
        joins.retain(|pair, _| ![pair.0, pair.1].iter().any(|it| *it == one || *it == two));
        let moved = neighbours.get_mut(two).map(std::mem::take);
        for neighbour in moved.unwrap_or_default() {
            if let Some(list) = neighbours.get_mut(neighbour) {
                for it in list.iter_mut().filter(|it| **it == two) {
                    *it = one;
                }
            }
            if let Some(list) = neighbours.get_mut(one) {
                list.push(neighbour);
            }
        }
        if let Some(list) = neighbours.get_mut(one) {
            list.sort_unstable();
            list.dedup();
            list.retain(|it| *it != one && *it != two);
            fresh.extend(list.iter().map(|&it| (one.min(it), one.max(it))));
        }
        let score = scorer.score(&[&join.blocks]);
        if let Some(chain) = chains.get_mut(two) {
            *chain = Chain::default();
        }
        if let Some(chain) = chains.get_mut(one) {
            *chain = Chain {
                blocks: join.blocks,
                score,
            };
        }
    }
    // No join has a gain any more. The chain with the entry comes first, then the chains with the most weight per byte.
    let density = |chain: &Chain| {
        let sums = chain.blocks.iter().filter_map(|&block| blocks.get(block));
        let (weight, size) = sums.fold((0u64, 0u64), |(weight, size), block| {
            (
                weight.saturating_add(block.weight),
                size.saturating_add(block.size),
            )
        });
        number(weight) / number(size.max(1))
    };
    chains.retain(|chain| !chain.blocks.is_empty());
    chains.sort_by(|one, two| {
        let entry = |chain: &Chain| chain.blocks.first() != Some(&0);
        entry(one)
            .cmp(&entry(two))
            .then_with(|| density(two).total_cmp(&density(one)))
            .then_with(|| one.blocks.iter().min().cmp(&two.blocks.iter().min()))
    });
    chains.into_iter().flat_map(|chain| chain.blocks).collect()
}

/// B follows A in a bundle, which is never split, if each has only the other as successor or predecessor. Returns a
/// chain for each bundle, and the bundle of each block.
fn bundles(count: usize, jumps: &[Jump], scorer: &mut Scorer<'_>) -> (Vec<Chain>, Vec<usize>) {
    // For each block, its only successor or predecessor: `None` if there is none, `Some(None)` if there are several.
    let mut next: Vec<Option<Option<usize>>> = vec![None; count];
    let mut before = next.clone();
    let note = |list: &mut Vec<Option<Option<usize>>>, at: usize, other: usize| {
        if let Some(slot) = list.get_mut(at) {
            *slot = match *slot {
                None => Some(Some(other)),
                Some(Some(known)) if known == other => Some(Some(known)),
                Some(_) => Some(None),
            };
        }
    };
    for jump in jumps.iter().filter(|jump| jump.weight > 0 && !jump.call) {
        note(&mut next, jump.from, jump.to);
        note(&mut before, jump.to, jump.from);
    }
    let get = |list: &[Option<Option<usize>>], at: usize| list.get(at).copied().flatten().flatten();
    let mut forced: Vec<Option<usize>> = (0..count)
        .map(|block| {
            let to = get(&next, block)?;
            // The entry must stay first, so no block is placed before it.
            (to != 0 && to != block && get(&before, to) == Some(block)).then_some(to)
        })
        .collect();
    cut_cycles(&mut forced, jumps);
    let mut follows = vec![false; count];
    for &to in forced.iter().flatten() {
        if let Some(follows) = follows.get_mut(to) {
            *follows = true;
        }
    }
    let mut bundle_of = vec![usize::MAX; count];
    let mut chains = Vec::new();
    for start in (0..count).filter(|&block| follows.get(block) == Some(&false)) {
        let mut blocks = Vec::new();
        let mut block = Some(start);
        while let Some(at) = block {
            if let Some(bundle) = bundle_of.get_mut(at) {
                *bundle = chains.len();
            }
            blocks.push(at);
            block = forced.get(at).copied().flatten();
        }
        let score = scorer.score(&[&blocks]);
        chains.push(Chain { blocks, score });
    }
    (chains, bundle_of)
}

/// Cuts each cycle at its lightest edge; of equal ones, that to the block with the lowest number.
fn cut_cycles(forced: &mut [Option<usize>], jumps: &[Jump]) {
    let mut weights: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for jump in jumps.iter().filter(|jump| !jump.call) {
        let weight = weights.entry((jump.from, jump.to)).or_default();
        *weight = weight.saturating_add(jump.weight);
    }
    let next = |forced: &[Option<usize>], at: usize| forced.get(at).copied().flatten();
    let mut seen = vec![false; forced.len()];
    for start in 0..forced.len() {
        let mut lightest: Option<(u64, usize, usize)> = None;
        let mut at = start;
        while let (Some(known @ false), Some(to)) = (seen.get_mut(at), next(forced, at)) {
            *known = true;
            let weight = weights.get(&(at, to)).copied().unwrap_or(0);
            let edge = (weight, to, at);
            if lightest.is_none_or(|lightest| edge < lightest) {
                lightest = Some(edge);
            }
            at = to;
        }
        // The walk is a cycle only if it ends where it began.
        if let (true, Some((_, _, from))) = (at == start, lightest)
            && let Some(cut) = forced.get_mut(from)
        {
            *cut = None;
        }
    }
}

/// Returns the best way to join two chains; `None` if no way has a better score than the separate chains.
fn best_join(
    scorer: &mut Scorer<'_>,
    left: &Chain,
    right: &Chain,
    bundle_of: &[usize],
) -> Option<Join> {
    let apart = left.score + right.score;
    let mut best: Option<Join> = None;
    let mut consider = |scorer: &mut Scorer<'_>, pieces: &[&[usize]]| {
        let has_entry = pieces.iter().any(|piece| piece.contains(&0));
        let first = pieces.iter().copied().flatten().next();
        if has_entry && first != Some(&0) {
            return;
        }
        let gain = scorer.score(pieces) - apart;
        // A gain that is only a rounding error must not count.
        let least = 1e-9 * apart.max(1.0);
        if gain > least && best.as_ref().is_none_or(|best| gain > best.gain + least) {
            best = Some(Join {
                gain,
                blocks: pieces.concat(),
            });
        }
    };
    consider(scorer, &[&left.blocks, &right.blocks]);
    consider(scorer, &[&right.blocks, &left.blocks]);
    for (split, whole) in [(left, right), (right, left)] {
        if split.blocks.len() > LONGEST_SPLIT {
            continue;
        }
        for cut in 1..split.blocks.len() {
            let (one, two) = split.blocks.split_at(cut);
            let bundle = |block: Option<&usize>| bundle_of.get(*block?).copied();
            if bundle(one.last()) == bundle(two.first()) {
                continue;
            }
            let whole = &*whole.blocks;
            if !scorer.meets(one, whole) && !scorer.meets(whole, two) {
                continue;
            }
            consider(scorer, &[one, whole, two]);
            consider(scorer, &[two, one, whole]);
            consider(scorer, &[whole, two, one]);
            consider(scorer, &[two, whole, one]);
        }
    }
    best
}
