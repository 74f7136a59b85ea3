//! Prints which functions changed between two profiles, and how much of the total moved with them.
//!
//!     cargo run -p profkit --example what_changed -- OLD NEW
use profkit::analysis::diff::{DiffOptions, ProfileDiff};
use profkit::analysis::names;
use profkit::analysis::overlap::ComparedProfile;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let old = arguments.next().ok_or("give an old profile")?;
    let new = arguments.next().ok_or("give a new profile")?;
    let old = ComparedProfile::open(&std::fs::read(old)?)?;
    let new = ComparedProfile::open(&std::fs::read(new)?)?;
    let diff =
        ProfileDiff::of(&old, &new, &DiffOptions::default()).map_err(|why| why.to_string())?;
    match diff.moved {
        Some(share) => println!("{:.1} % of the total moved", share * 100.0),
        None => println!("one of the profiles counted nothing"),
    }
    for function in &diff.functions {
        let name = names::display(&function.name);
        println!(
            "{:?}: {name}: {:.1} %",
            function.change,
            function.moved * 100.0
        );
    }
    Ok(())
}
