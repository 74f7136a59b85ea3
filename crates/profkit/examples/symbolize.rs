//! Prints the functions, files and lines of addresses in a program, inlined functions first.
//!
//!     cargo run -p profkit --example symbolize -- PROGRAM 0x1139 0x1150
use profkit::object::debug_files::DebugFolders;
use profkit::object::symbolize::{Options, ProgramFiles};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or("give a program and addresses")?;
    let addresses = arguments
        .map(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16))
        .collect::<Result<Vec<u64>, _>>()?;
    // Also opens the debug file, if the program has a separate one.
    let files = ProgramFiles::open(Path::new(&program), &DebugFolders::default())?;
    let symbolizer = files.symbolizer(&Options::default())?;
    let locations = symbolizer.symbolize(&addresses);
    for (index, address) in addresses.iter().enumerate() {
        println!("{address:#x}");
        for frame in locations.stack(index) {
            let (function, file) = (frame.function_text(), frame.file_text());
            println!("  {function} at {file}:{}:{}", frame.line, frame.column);
        }
    }
    Ok(())
}
