//! Makes random command lines for a corpus of profiles.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use profkit_data::detect::{Family, detect};
use profkit_testkit::{Rng, mutate};
use profkit_testkit::{repo_root, target_folder};

use super::texts;

/// The size in bytes above which a file is left out, so that a run stays short.
const LARGEST: u64 = 100_000;

/// An input file of a command line.
#[derive(Clone)]
pub struct Input {
    /// The name of the file in the folder where the tools run.
    pub name: String,
    pub bytes: Vec<u8>,
    /// A description of the file's source: its name in the corpus, and whether it was damaged.
    pub origin: String,
}

/// One command line with its input files.
#[derive(Clone)]
pub struct Case {
    pub command: &'static str,
    pub options: Vec<String>,
    pub inputs: Vec<Input>,
}

impl Case {
    /// The arguments of the command line, without the program's name.
    pub fn arguments(&self) -> Vec<String> {
        let names = self.inputs.iter().map(|input| input.name.clone());
        [self.command.to_owned()]
            .into_iter()
            .chain(self.options.iter().cloned())
            .chain(names)
            .collect()
    }

    /// Whether the command line has an option with this name, in any spelling.
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| {
            let option = option.trim_start_matches('-');
            option.split('=').next() == Some(name)
        })
    }

    /// Writes the inputs into a folder.
    pub fn save(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        for input in &self.inputs {
            fs::write(folder.join(&input.name), &input.bytes)?;
        }
        Ok(fs::write(
            folder.join("arguments"),
            self.arguments().join(" "),
        )?)
    }

    /// Returns all cases that have one option or one input less than this case.
    pub fn shorter(&self) -> impl Iterator<Item = Case> {
        let options = (0..self.options.len()).map(|index| {
            let mut case = self.clone();
            case.options.remove(index);
            case
        });
        let inputs = (0..self.inputs.len()).map(|index| {
            let mut case = self.clone();
            case.inputs.remove(index);
            case
        });
        options.chain(inputs)
    }
}

#[derive(Clone, Copy)]
enum Values {
    /// A flag without a value, or with the value 0 or 1.
    Flag,
    /// A number of a size that is usual for options.
    Number,
    Millionths,
    /// Several shares in millionths.
    Cutoffs,
    /// The name of a function, or a part or pattern of a name.
    Function,
    Word(&'static [&'static str]),
    Output,
}

use Values as V;

/// The options for merging instrumentation profiles.
const MERGE_INSTR: &[(&str, Values)] = &[
    ("output", V::Output),
    ("o", V::Output),
    ("text", V::Flag),
    ("binary", V::Flag),
    ("sparse", V::Flag),
    ("failure-mode", V::Word(&["any", "all", "warn"])),
    ("function", V::Function),
    ("no-function", V::Function),
    ("temporal-profile-trace-reservoir-size", V::Number),
    ("temporal-profile-max-trace-length", V::Number),
    ("write-prev-version", V::Flag),
    ("keep-vtable-symbols", V::Flag),
    (
        "weighted-input",
        V::Word(&[
            "3,in0", "0,in0", "-1,in0", "in0,1", "0x2,in0", ",in0", "2", "1,no",
        ]),
    ),
];

/// The options for merging sample profiles.
const MERGE_SAMPLE: &[(&str, Values)] = &[
    ("output", V::Output),
    ("o", V::Output),
    ("text", V::Flag),
    ("binary", V::Flag),
    ("extbinary", V::Flag),
    ("failure-mode", V::Word(&["any", "all", "warn"])),
    ("function", V::Function),
    ("no-function", V::Function),
    ("convert-sample-profile-layout", V::Word(&["nest", "flat"])),
    ("sample-frame-depth-for-cold-context", V::Number),
    ("sample-merge-cold-context", V::Flag),
    ("sample-trim-cold-context", V::Flag),
    ("drop-profile-symbol-list", V::Flag),
    ("gen-partial-profile", V::Flag),
    ("output-size-limit", V::Number),
    ("split-layout", V::Flag),
    ("weighted-input", V::Word(&["3,in0", "2,in1"])),
    ("profile-symbol-list-cutoff", V::Number),
    ("use-md5", V::Flag),
    ("generate-merged-base-profiles", V::Flag),
    ("profile-isfs", V::Flag),
    ("profile-summary-cutoff-cold", V::Millionths),
    ("profile-summary-cold-count", V::Number),
    ("profile-summary-contextless", V::Flag),
    (
        "fs-discriminator-pass",
        V::Word(&["Base", "Pass1", "Pass2", "PassLast"]),
    ),
];

/// The options for showing instrumentation profiles.
const SHOW_INSTR: &[(&str, Values)] = &[
    ("all-functions", V::Flag),
    ("counts", V::Flag),
    ("function", V::Function),
    ("ic-targets", V::Flag),
    ("memop-sizes", V::Flag),
    ("show-vtables", V::Flag),
    ("showcs", V::Flag),
    ("covered", V::Flag),
    ("text", V::Flag),
    ("detailed-summary", V::Flag),
    ("detailed-summary-cutoffs", V::Cutoffs),
    ("hot-func-list", V::Flag),
    ("topn", V::Number),
    ("value-cutoff", V::Number),
    ("list-below-cutoff", V::Flag),
    ("binary-ids", V::Flag),
    ("profile-version", V::Flag),
    ("temporal-profile-traces", V::Flag),
    ("profile-summary-cutoff-hot", V::Millionths),
    ("profile-summary-hot-count", V::Number),
    ("output", V::Output),
    ("show-format", V::Word(&["text", "json", "yaml"])),
];

const SHOW_SAMPLE: &[(&str, Values)] = &[
    ("function", V::Function),
    ("all-functions", V::Flag),
    ("detailed-summary", V::Flag),
    ("hot-func-list", V::Flag),
    ("topn", V::Number),
    ("show-prof-sym-list", V::Flag),
    ("show-sec-info-only", V::Flag),
    ("json", V::Flag),
    ("profile-isfs", V::Flag),
    ("profile-summary-contextless", V::Flag),
    ("output", V::Output),
];

/// The options for comparing profiles.
const OVERLAP: &[(&str, Values)] = &[
    ("cs", V::Flag),
    ("function", V::Function),
    ("value-cutoff", V::Number),
    ("similarity-cutoff", V::Millionths),
    ("output", V::Output),
    ("profile-summary-cutoff-hot", V::Millionths),
    ("profile-summary-hot-count", V::Number),
];

/// The options for ordering functions.
const ORDER: &[(&str, Values)] = &[("num-test-traces", V::Number), ("output", V::Output)];

/// Mistakes in options. One of them stands on one command line in sixteen.
const MISTAKES: &str = "-j= -jo -j2=3 -j=08 -j=4294967296 -num-threads=1.5 -o= -foo=1 -fail=3 -rx -xh -help=1 -version=1 ---sparse -= \
    -=x --== -unknown -spars --spars=1 --tex --tex=1 -Sparse --sparse=foo --sparse=tRUE -sparse=yes -text=1 -text= \
    -binary=true -instr=1 --sample=0 --failure-mode= --failure-mode=ANY -memprof-version=9 --correlate=x \
    --zero-counter-threshold=x --output-size-limit=-1 --color=2 --counts=2 --topn= --value-cutoff=99999999999 \
    --show-format=xml --memory=1 --num-test=1 --cs=x --similarity-cutoff=x --cz";

/// The shape of a command line: the subcommand, the options that choose the kind of profile, the other options, whether
/// the inputs are sample profiles, and the usual number of inputs.
type Shape = (
    &'static str,
    &'static [&'static str],
    &'static [(&'static str, Values)],
    bool,
    usize,
);

/// The shapes of command lines. Merges use one thread, because the result of a conflict between inputs depends on
/// LLVM's threads.
const SHAPES: [Shape; 7] = [
    ("merge", &["-j=1"], MERGE_INSTR, false, 2),
    ("merge", &["-sample"], MERGE_SAMPLE, true, 2),
    ("show", &[], SHOW_INSTR, false, 1),
    ("show", &["-sample"], SHOW_SAMPLE, true, 1),
    ("overlap", &[], OVERLAP, false, 2),
    ("overlap", &["-sample"], OVERLAP, true, 2),
    ("order", &[], ORDER, false, 1),
];

/// The profiles that the random command lines name as inputs.
pub struct Corpus {
    instr: Vec<Input>,
    sample: Vec<Input>,
}

impl Corpus {
    /// Collects the profiles: the inputs of LLVM's tests, if `llvm-suite` has fetched them, and the fixtures of this
    /// repository.
    pub fn collect() -> Result<Self> {
        let mut corpus = Corpus {
            instr: Vec::new(),
            sample: Vec::new(),
        };
        let suite = target_folder().join("llvm-suite/source/llvm/test/tools/llvm-profdata/Inputs");
        if !suite.exists() {
            println!("without the inputs of LLVM's tests: cargo xtask llvm-suite fetches them");
        }
        let fixtures = repo_root().join("tests/fixtures");
        let folders = ["raw", "indexed", "text", "sample"].map(|folder| fixtures.join(folder));
        for folder in [suite]
            .into_iter()
            .chain(folders)
            .filter(|folder| folder.exists())
        {
            let mut paths: Vec<PathBuf> = fs::read_dir(&folder)?
                .map(|entry| Ok(entry?.path()))
                .collect::<Result<_>>()?;
            paths.sort();
            for path in paths {
                corpus.add(&path)?;
            }
        }
        for (list, texts) in [
            (&mut corpus.instr, texts::INSTR),
            (&mut corpus.sample, texts::SAMPLE),
        ] {
            list.extend(texts.iter().map(|(name, text)| Input {
                name: (*name).to_owned(),
                bytes: text.as_bytes().to_vec(),
                origin: (*name).to_owned(),
            }));
        }
        if corpus.instr.is_empty() || corpus.sample.is_empty() {
            bail!("there are no profiles in {}", fixtures.display());
        }
        println!(
            "{} instrumentation profiles, {} sample profiles",
            corpus.instr.len(),
            corpus.sample.len()
        );
        Ok(corpus)
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        if !path.is_file() || path.metadata()?.len() > LARGEST {
            return Ok(());
        }
        let bytes = fs::read(path)?;
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let list = match detect(&bytes).family() {
            Some(Family::Instr) => &mut self.instr,
            Some(Family::Sample) => &mut self.sample,
            _ => return Ok(()),
        };
        list.push(Input {
            origin: name.clone(),
            name,
            bytes,
        });
        Ok(())
    }

    /// Makes a random command line.
    pub fn case(&self, rng: &mut Rng) -> Case {
        let (command, kind, options, is_sample, usual) = SHAPES[rng.below(SHAPES.len())];
        let mut case = Case {
            command,
            options: kind.iter().map(|option| (*option).to_owned()).collect(),
            inputs: Vec::new(),
        };
        let count = match rng.below(8) {
            0 => usual.saturating_sub(1),
            1 => usual + 1,
            _ => usual,
        };
        for number in 0..count {
            // One input in ten is of the wrong kind: a sample profile instead of an instrumentation profile, or the
            // reverse.
            let other = rng.below(10) == 0;
            case.inputs
                .push(self.input(rng, is_sample != other, number));
        }
        if rng.below(16) == 0 {
            let mistakes: Vec<&str> = MISTAKES.split_whitespace().collect();
            case.options.push(match rng.below(2) {
                0 => mistakes[rng.below(mistakes.len())].to_owned(),
                _ => misspelt(rng, options),
            });
        }
        for _ in 0..rng.below(5) {
            let (name, values) = options[rng.below(options.len())];
            let option = option(rng, name, values, &case.inputs);
            if !case.options.contains(&option) {
                case.options.push(option);
            }
        }
        case
    }

    /// Chooses a random input. One input in four is damaged.
    fn input(&self, rng: &mut Rng, is_sample: bool, number: usize) -> Input {
        let list = if is_sample { &self.sample } else { &self.instr };
        let mut input = list[rng.below(list.len())].clone();
        if rng.below(4) == 0 {
            let other = &list[rng.below(list.len())].bytes;
            mutate(&mut input.bytes, other, rng);
            input.origin.push_str(", damaged");
        }
        input.name = format!("in{number}");
        input
    }
}

/// Returns a name between those of two options. Which option is suggested for it, if both are equally near, depends on the
/// order of a hash table of LLVM.
fn misspelt(rng: &mut Rng, options: &[(&str, Values)]) -> String {
    let [one, two] = [0, 1].map(|_| options[rng.below(options.len())].0);
    let (kept, from) = (rng.below(one.len() + 1), rng.below(two.len() + 1));
    format!("--{}{}", &one[..kept], &two[from..])
}

/// Returns an option with a random value, after one dash or two.
fn option(rng: &mut Rng, name: &str, values: Values, inputs: &[Input]) -> String {
    let dashes = ["-", "--"][rng.below(2)];
    let value = match values {
        V::Flag => return format!("{dashes}{name}{}", ["", "", "", "=1", "=0"][rng.below(5)]),
        V::Number => [
            "0",
            "1",
            "2",
            "3",
            "10",
            "100",
            "1000",
            "100000",
            "18446744073709551615",
            "x",
        ][rng.below(10)]
        .to_owned(),
        V::Millionths => {
            ["1", "10000", "500000", "900000", "990000", "999999"][rng.below(6)].to_owned()
        }
        V::Cutoffs => {
            ["800000", "10000,500000,999999", "1,2", "1,,2", "", "x"][rng.below(6)].to_owned()
        }
        V::Word(words) => words[rng.below(words.len())].to_owned(),
        V::Output => ["out", "out", "-"][rng.below(3)].to_owned(),
        V::Function => function(rng, inputs),
    };
    format!("{dashes}{name}={value}")
}

/// Returns a word from an input that may be the name of a function, or a usual pattern.
fn function(rng: &mut Rng, inputs: &[Input]) -> String {
    let patterns = ["main", "foo", "^_Z", "a|b", "[a-m]", "("];
    let words: Vec<&[u8]> = inputs
        .iter()
        .flat_map(|input| {
            input
                .bytes
                .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        })
        .filter(|word| word.len() > 2 && !word[0].is_ascii_digit())
        .collect();
    if words.is_empty() || rng.below(3) == 0 {
        return patterns[rng.below(patterns.len())].to_owned();
    }
    String::from_utf8_lossy(words[rng.below(words.len())]).into_owned()
}
