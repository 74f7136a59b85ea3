//! Merges profiles of any LLVM release into one that LLVM 16 reads.
//!
//!     cargo run -p profkit --example merge_files_for_llvm_16 -- OUTPUT INPUT...
use profkit::data::instr::indexed::{IndexedPlan, IndexedWriteOptions};
use profkit::data::releases::Release;
use profkit::merge::files::{Content, InputList, Output, write_indexed};
use profkit::merge::{MergeOptions, merge_instr};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let output = arguments.next().ok_or("give an output and inputs")?;
    let inputs = InputList::from_paths(arguments);
    // The sound parts of a damaged input are kept; an input that cannot be used is left out. The report has both.
    let options = MergeOptions::new();
    let merged = merge_instr(&inputs, &options)?;
    for event in &merged.report.events {
        eprintln!("{event}");
    }
    let profile = &merged.profiles.first().ok_or("nothing was merged")?.profile;
    let plan = IndexedPlan::new(profile, &IndexedWriteOptions::for_llvm(Release::new(16)))?;
    // Data that the version of LLVM 16 cannot represent.
    if !plan.losses().is_empty() {
        eprintln!("not written: {}", plan.losses());
    }
    // The file is written whole or not at all.
    let output = Output::new(Path::new(&output), Content::Binary)?;
    let bytes = output.write(|sink| write_indexed(&plan, &options.run.threads, sink))?;
    println!("{} functions, {bytes} bytes", plan.function_count());
    Ok(())
}
