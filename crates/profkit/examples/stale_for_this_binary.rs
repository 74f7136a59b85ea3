//! Prints how much of a profile the functions of a binary can still use, and which hot functions are lost.
//!
//!     cargo run -p profkit --example stale_for_this_binary -- PROFILE BINARY
use profkit::analysis::matching::{BinaryFunctions, MatchShares, ProfileFunctions};
use profkit::analysis::names;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let profile = arguments.next().ok_or("give a profile")?;
    let binary = arguments.next().ok_or("give a binary")?;
    let profile = ProfileFunctions::parse(&std::fs::read(profile)?)?;
    let mut binaries = BinaryFunctions::for_profile(&profile);
    binaries.open(Path::new(&binary))?;
    binaries.find_inlined(&profile);
    let shares = MatchShares::new(&profile, &binaries);
    let counts = &shares.counts;
    match counts.percent(counts.changed + counts.gone) {
        Some(stale) => {
            println!("{stale:.1} % of all counts are of functions that changed or are gone")
        }
        None => println!("all counts of the profile are 0"),
    }
    for lost in &shares.hot_lost {
        println!("{:?}: {}", lost.outcome, names::display(&lost.name));
    }
    Ok(())
}
