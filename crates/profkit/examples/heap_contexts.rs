//! Prints the contexts of a heap profile that allocate most, and whether they are cold, warm or hot.
//!
//!     cargo run -p profkit --example heap_contexts -- PROFILE [PROGRAM-OR-FOLDER...]
//!
//! A raw profile (`.memprofraw`) holds addresses: it needs the programs and libraries that ran.
use profkit::analysis::correlate::Binaries;
use profkit::analysis::heap::{
    ContextOrder, FrameRule, HeapProfile, IndexedBinaries, load_heap, top_contexts,
};
use profkit::analysis::names;
use profkit::data::detect::{FileKind, detect};
use profkit::data::memprof::{Field, Thresholds};
use profkit::merge::RunOptions;
use profkit::merge::files::{Input, SingleInput};
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().ok_or("give a heap profile")?;
    let input = Input::open(Path::new(&path))?;
    let heap = if detect(input.bytes()) == FileKind::InstrIndexed {
        HeapProfile::from_indexed(input.bytes())?
    } else {
        let binaries = Binaries::open(&arguments.map(PathBuf::from).collect::<Vec<_>>())?;
        let source = IndexedBinaries::of(&binaries);
        let loaded = load_heap(
            &SingleInput(&input),
            &RunOptions::new(),
            &source,
            FrameRule::All,
        )?;
        for event in &loaded.report.events {
            eprintln!("{event}");
        }
        for module in &loaded.modules {
            if let Some(error) = &module.error {
                eprintln!("{:?}: {error}", module.module);
            } else if module.binary.is_none() {
                eprintln!("no binary was given for {:?}", module.module);
            }
        }
        let (unknown, total) = (loaded.unknown, loaded.total);
        if unknown.contexts > 0 {
            eprintln!(
                "debug info covers no frame of {} of {} contexts, with {} of {} bytes",
                unknown.contexts, total.contexts, unknown.bytes, total.bytes
            );
        }
        HeapProfile::from_loaded(loaded)
    };
    let contexts = heap.profile.contexts();
    let thresholds = Thresholds::default();
    for context in top_contexts(&contexts, ContextOrder::Bytes, 10) {
        let bytes = context.block.get(Field::TotalSize);
        println!(
            "{bytes} bytes, {:?}",
            thresholds.hotness(&context.block, true)
        );
        for frame in heap.frames(context.stack) {
            match frame.name {
                Some(name) => println!("  {}", names::display(name)),
                None => println!("  {:#018x}", frame.frame.function),
            }
        }
    }
    Ok(())
}
