//! Converts a sample profile of any encoding to LLVM's text, or to its extensible binary encoding.
//!
//!     cargo run -p profkit --example sample_to_another_encoding -- INPUT OUTPUT.txt|OUTPUT
use profkit::data::sample::ext_binary::{self, ExtBinaryOptions};
use profkit::data::sample::{SampleProfile, read, text};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let input = arguments.next().ok_or("give an input")?;
    let output = arguments.next().ok_or("give an output")?;
    let mut profile = SampleProfile::new();
    // The reader adds to a profile, so that reading several files merges them. 1 is the weight of this file.
    let report = read(&std::fs::read(input)?, &mut profile, 1);
    for fault in &report.faults {
        eprintln!("{fault}");
    }
    let mut bytes = Vec::new();
    let losses = if Path::new(&output).extension().is_some_and(|it| it == "txt") {
        text::write(&profile, &text::TextOptions::default(), &mut bytes)?
    } else {
        ext_binary::write(&profile, &ExtBinaryOptions::default(), &mut bytes)?
    };
    std::fs::write(output, bytes)?;
    println!(
        "{} functions; not written: {losses}",
        profile.functions().len()
    );
    Ok(())
}
