// Allocations of Rust: through a recursion, in a growing vector, short and long lived.
use std::hint::black_box;

#[inline(never)]
fn nested(depth: u32) -> Box<[u8]> {
    if depth > 0 {
        return black_box(nested(depth - 1));
    }
    vec![1u8; 1000].into_boxed_slice()
}

#[inline(never)]
fn short_lived(rounds: usize) -> usize {
    (0..rounds).map(|round| black_box(vec![round; 10]).len()).sum()
}

#[inline(never)]
fn read(bytes: &[u8]) -> u64 {
    let mut sum = 0;
    for byte in bytes {
        sum = black_box(sum + u64::from(*byte));
    }
    sum
}

fn main() {
    let kept = nested(3);
    let mut numbers = Vec::new();
    for number in 0..100u32 {
        numbers.push(number);
    }
    let sum = short_lived(5);
    assert_eq!((read(&kept), numbers.len(), sum), (1000, 100, 50));
}
