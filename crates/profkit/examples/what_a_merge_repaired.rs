//! Merges files, and prints what was repaired and dropped, and why.
//!
//!     cargo run -p profkit --example what_a_merge_repaired -- INPUT...
use profkit::merge::files::InputList;
use profkit::merge::{Action, MergeOptions, merge_instr};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let inputs = InputList::from_paths(std::env::args_os().skip(1));
    let report = merge_instr(&inputs, &MergeOptions::new())?.report;
    let totals = &report.totals;
    println!(
        "{} files: {} kept, {} repaired, {} dropped",
        totals.files, totals.files_kept, totals.files_repaired, totals.files_dropped
    );
    for event in &report.events {
        // Code should decide by `action` and `reason`; the message is for people.
        let lost = matches!(event.action, Action::Dropped | Action::Repaired);
        if lost {
            println!("{}: {:?}: {}", event.file, event.reason, event.message);
        }
        if let Some(hint) = &event.hint {
            println!("  {hint}");
        }
    }
    Ok(())
}
