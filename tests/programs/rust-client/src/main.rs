use rust_client::{from_roman, to_roman};

fn main() {
    let last = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(100);
    let sum: u32 = (1..=last).filter_map(to_roman).filter_map(|roman| from_roman(&roman)).sum();
    println!("{sum}");
}
