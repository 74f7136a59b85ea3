//! Tests of the order of blocks, with small control flows that can be checked by hand.
use super::chains::{BlockSize, Jump, order_blocks, score};

fn blocks(sizes: &[u64]) -> Vec<BlockSize> {
    let block = |&size| BlockSize { size, weight: 1 };
    sizes.iter().map(block).collect()
}

fn jumps(list: &[(usize, usize, u64)]) -> Vec<Jump> {
    let jump = |&(from, to, weight)| Jump {
        from,
        to,
        weight,
        call: false,
    };
    list.iter().map(jump).collect()
}

#[test]
fn scores_by_distance() {
    let two = blocks(&[100, 100]);
    // The two blocks are next to each other, so each jump scores 10.
    assert_eq!(score(&two, &jumps(&[(0, 1, 3)]), &[0, 1]), 30.0);
    // A backward jump over 200 bytes. At 680 bytes, the score would be 0.
    let back = score(&two, &jumps(&[(1, 0, 1)]), &[0, 1]);
    assert!((back - (1.0 - 200.0 / 680.0)).abs() < 1e-9);
    // A forward jump over 100 bytes. At 1024 bytes, the score would be 0.
    let three = blocks(&[100, 100, 100]);
    let forward = score(&three, &jumps(&[(0, 2, 1)]), &[0, 1, 2]);
    assert!((forward - (1.0 - 100.0 / 1024.0)).abs() < 1e-9);
    // Too far.
    let far = blocks(&[100, 5000, 100]);
    assert_eq!(score(&far, &jumps(&[(0, 2, 1)]), &[0, 1, 2]), 0.0);
}

#[test]
fn the_likely_way_is_straight() {
    // Block 0 jumps to block 2 nearly always. Otherwise it jumps to block 1, which goes on to block 3, as block 2 does.
    let flow = jumps(&[(0, 1, 5), (0, 2, 95), (1, 3, 5), (2, 3, 95)]);
    assert_eq!(order_blocks(&blocks(&[20; 4]), &flow), [0, 2, 3, 1]);
}

#[test]
fn a_loop_is_rotated_so_that_its_likely_edges_fall_through() {
    // Block 0 enters a loop with head 1 and body 2 and 3, which is left from 1 to 4.
    let flow = jumps(&[(0, 1, 1), (1, 2, 100), (2, 3, 100), (3, 1, 100), (1, 4, 1)]);
    let sizes = blocks(&[20; 5]);
    let order = order_blocks(&sizes, &flow);
    assert_eq!(order[0], 0);
    assert!(score(&sizes, &flow, &order) >= score(&sizes, &flow, &[0, 1, 2, 3, 4]));
}

#[test]
fn a_cycle_without_an_entry_is_cut_at_its_lightest_edge() {
    let flow = jumps(&[(3, 1, 9), (1, 2, 9), (2, 3, 9)]);
    assert_eq!(order_blocks(&blocks(&[20; 4]), &flow), [0, 1, 2, 3]);
    let flow = jumps(&[(3, 1, 9), (1, 2, 8), (2, 3, 9)]);
    assert_eq!(order_blocks(&blocks(&[20; 4]), &flow), [0, 2, 3, 1]);
}

/// Every block occurs once, the entry is first, and most orders are as good as the best possible one.
#[test]
fn random_walks() {
    let mut rng = profkit_testkit::Rng::new(5);
    let mut best_found = 0;
    for _ in 0..300 {
        let count = 2 + rng.below(5);
        let sizes: Vec<u64> = (0..count).map(|_| 1 + rng.below(60) as u64).collect();
        // Each block has at most two successors. A walk ends at a block without successors.
        let next: Vec<Vec<usize>> = (0..count)
            .map(|_| {
                (0..rng.below(3))
                    .map(|_| 1 + rng.below(count - 1))
                    .collect()
            })
            .collect();
        let mut list = Vec::new();
        for _ in 0..50 {
            let mut block = 0;
            for _ in 0..40 {
                let Some(&to) = next[block].get(rng.below(4) / 3) else {
                    break;
                };
                list.push((block, to, 1));
                block = to;
            }
        }
        let (blocks, jumps) = (blocks(&sizes), jumps(&list));
        let order = order_blocks(&blocks, &jumps);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..count).collect::<Vec<_>>());
        assert_eq!(order[0], 0);
        assert_eq!(order, order_blocks(&blocks, &jumps), "the same each time");
        let own = score(&blocks, &jumps, &order);
        let best = permutations(count)
            .into_iter()
            .map(|order| score(&blocks, &jumps, &order))
            .fold(0.0, f64::max);
        assert!(own <= best + 1e-6);
        assert!(own >= 0.8 * best, "{own} of {best}: {sizes:?} {next:?}");
        best_found += usize::from(own >= best * 0.999);
    }
    assert!(best_found >= 240, "{best_found} of 300");
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![0]];
    for next in 1..count {
        all = all
            .into_iter()
            .flat_map(|order| {
                (1..=order.len()).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, next);
                    order
                })
            })
            .collect();
    }
    all
}
