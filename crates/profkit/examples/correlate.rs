//! Finds the programs that wrote raw profiles which hold only counters, and merges these profiles.
//!
//!     cargo run -p profkit --example correlate -- OUTPUT PROGRAM-OR-FOLDER INPUT...
use profkit::analysis::correlate::{Binaries, Plan};
use profkit::data::instr::indexed::{IndexedPlan, IndexedWriteOptions};
use profkit::merge::files::{Content, InputList, Output, write_indexed};
use profkit::merge::{MergeOptions, merge_instr};
use std::path::Path;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let output = arguments.next().ok_or("give an output")?;
    let binaries = arguments.next().ok_or("give a program or a folder")?;
    let inputs = InputList::from_paths(arguments);
    let binaries = Binaries::open(&[binaries.into()])?;
    let plan = Plan::new(&inputs, &binaries);
    for assignment in &plan.assignments {
        match &assignment.outcome {
            Ok(found) => println!("{}: {} functions", found.path.display(), found.functions),
            Err(error) => println!("no binary: {error}"),
        }
    }
    let options = MergeOptions::new().correlation(Arc::new(plan.joined));
    let merged = merge_instr(&inputs, &options)?;
    let profile = &merged.profiles.first().ok_or("nothing was merged")?.profile;
    let plan = IndexedPlan::new(profile, &IndexedWriteOptions::for_version(13))?;
    let output = Output::new(Path::new(&output), Content::Binary)?;
    output.write(|sink| write_indexed(&plan, &options.run.threads, sink))?;
    Ok(())
}
