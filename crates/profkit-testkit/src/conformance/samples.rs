//! Compares how profkit and LLVM's tool convert and merge sample profiles. The inputs were written by every release in
//! every encoding.
use super::{Comparison, Conformance, ONE_WRITER, Outcome, REFERENCE, in_parallel, keep};
use crate::sample::{SampleOptions, SampleShape, sample_text};
use crate::{Llvm, fixture, fixtures_with, repo_root};
use std::path::Path;
use std::process::Command;

/// The last LLVM release that reads and writes the compact binary encoding.
const LAST_COMPACT: u32 = 16;

/// The encodings of sample profiles. Each has its name, its option, and the first and the last release that writes it.
const ENCODINGS: [(&str, &str, u32, u32); 7] = [
    ("text", "--text", 0, u32::MAX),
    ("binary", "--binary", 0, u32::MAX),
    ("compact", "--compbinary", 0, LAST_COMPACT),
    ("ext", "--extbinary", 0, u32::MAX),
    ("md5", "--extbinary --use-md5", 0, u32::MAX),
    (
        "compressed",
        "--extbinary --compress-all-sections",
        0,
        u32::MAX,
    ),
    ("split", "--extbinary --split-layout", 22, u32::MAX),
];

/// The options for the forms to which each file is converted.
const FORMS: [&str; 4] = [
    "--text",
    "--binary",
    "--extbinary",
    "--compress-all-sections",
];

/// The options for merges of several files.
const MERGES: [&str; 3] = [
    "--text",
    "--extbinary",
    "--text --convert-sample-profile-layout=flat",
];

/// The reason why files by LLVM and by profkit may have checksums and attributes in different orders.
/// docs/formats/llvm-profdata.md describes this difference.
const METADATA_ORDER: &str = "in LLVM's files, metadata of sample profiles (checksums, attributes) have the order of a hash table; all other \
     sections have the same bytes, and LLVM reads the same text from both files";
const OTHER_ZLIB: &str =
    "compressed sections of sample profiles hold the same data, compressed by zlib-rs";
const CONTEXTS_OF_13: &str =
    "LLVM refuses the contexts of extensible binary files that LLVM 13 wrote; profkit reads them";
/// The message that both tools print if an encoding cannot contain a profile.
const NO_WRITER: &str = "Profile encoding format unsupported for writing operations";
const NO_CONTEXT_TABLE: &str = "LLVM writes profiles with contexts in the split layout without a table of contexts, which no tool can read; profkit refuses to write them";
const HASHES_AS_DIGITS: &str = "LLVM 16 orders call targets of equal samples by the digits of their hashes; profkit by their value, as LLVM 22";

/// A sample profile as text, from which test inputs are made.
struct Source {
    name: String,
    text: Vec<u8>,
    has_contexts: bool,
}

/// A test input: a sample profile that one release has written in one encoding.
struct Input {
    name: String,
    release: u32,
    encoding: String,
    has_contexts: bool,
    bytes: Vec<u8>,
}

impl Conformance {
    /// Makes all comparisons of sample profiles, as far as the needed tools are installed.
    ///
    /// # Panics
    /// If a tool cannot be started or the temporary folder cannot be written.
    pub fn check_samples(&self) -> Vec<Comparison> {
        let Some(reference) = self.llvms.get(&REFERENCE) else {
            return Vec::new();
        };
        // Each element is a list of sources. The files made from one list can be merged. `None` stands for the
        // fixtures.
        let corpora: Vec<_> = [None]
            .into_iter()
            .chain(Self::corpora().into_iter().map(Some))
            .collect();
        in_parallel(&corpora, |corpus| {
            let folder = tempfile::tempdir().expect("a scratch folder");
            let mut bench = SampleBench {
                reference,
                compact: self.llvms.get(&LAST_COMPACT),
                personality: &self.personality,
                folder: folder.path(),
                found: Vec::new(),
            };
            let inputs = match corpus {
                Some(sources) => self.written(&bench, sources),
                None => fixture_inputs(),
            };
            bench.check(&inputs);
            bench.found
        })
    }

    /// Writes the sources with every release in every encoding.
    fn written(&self, bench: &SampleBench<'_>, sources: &[Source]) -> Vec<Input> {
        let mut inputs = Vec::new();
        for source in sources {
            for llvm in self.llvms.values() {
                for encoding in ENCODINGS {
                    inputs.extend(bench.written_by(llvm, source, encoding));
                }
            }
        }
        inputs
    }

    /// Returns groups of profiles. The profiles of a group can be merged with each other. Most are generated; one
    /// contains samples of a real run.
    fn corpora() -> Vec<Vec<Source>> {
        const FUNCTIONS: usize = 20;
        let ordinary = SampleShape::ALL.into_iter().map(|shape| {
            let options = SampleOptions {
                functions: FUNCTIONS,
                pool: FUNCTIONS * 3 / 2,
                lines: 6,
                shape,
                one_program: true,
            };
            vec![Source {
                name: format!("{shape:?}"),
                text: sample_text(&options, 1).into_bytes(),
                has_contexts: matches!(shape, SampleShape::Context | SampleShape::ContextProbes),
            }]
        });
        let folder = repo_root().join("tests/programs/samples");
        let sampled = Source {
            name: "perf".to_owned(),
            text: std::fs::read(folder.join("perf.txt")).expect("a source"),
            has_contexts: false,
        };
        ordinary.chain([vec![sampled]]).collect()
    }
}

/// Returns the fixtures. Various releases wrote them from texts written by hand.
fn fixture_inputs() -> Vec<Input> {
    let mut inputs: Vec<Input> = fixtures_with(&["sampleprof"])
        .iter()
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?;
            let mut words = name.split('-').skip(1);
            let release = words.next()?.parse().ok()?;
            let source = words.next()?;
            Some(Input {
                name: name.to_owned(),
                release,
                encoding: words.collect::<Vec<_>>().join("-"),
                has_contexts: source == "contexts",
                bytes: fixture(path),
            })
        })
        .collect();
    let folder = repo_root().join("tests/programs/samples");
    for source in ["nested", "contexts", "probes"] {
        let bytes = std::fs::read(folder.join(format!("{source}.txt"))).expect("a source");
        inputs.push(Input {
            name: source.to_owned(),
            release: REFERENCE,
            encoding: "text".to_owned(),
            has_contexts: source == "contexts",
            bytes,
        });
    }
    inputs
}

struct SampleBench<'a> {
    reference: &'a Llvm,
    /// The LLVM release [`LAST_COMPACT`], which reads compact binary files; `None` if it is not installed.
    compact: Option<&'a Llvm>,
    personality: &'a Path,
    folder: &'a Path,
    found: Vec<Comparison>,
}

/// The content of a file, as the reference release reads it.
#[derive(PartialEq, Eq)]
struct Meaning {
    text: Vec<u8>,
    symbols: Option<Vec<u8>>,
    sections: Vec<String>,
}

/// The result of a command: exit code, messages, output file.
#[derive(PartialEq, Eq)]
struct Did {
    code: Option<i32>,
    stderr: String,
    output: Option<Vec<u8>>,
}

impl SampleBench<'_> {
    fn run(&self, tool: &Path, arguments: &[&str]) -> Did {
        let written = self.folder.join("out");
        let _ = std::fs::remove_file(&written);
        let ran = Command::new(tool)
            .args(arguments)
            .current_dir(self.folder)
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", tool.display()));
        let stderr = String::from_utf8_lossy(&ran.stderr);
        let name = |tool: &Path| {
            let name = tool.file_name().unwrap_or_default();
            format!("{}: ", name.to_string_lossy())
        };
        Did {
            code: ran.status.code(),
            // Each tool prints its own name, which is removed from the messages.
            stderr: stderr.replace(&name(tool), ""),
            output: std::fs::read(&written).ok(),
        }
    }

    /// Writes a source with a release in an encoding. Returns `None` if the encoding cannot contain the source.
    fn written_by(
        &self,
        llvm: &Llvm,
        source: &Source,
        (encoding, options, first, last): (&str, &str, u32, u32),
    ) -> Option<Input> {
        let release = llvm.release();
        if release < first || release > last {
            return None;
        }
        std::fs::write(self.folder.join("source"), &source.text).expect("a writable folder");
        let mut arguments = vec!["merge", "--sample", "source", "-o", "out"];
        arguments.extend(options.split_whitespace());
        let ran = self.run(llvm.profdata(), &arguments);
        let bytes = ran.output.filter(|_| ran.code == Some(0))?;
        Some(Input {
            name: format!("{}-{release}-{encoding}", source.name),
            release,
            encoding: encoding.to_owned(),
            has_contexts: source.has_contexts,
            bytes,
        })
    }

    /// Compares the conversions of each file to every form. Also compares merges of all files of a release, and of all
    /// files in an encoding.
    fn check(&mut self, inputs: &[Input]) {
        for (number, input) in inputs.iter().enumerate() {
            std::fs::write(self.folder.join(number.to_string()), &input.bytes)
                .expect("a writable folder");
            for form in FORMS {
                self.compare("convert", form, &[number], inputs);
            }
        }
        let readable = |input: &Input| !is_of_13(input);
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for (number, input) in inputs.iter().enumerate().filter(|(_, it)| readable(it)) {
            let spelled = !["md5", "compact", "ext-md5"].contains(&input.encoding.as_str());
            let mut keys = vec![format!("encoding {}", input.encoding)];
            if spelled {
                keys.push(format!("release {}", input.release));
            }
            for key in keys {
                match groups.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, group)) => group.push(number),
                    None => groups.push((key, vec![number])),
                }
            }
        }
        for (_, group) in groups.iter().filter(|(_, group)| group.len() > 1) {
            for form in MERGES {
                self.compare("merge", form, group, inputs);
            }
        }
    }

    fn compare(&mut self, what: &str, form: &str, numbers: &[usize], inputs: &[Input]) {
        let names: Vec<String> = numbers.iter().map(usize::to_string).collect();
        let mut arguments = vec!["merge", "--sample", ONE_WRITER, "-o", "out"];
        arguments.extend(form.split_whitespace());
        // If several files are merged, the last one gets the weight 2.
        let heavy = names.last().filter(|_| names.len() > 1);
        let heavy = heavy.map(|name| format!("--weighted-input=2,{name}"));
        let plain = names.len() - usize::from(heavy.is_some());
        arguments.extend(names.iter().take(plain).map(String::as_str));
        arguments.extend(heavy.as_deref());
        // Files in the compact encoding are compared with the last release that reads it, all others with the reference
        // release.
        let files = || numbers.iter().filter_map(|&at| inputs.get(at));
        let tool = match files().any(|file| file.encoding == "compact") {
            true if form != "--text" => return,
            true => match self.compact {
                Some(llvm) => llvm,
                None => return,
            },
            false => self.reference,
        };
        let theirs = self.run(tool.profdata(), &arguments);
        let ours = self.run(self.personality, &arguments);
        let files: Vec<&Input> = files().collect();
        let set = match files.as_slice() {
            [one] => one.name.clone(),
            [first, .., last] => format!("{} … {}", first.name, last.name),
            [] => String::new(),
        };
        let what = format!("sample {what} {form}");
        let outcome = self.judge(&set, &what, form, &files, &theirs, &ours);
        self.found.push(Comparison { set, what, outcome });
    }

    fn judge(
        &self,
        set: &str,
        what: &str,
        form: &str,
        files: &[&Input],
        theirs: &Did,
        ours: &Did,
    ) -> Outcome {
        let is_done = |did: &Did| did.code == Some(0);
        // Only profkit and LLVM 13 can read the files with contexts that LLVM 13 wrote. If the binary encoding cannot
        // contain the contexts, profkit prints the same message as LLVM 13.
        let is_read = is_done(ours) || (form == "--binary" && ours.stderr.contains(NO_WRITER));
        if is_read && !is_done(theirs) && files.iter().any(|file| is_of_13(file)) {
            return Outcome::Allowed(CONTEXTS_OF_13);
        }
        let has_contexts = files.iter().any(|file| file.has_contexts);
        if is_done(theirs) && !is_done(ours) && form == "--split-layout" && has_contexts {
            return Outcome::Allowed(NO_CONTEXT_TABLE);
        }
        if (theirs.code, &theirs.stderr) != (ours.code, &ours.stderr) {
            return Outcome::Different(format!(
                "LLVM: {:?} {}; profkit: {:?} {}",
                theirs.code, theirs.stderr, ours.code, ours.stderr
            ));
        }
        // If the command failed, its output file is not compared.
        if theirs.output == ours.output || !is_done(theirs) {
            return Outcome::Same;
        }
        let theirs = theirs.output.as_deref().unwrap_or_default();
        let ours = ours.output.as_deref().unwrap_or_default();
        if !form.contains("--text") && self.is_meant(theirs, ours) {
            if form.contains("compress") {
                return Outcome::Allowed(OTHER_ZLIB);
            }
            if theirs.len() == ours.len() && differ_in_metadata_alone(theirs, ours) {
                return Outcome::Allowed(METADATA_ORDER);
            }
        }
        if files.iter().any(|file| file.encoding == "compact") && by_words(theirs) == by_words(ours)
        {
            return Outcome::Allowed(HASHES_AS_DIGITS);
        }
        let kept = keep(set, what, theirs, ours);
        let sizes = format!("{} and {} bytes", theirs.len(), ours.len());
        Outcome::Different(format!("{sizes}; kept in {}", kept.display()))
    }

    /// Whether the reference release reads the same content from both files.
    fn is_meant(&self, theirs: &[u8], ours: &[u8]) -> bool {
        let theirs = self.meaning(theirs);
        theirs.is_some() && theirs == self.meaning(ours)
    }

    /// Returns the content of a file as the reference release reads it: functions, symbols and sections. The sizes of
    /// compressed sections are left out.
    fn meaning(&self, bytes: &[u8]) -> Option<Meaning> {
        std::fs::write(self.folder.join("meant"), bytes).expect("a writable folder");
        let show = |arguments: &[&str]| {
            let mut command = Command::new(self.reference.profdata());
            command.args(arguments).current_dir(self.folder);
            let ran = command
                .output()
                .expect("the tool of the reference release starts");
            // The exit status is not checked, because the reference release crashes on files without a list of symbols.
            (ran.status.success(), ran.stdout)
        };
        let (is_sound, text) = show(&["merge", "--sample", "--text", "meant", "-o", "-"]);
        let (has_symbols, symbols) = show(&["show", "--sample", "--show-prof-sym-list", "meant"]);
        let (_, sections) = show(&["show", "--sample", "--show-sec-info-only", "meant"]);
        let sections = String::from_utf8_lossy(&sections)
            .lines()
            .filter(|line| line.contains("Flags"))
            .map(|line| {
                let name = line.split(" - ").next().unwrap_or_default();
                let flags = line.rsplit("Flags").next().unwrap_or_default();
                let place = if flags.contains("compressed") {
                    ""
                } else {
                    line
                };
                format!("{name} {flags} {place}")
            })
            .collect();
        is_sound.then_some(Meaning {
            text,
            symbols: has_symbols.then_some(symbols),
            sections,
        })
    }
}

/// Returns the sorted words of each line, so that lines with the same words are equal.
fn by_words(text: &[u8]) -> Vec<Vec<&[u8]>> {
    text.split(|&byte| byte == b'\n')
        .map(|line| {
            let mut words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
            words.sort_unstable();
            words
        })
        .collect()
}

/// Whether LLVM 13 has written the file, in the extensible binary encoding and with contexts. LLVM 13 wrote contexts as
/// names.
fn is_of_13(input: &Input) -> bool {
    let is_ext = !["text", "binary", "compact"].contains(&input.encoding.as_str());
    input.release == 13 && input.has_contexts && is_ext
}

/// Whether two extensible binary files of the same size differ only in their metadata section.
fn differ_in_metadata_alone(one: &[u8], two: &[u8]) -> bool {
    const METADATA: u64 = 5;
    const TABLE: usize = 18;
    let word = |at: usize| {
        let bytes = one.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    // The header contains the magic number, the version (ULEB128, two bytes) and the number of sections.
    let count = word(10).unwrap_or(0);
    let entries = (0..usize::try_from(count).unwrap_or(0)).map(|entry| TABLE + entry * 32);
    let mut metadata = 0..0;
    for entry in entries {
        if word(entry) == Some(METADATA) {
            let place = |at| word(at).and_then(|place| usize::try_from(place).ok());
            let (Some(start), Some(size)) = (place(entry + 16), place(entry + 24)) else {
                return false;
            };
            metadata = start..start + size;
        }
    }
    let bytes = one.iter().zip(two).enumerate();
    !metadata.is_empty()
        && bytes
            .filter(|(_, (a, b))| a != b)
            .all(|(at, _)| metadata.contains(&at))
}
