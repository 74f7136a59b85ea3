//! Rust: generics, trait objects, closures, function pointers, a panic that is caught. Arguments: SEED COUNT.
use std::collections::BTreeMap;

trait Step {
    fn step(&self, value: u32) -> u32;
}

struct Add(u32);
struct Scale(u32);

impl Step for Add {
    fn step(&self, value: u32) -> u32 {
        value.wrapping_add(self.0)
    }
}

impl Step for Scale {
    fn step(&self, value: u32) -> u32 {
        value.wrapping_mul(self.0) ^ (value >> 3)
    }
}

fn fold<T: Copy, F: Fn(T, u32) -> T>(start: T, count: u32, f: F) -> T {
    (0..count).fold(start, f)
}

fn class_of(value: u32) -> &'static str {
    match value % 9 {
        0 => "zero",
        1 | 2 | 3 => "small",
        4 if value > 1000 => "large four",
        4 => "four",
        _ => "other",
    }
}

#[inline(never)]
fn call(f: fn(u32) -> u32, value: u32) -> u32 {
    f(value)
}

fn halve(value: u32) -> u32 {
    value / 2
}

fn double(value: u32) -> u32 {
    value.wrapping_mul(2)
}

#[allow(dead_code)]
fn never_called(value: u32) -> Option<u32> {
    value.checked_sub(1)
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>());
    let mut next = |default| arguments.next().and_then(Result::ok).unwrap_or(default);
    let (seed, count) = (next(1), next(10));
    let steps: [Box<dyn Step>; 3] = [Box::new(Add(seed)), Box::new(Scale(31)), Box::new(Add(7))];
    let mut classes = BTreeMap::new();
    let mut sum = seed;
    for i in 0..count {
        sum = steps[(i % 3) as usize].step(sum);
        sum ^= call(if i % 4 == 0 { halve } else { double }, sum);
        *classes.entry(class_of(sum)).or_insert(0u32) += 1;
    }
    sum ^= fold(sum, count, |total, i| total.rotate_left(i % 7).wrapping_add(i));
    let wide = fold(u64::from(seed), count, |total, i| total.wrapping_mul(5).wrapping_add(u64::from(i)));
    println!("{sum} {wide} {classes:?}");
}
