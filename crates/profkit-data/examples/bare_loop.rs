//! The least that a work on profiles has to do, without its format: what `cargo xtask bench` compares profkit with.
//!
//! - `add FILE... OUT`: reads all files, adds them as 64-bit numbers, and writes the sums.
//! - `parse TEXT OUT`: reads lines; a number is written with eight bytes, of any other line the MD5 hash.
//! - `print FILE OUT`: reads 64-bit numbers, and writes each in decimal on a line of its own.
//! - `sum FILE...`: reads all files and adds their numbers.
use profkit_data::ids::NameRef;
use std::error::Error;
use std::fs;
use std::io::Write as _;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [work, paths @ ..] = arguments.as_slice() else {
        return Err("add, parse, print or sum, and files".into());
    };
    let Some((out, inputs)) = paths.split_last() else {
        return Err("no files".into());
    };
    match work.as_str() {
        "sum" => {
            let mut total = 0u64;
            for path in paths {
                let sum = numbers(&fs::read(path)?).fold(0, u64::wrapping_add);
                total = total.wrapping_add(sum);
            }
            println!("{total}");
        }
        "add" => {
            let mut sums = Vec::new();
            for path in inputs {
                let data = fs::read(path)?;
                sums.resize(sums.len().max(data.len().div_ceil(8)), 0u64);
                for (sum, number) in sums.iter_mut().zip(numbers(&data)) {
                    *sum = sum.wrapping_add(number);
                }
            }
            let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
            fs::write(out, bytes)?;
        }
        "parse" => {
            let (data, mut bytes) = (fs::read(inputs.first().ok_or("no input")?)?, Vec::new());
            for line in data.split(|&byte| byte == b'\n') {
                let digits = line.iter().all(u8::is_ascii_digit);
                let number = if digits {
                    line.iter().fold(0u64, |number, digit| {
                        number
                            .wrapping_mul(10)
                            .wrapping_add(u64::from(digit - b'0'))
                    })
                } else {
                    NameRef::of(line).0
                };
                bytes.extend(number.to_le_bytes());
            }
            fs::write(out, bytes)?;
        }
        "print" => {
            let (data, mut text) = (fs::read(inputs.first().ok_or("no input")?)?, Vec::new());
            for number in numbers(&data) {
                writeln!(text, "{number}")?;
            }
            fs::write(out, text)?;
        }
        _ => return Err(format!("no such work: {work}").into()),
    }
    Ok(())
}

fn numbers(data: &[u8]) -> impl Iterator<Item = u64> {
    data.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word.iter_mut()
            .zip(chunk)
            .for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    })
}
