//! Prints a line per fuzz target: its name, followed by the file extensions of the fixtures from which it starts.
use profkit_fuzz::TARGETS;

fn main() {
    for target in TARGETS {
        println!("{} {}", target.name, target.seeds.join(" "));
    }
}
