//! Prints the functions of a profile of any kind, with their counts.
//!
//!     cargo run -p profkit --example read_and_print -- PROFILE
use profkit::data::instr::{InstrSource, Record};
use profkit::data::sample::SampleProfile;
use profkit::{Profile, ReadOptions, open};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("give a profile")?;
    let bytes = std::fs::read(path)?;
    match open(&bytes, &ReadOptions::new())? {
        Profile::Instr(mut reader) => print_counts(&mut reader)?,
        Profile::Sample(file) => {
            let mut profile = SampleProfile::new();
            file.read_into(&mut profile, 1);
            for function in profile.functions() {
                let name = profile.names.get(function.samples.name);
                println!("{name}: {} samples", function.samples.total);
            }
        }
        Profile::Mip(profile, _) => {
            for function in &profile.functions {
                let name = String::from_utf8_lossy(&function.name);
                println!("{name}: {} calls", function.calls);
            }
        }
        Profile::MemProf(profile) => {
            println!("{} allocation contexts", profile.contexts().len());
        }
        other => println!("{other:?}"),
    }
    Ok(())
}

fn print_counts(profile: &mut dyn InstrSource) -> profkit::Result<()> {
    let mut record = Record::default();
    while profile.read_record(&mut record)? {
        let name = String::from_utf8_lossy(&record.name);
        println!("{name}: {:?}", record.counts);
    }
    Ok(())
}
