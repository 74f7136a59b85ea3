//! Symbolises the addresses on standard input, one per line (`0x…`). Prints the stacks in the form of
//! `llvm-symbolizer --functions=linkage --inlines --no-demangle`, or as tab-separated values.
//!
//!     printf '0x1139\n' | cargo run -p profkit-object --example llvm_symbolizer -- PROGRAM [--debug-file FILE] [--tsv]
//!
//! Debug info that could not be read is reported on standard error.
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::{Options, ProgramFiles};
use std::io::{BufWriter, Read, Write};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut binary = None;
    let (mut debug_file, mut tsv) = (None, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--debug-file" => debug_file = arguments.next(),
            "--tsv" => tsv = true,
            _ => binary = Some(argument),
        }
    }
    let binary = binary.ok_or("give a program")?;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let addresses = text
        .lines()
        .map(|line| u64::from_str_radix(line.trim().trim_start_matches("0x"), 16))
        .collect::<Result<Vec<u64>, _>>()?;
    let started = std::time::Instant::now();
    let mut files = ProgramFiles::open(Path::new(&binary), &DebugFolders::default())?;
    if let Some(debug_file) = debug_file {
        files = files.with_debug_file(Path::new(&debug_file))?;
    }
    let symbolizer = files.symbolizer(&Options::default())?;
    let locations = symbolizer.symbolize(&addresses);
    eprintln!(
        "{} addresses, {} frames, {:?}: {:.3} s",
        locations.len(),
        locations.frame_count(),
        symbolizer.debug_info(),
        started.elapsed().as_secs_f64()
    );
    for warning in locations.warnings() {
        eprintln!("warning: {warning}");
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    for (index, address) in addresses.iter().enumerate() {
        if tsv {
            for frame in locations.stack(index) {
                writeln!(
                    out,
                    "{address:#x}\t{}\t{}\t{}\t{}\t{}\t{}",
                    frame.function_text(),
                    frame.file_text(),
                    frame.line,
                    frame.column,
                    frame.discriminator,
                    frame.function_line
                )?;
            }
            continue;
        }
        if locations.leaf(index).is_none() {
            out.write_all(b"??\n??:0:0\n")?;
        }
        for frame in locations.stack(index) {
            out.write_all(frame.function.unwrap_or(b"??"))?;
            out.write_all(b"\n")?;
            out.write_all(frame.file.unwrap_or(b"??"))?;
            writeln!(out, ":{}:{}", frame.line, frame.column)?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}
