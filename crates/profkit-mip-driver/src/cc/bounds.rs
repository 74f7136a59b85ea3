//! Makes a linker script for links with GNU ld and `--gc-sections`. Without the script, GNU ld would keep the records
//! of functions that it removes.
//!
//! If GNU ld itself defines the symbol `__start_SECTION`, it keeps the section SECTION and the section's COMDAT group,
//! even if nothing uses them. GNU ld does not define a symbol that a linker script defines. So the link gets a script
//! that defines these symbols with the values that GNU ld would have given them.
//!
//! Partial links (`-r`) get no script but another option. With `-r`, GNU ld joins the record sections of all functions
//! to one section, which is linked to only one of these functions. If that function is unused, the next linker rejects
//! the records of the other functions. So the option `--unique` keeps the record sections separate.
use super::parse::{Class, Item, Parsed, Stop};
use profkit_abi::mip::{section, symbol};
use std::ffi::OsString;
use std::path::Path;

/// The linker script. GNU ld fails if it must evaluate the address of a section that no input has, so the script asks
/// for it only in a branch of a condition, which ld evaluates only if it applies.
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

/// The words for a link with GNU ld, after the runtime. The caller writes the text of [`script()`] to `script`.
pub fn words(parsed: &Parsed, has_runtime: bool, script: &Path) -> Vec<OsString> {
    match parsed.stop {
        Stop::PartialLink => [section::RECORDS, section::MAP]
            .map(|name| format!("-Wl,--unique={name}").into())
            .to_vec(),
        Stop::Link if has_runtime && drops_sections(parsed) => vec![script.into()],
        _ => Vec::new(),
    }
}

/// With a linker script of its own, a link may place the records differently.
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

/// `-Ttext` and others begin with the same letters, but set the address of a section.
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

/// The words for a linker that prints its name and version, and links nothing.
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

/// Whether the text that the linker prints for `--version` (see [`question`]) shows that it is GNU ld.
pub fn is_gnu_ld(answer: &str) -> bool {
    answer.starts_with("GNU ld ")
}
