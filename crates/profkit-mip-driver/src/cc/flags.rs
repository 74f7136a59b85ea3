//! The flags that were proposed for clang together with MIP (`-fmachine-profile-…`). They stand among the words of the
//! compiler, which does not know them: they are taken out, and stand for options of `profkit mip cc`.
use super::error::{Error, Result, Unsupported};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

const PREFIX: &[u8] = b"-fmachine-profile-";
const NEGATED: &[u8] = b"-fno-machine-profile-";

/// What the flags in a command line ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Whether code is instrumented: the last of `-fmachine-profile-generate` and `-fno-machine-profile-generate`.
    pub generate: bool,
    /// The options of `profkit mip cc` that record what the other flags ask for.
    pub options: Vec<OsString>,
    /// The profile of `-fmachine-profile-use=`.
    pub profile: Option<PathBuf>,
}

#[derive(Default)]
struct Asked {
    function_coverage: bool,
    block_coverage: bool,
    buffer: Option<u64>,
    group_count: Option<String>,
    group: Option<String>,
    min_instructions: Option<String>,
    no_runtime: bool,
    no_dump: bool,
}

/// Takes the flags out of a command line. Returns what they ask for, or `None` if there are none, and the other words.
///
/// # Errors
/// If a flag is not one of the proposal, or its value is no number.
pub fn take(command: &[OsString]) -> Result<(Option<Flags>, Vec<OsString>)> {
    let mut flags = Flags::default();
    let mut asked = Asked::default();
    let mut words = Vec::with_capacity(command.len());
    for word in command {
        let bytes = word.as_bytes();
        let (name, is_on) = match (bytes.strip_prefix(PREFIX), bytes.strip_prefix(NEGATED)) {
            (Some(name), _) => (name, true),
            (None, Some(name)) => (name, false),
            (None, None) => {
                words.push(word.clone());
                continue;
            }
        };
        let split = name.iter().position(|&byte| byte == b'=');
        let (name, value) = match split.and_then(|at| name.split_at_checked(at)) {
            Some((name, value)) => (name, value.get(1..)),
            None => (name, None),
        };
        let unknown = || {
            Error::Unsupported(Unsupported::new(
                format!("{}: there is no such flag", word.to_string_lossy()),
                "the flags are -fmachine-profile-generate, -function-coverage, -block-coverage, -call-graph, -runtime-buffer=BYTES, -function-group-count=N, -selected-function-group=I, -min-instruction-count=N, -link-unit-name=NAME, -use=FILE, and -fno-machine-profile-runtime and -dump",
            ))
        };
        let number = || -> Result<String> {
            let text = value.and_then(|value| std::str::from_utf8(value).ok());
            match text.filter(|text| text.parse::<u64>().is_ok()) {
                Some(text) => Ok(text.to_owned()),
                None => Err(Error::Unsupported(Unsupported::new(
                    format!("{}: expected a number after =", word.to_string_lossy()),
                    "write the number of bytes, groups or instructions",
                ))),
            }
        };
        match (name, is_on, value) {
            (b"generate", is_on, None) => flags.generate = is_on,
            (b"function-coverage", is_on, None) => asked.function_coverage = is_on,
            (b"block-coverage", is_on, None) => asked.block_coverage = is_on,
            (b"call-graph" | b"call-counts", true, None) => asked.function_coverage = false,
            (b"runtime-buffer", true, _) => asked.buffer = number()?.parse().ok(),
            (b"function-group-count", true, _) => asked.group_count = Some(number()?),
            (b"selected-function-group", true, _) => asked.group = Some(number()?),
            (b"min-instruction-count", true, _) => asked.min_instructions = Some(number()?),
            // The build id, and not a name, ties raw files to their program.
            (b"link-unit-name", true, Some(_)) => {}
            (b"runtime", is_on, None) => asked.no_runtime = !is_on,
            (b"dump", is_on, None) => asked.no_dump = !is_on,
            (b"use", true, Some(value)) => {
                flags.profile = Some(OsString::from_vec(value.to_vec()).into());
            }
            _ => return Err(unknown()),
        }
    }
    if words.len() == command.len() {
        return Ok((None, words));
    }
    flags.options = asked.options()?;
    Ok((Some(flags), words))
}

impl Asked {
    fn options(&self) -> Result<Vec<OsString>> {
        let mut options: Vec<String> = Vec::new();
        let mode = if self.function_coverage {
            "function"
        } else {
            "calls"
        };
        let blocks = if self.block_coverage { ",block" } else { "" };
        options.push(format!("--mode={mode}{blocks}"));
        if let Some(bytes) = self.buffer.filter(|&bytes| bytes > 0) {
            if self.function_coverage {
                return Err(Error::Unsupported(Unsupported::new(
                    "-fmachine-profile-runtime-buffer= records call edges, which -fmachine-profile-function-coverage does not",
                    "leave one of the two out",
                )));
            }
            // An entry of the buffer has 8 bytes.
            options.push(format!("--return-addresses={}", bytes.div_ceil(8)));
        }
        let numbers = [
            ("--groups", &self.group_count),
            ("--group", &self.group),
            ("--min-instructions", &self.min_instructions),
        ];
        for (option, value) in numbers {
            options.extend(value.iter().map(|value| format!("{option}={value}")));
        }
        match (self.no_runtime, self.no_dump) {
            (true, _) => options.push("--no-runtime".to_owned()),
            (false, true) => options.push("--runtime=api".to_owned()),
            _ => {}
        }
        Ok(options.into_iter().map(OsString::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let texts = |words: Vec<OsString>| -> String {
            let words = words.iter().map(|word| word.to_string_lossy().into_owned());
            words.collect::<Vec<_>>().join(" ")
        };
        match take(&words) {
            Ok((None, words)) => format!("no flags: {}", texts(words)),
            Ok((Some(flags), words)) => format!(
                "{}{} {}: {}",
                if flags.generate { "generate" } else { "plain" },
                flags
                    .profile
                    .map_or(String::new(), |file| format!(" with {}", file.display())),
                texts(flags.options),
                texts(words)
            ),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn flags_become_options() {
        let lines = [
            "clang -O2 a.c",
            "clang -fmachine-profile-generate -c a.c",
            "clang -fmachine-profile-generate -fno-machine-profile-generate a.c",
            "clang -fmachine-profile-generate -fmachine-profile-function-coverage -fmachine-profile-block-coverage a.c",
            "clang -fmachine-profile-generate -fmachine-profile-block-coverage a.c",
            "clang -fmachine-profile-generate -fmachine-profile-call-graph -fmachine-profile-runtime-buffer=4096 a.c",
            "clang -fmachine-profile-generate -fmachine-profile-function-group-count=3 -fmachine-profile-selected-function-group=1 a.c",
            "clang -fmachine-profile-generate -fno-machine-profile-dump -fmachine-profile-link-unit-name=x a.c",
            "clang -fmachine-profile-use=app.mip -O2 a.c",
            "clang -fmachine-profile-wrong a.c",
            "clang -fmachine-profile-min-instruction-count=few a.c",
            "clang -fmachine-profile-function-coverage -fmachine-profile-runtime-buffer=64 a.c",
        ];
        let text: Vec<String> = lines.into_iter().map(taken).collect();
        insta::assert_snapshot!(text.join("\n"), @"
        no flags: clang -O2 a.c
        generate --mode=calls: clang -c a.c
        plain --mode=calls: clang a.c
        generate --mode=function,block: clang a.c
        generate --mode=calls,block: clang a.c
        generate --mode=calls --return-addresses=512: clang a.c
        generate --mode=calls --groups=3 --group=1: clang a.c
        generate --mode=calls --runtime=api: clang a.c
        plain with app.mip --mode=calls: clang -O2 a.c
        -fmachine-profile-wrong: there is no such flag
        -fmachine-profile-min-instruction-count=few: expected a number after =
        -fmachine-profile-runtime-buffer= records call edges, which -fmachine-profile-function-coverage does not
        ");
    }
}
