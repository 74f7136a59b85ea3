//! What GNU ld needs so that `--gc-sections` drops dead functions and nothing else.
//!
//! GNU ld keeps a section, and the COMDAT group of that section, when it defines a `__start_` symbol itself that ends
//! in the section's name. It does not define symbols that a linker script defines. So the link gets a script that gives
//! these symbols the values that GNU ld would have given them.
//!
//! With `-r`, GNU ld joins all records to one section that is linked to one function. If that function is dead, the
//! next linker refuses the others, unless each section of records stays separate.
use super::parse::{Class, Item, Parsed, Stop};
use profkit_abi::mip::{section, symbol};
use std::ffi::OsString;
use std::path::Path;

/// The script. A link of objects without records has no runtime, and may lack the section. GNU ld evaluates only the
/// branch that it takes, and it refuses to give the address of a section that no input has.
pub fn script() -> String {
    let (records, hook) = (section::RECORDS, symbol::HOOK);
    [
        (section::ELF_START_PREFIX, String::new()),
        (section::ELF_STOP_PREFIX, format!(" + SIZEOF({records})")),
    ]
    .map(|(prefix, end)| {
        format!(
            "HIDDEN({prefix}{records} = DEFINED({hook}) ? (SIZEOF({records}) ? ADDR({records}){end} : 0) : 0);\n"
        )
    })
    .concat()
}

/// Words for GNU ld. They follow the words of the call and the runtime. `script` is the path where the text of
/// [`script`] will be.
pub fn words(parsed: &Parsed, has_runtime: bool, script: &Path) -> Vec<OsString> {
    match parsed.stop {
        Stop::PartialLink => [section::RECORDS, section::MAP]
            .map(|name| format!("-Wl,--unique={name}").into())
            .to_vec(),
        Stop::Link if has_runtime && drops_sections(parsed) => vec![script.into()],
        _ => Vec::new(),
    }
}

/// Whether the words of a link ask for `--gc-sections` and leave the layout to the linker's own script. A script of the
/// user may place the records elsewhere.
fn drops_sections(parsed: &Parsed) -> bool {
    let mut drops = false;
    for word in linker_words(parsed) {
        for part in word.split(',').filter(|part| part.starts_with('-')) {
            match part.trim_start_matches('-') {
                "gc-sections" => drops = true,
                "no-gc-sections" => drops = false,
                name if is_script(name) => return false,
                _ => {}
            }
        }
    }
    drops
}

/// `-T` and its long forms. Options that only give a section its address begin with the same letters.
fn is_script(name: &str) -> bool {
    const ADDRESSES: [&str; 5] = ["Ttext", "Tdata", "Tbss", "Trodata", "Tldata"];
    const SCRIPTS: [&str; 4] = ["T", "dT", "script", "default-script"];
    let begins = |options: &[&str]| options.iter().any(|option| name.starts_with(option));
    begins(&SCRIPTS) && !begins(&ADDRESSES)
}

fn linker_words(parsed: &Parsed) -> impl Iterator<Item = String> {
    parsed
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Option {
                class: Class::Linker,
                words,
            } => Some(words),
            _ => None,
        })
        .flatten()
        .map(|word| word.to_string_lossy().into_owned())
}

/// Words by which the driver asks its linker for its name and version. Nothing is linked: there is no input, and
/// linkers stop at this option.
pub fn question(parsed: &Parsed) -> Vec<OsString> {
    let mut words = vec![OsString::from("-Wl,--version")];
    for item in &parsed.items {
        if let Item::Option {
            class: Class::Linker | Class::Other,
            words: of_item,
        } = item
        {
            words.extend(of_item.iter().cloned());
        }
    }
    words
}

/// Whether a linker's answer is that of GNU ld.
pub fn is_gnu_ld(answer: &str) -> bool {
    answer.starts_with("GNU ld ")
}
