//! Merges two profiles that are in memory, and prints the result as text.
//!
//!     cargo run -p profkit --example merge_in_memory
use profkit::data::instr::text::{self, TextOptions};
use profkit::merge::{MergeOptions, Weight, merge_instr};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let monday = b":ir\nmain\n742261418966908927\n2\n3\n40\n";
    let tuesday = b":ir\nmain\n742261418966908927\n2\n1\n2\n";
    // Inputs can be byte slices, or pairs of name and bytes. A weight multiplies the counts of its input.
    let inputs = [
        ("monday", Weight::ONE, monday.as_slice()),
        ("tuesday", Weight::integer(10), tuesday.as_slice()),
    ];
    let merged = merge_instr(&inputs, &MergeOptions::new())?;
    for result in &merged.profiles {
        let mut bytes = Vec::new();
        text::write(&result.profile, &TextOptions::default(), &mut bytes)?;
        print!("{}", String::from_utf8_lossy(&bytes));
    }
    Ok(())
}
