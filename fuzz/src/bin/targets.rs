//! Prints a line per fuzz target: its name, then the file extensions of the fixtures that it starts from.
use profkit_fuzz::TARGETS;

fn main() {
    for target in TARGETS {
        println!("{} {}", target.name, target.seeds.join(" "));
    }
}
