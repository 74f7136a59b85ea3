//! Generates sample profiles as text that every LLVM release reads. The profiles have functions in common, inlined
//! calls, call targets, contexts and probes.
use crate::Rng;
use std::fmt::Write as _;

/// The shape of a generated sample profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleShape {
    /// The profile has source lines. Inlined calls are nested in the functions into which they were inlined.
    Nested,
    /// The profile has pseudo probes instead of lines, with checksums and attributes. Inlined calls are nested.
    Probes,
    /// The profile has source lines and calling contexts. A function occurs once for each chain of callers.
    Context,
    /// The profile has pseudo probes instead of lines, and calling contexts.
    ContextProbes,
}

impl SampleShape {
    /// All shapes of generated sample profiles.
    pub const ALL: [Self; 4] = [
        Self::Nested,
        Self::Probes,
        Self::Context,
        Self::ContextProbes,
    ];

    fn has_probes(self) -> bool {
        matches!(self, Self::Probes | Self::ContextProbes)
    }

    fn has_contexts(self) -> bool {
        matches!(self, Self::Context | Self::ContextProbes)
    }
}

/// Options for generating a sample profile.
#[derive(Clone, Copy, Debug)]
pub struct SampleOptions {
    /// The number of functions in the profile.
    pub functions: usize,
    /// The number of names from which the functions are chosen. Profiles with the same number have some functions in
    /// common.
    pub pool: usize,
    /// The largest number of lines of a function.
    pub lines: usize,
    /// The shape of the profile.
    pub shape: SampleShape,
    /// Whether all generated profiles are runs of one program. If true, the lines, inlined calls, call targets and
    /// callers of a function are the same in each profile; only the counts and the set of functions differ. If false,
    /// every profile is generated independently.
    pub one_program: bool,
}

/// The two random number generators for a function.
struct Dice<'r> {
    /// The generator for locations and names. With `one_program` it is the same for a function in every profile.
    program: Rng,
    /// The generator for counts.
    run: &'r mut Rng,
}

/// Returns the name of the function with this index.
pub fn sample_name(index: usize) -> String {
    const WORDS: [&str; 8] = [
        "parser", "reader", "visit", "table", "merge", "encode", "hash", "queue",
    ];
    let word = WORDS[index % 8];
    let own = format!("{word}_{index}");
    format!("_ZN4prof{}{word}{}{own}Ev", word.len(), own.len())
}

/// Returns a generated profile as text. The same options and seed give the same text.
pub fn sample_text(options: &SampleOptions, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut text = String::with_capacity(options.functions * 160);
    let pool = options.pool.max(options.functions).max(1);
    // The names are chosen in equal steps from a random start. The step and the number of names have no common divisor,
    // so all chosen indexes are different.
    let start = rng.below(pool);
    let mut step = rng.below(pool) | 1;
    while gcd(step, pool) != 1 {
        step += 2;
    }
    for number in 0..options.functions {
        let function = (start + number * step) % pool;
        write_function(&mut text, &mut rng, options, function, pool);
    }
    text
}

fn gcd(one: usize, two: usize) -> usize {
    if two == 0 { one } else { gcd(two, one % two) }
}

/// The text of a function's lines, and the sum of their counts.
struct Body {
    text: String,
    total: usize,
}

fn write_function(
    text: &mut String,
    rng: &mut Rng,
    options: &SampleOptions,
    function: usize,
    pool: usize,
) {
    let program = if options.one_program {
        function as u64
    } else {
        // The seed is random, so that the function differs between profiles.
        rng.below(1 << 31) as u64
    };
    let rng = &mut Dice {
        program: Rng::new(program),
        run: rng,
    };
    let hot = if rng.run.below(10) == 0 { 20_000 } else { 200 };
    let body = body(rng, options, function, pool, hot, 1);
    let mut head = sample_name(function);
    if options.shape.has_contexts() {
        let mut frames = Vec::new();
        for depth in 0..rng.program.below(4) {
            let caller = (function * 7 + depth * 13 + rng.program.below(3)) % pool;
            let line = depth + 1 + rng.program.below(4);
            let site = location(&mut rng.program, options, line);
            frames.push(format!("{}:{site}", sample_name(caller)));
        }
        frames.push(head);
        head = format!("[{}]", frames.join(" @ "));
    }
    let _ = writeln!(text, "{head}:{}:{}", body.total, rng.run.below(hot));
    text.push_str(&body.text);
}

fn location(rng: &mut Rng, options: &SampleOptions, line: usize) -> String {
    match rng.below(8) {
        0 if !options.shape.has_probes() => format!("{line}.{}", 1 + rng.below(5)),
        _ => line.to_string(),
    }
}

fn body(
    rng: &mut Dice<'_>,
    options: &SampleOptions,
    function: usize,
    pool: usize,
    hot: usize,
    depth: usize,
) -> Body {
    let mut body = Body {
        text: String::new(),
        total: 0,
    };
    let indent = " ".repeat(depth);
    let mut line = 0;
    for _ in 0..1 + rng.program.below(options.lines.max(1)) {
        line += 1 + rng.program.below(4);
        let count = rng.run.below(hot);
        body.total += count;
        let place = location(&mut rng.program, options, line);
        let _ = write!(body.text, "{indent}{place}: {count}");
        if rng.program.below(6) == 0 {
            for target in 0..1 + rng.program.below(3) {
                let callee = sample_name((function * 3 + target * 5 + 1) % pool);
                let _ = write!(body.text, " {callee}:{}", 1 + rng.run.below(count + 1));
            }
        }
        body.text.push('\n');
    }
    if !options.shape.has_contexts() && depth < 4 {
        for site in 0..rng.program.below(3) {
            line += 1 + rng.program.below(3);
            let callee = (function * 11 + site * 17 + depth) % pool;
            let place = location(&mut rng.program, options, line);
            let inner = self::body(rng, options, callee, pool, hot, depth + 1);
            let _ = writeln!(
                body.text,
                "{indent}{place}: {}:{}",
                sample_name(callee),
                inner.total
            );
            body.text.push_str(&inner.text);
            body.total += inner.total;
        }
    }
    if options.shape.has_probes() {
        // The checksum of a function is the same in every profile. Different checksums would mean different builds of
        // the function.
        let checksum = (function as u64 + 1).wrapping_mul(0x0001_0001_9e37);
        let _ = writeln!(body.text, "{indent}!CFGChecksum: {checksum}");
        if options.shape.has_contexts() {
            let _ = writeln!(body.text, "{indent}!Attributes: {}", function % 4);
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_there_once_and_the_seed_decides() {
        let options = SampleOptions {
            functions: 40,
            pool: 100,
            lines: 5,
            shape: SampleShape::Nested,
            one_program: false,
        };
        let text = sample_text(&options, 7);
        let mut heads: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with(' '))
            .filter_map(|line| line.split(':').next())
            .collect();
        heads.sort_unstable();
        heads.dedup();
        assert_eq!(heads.len(), 40);
        assert_eq!(text, sample_text(&options, 7));
        assert_ne!(text, sample_text(&options, 8));
    }
    #[test]
    fn runs_of_one_program_have_its_places_and_names() {
        // Every function is in each profile, in an order that differs between profiles.
        let options = SampleOptions {
            functions: 40,
            pool: 40,
            lines: 5,
            shape: SampleShape::Probes,
            one_program: true,
        };
        let places = |seed| {
            let text = sample_text(&options, seed);
            let mut functions: Vec<String> = Vec::new();
            for line in text.lines() {
                // Removes the counts. In the text, they follow the names.
                let line = match line.split_once(':') {
                    Some((name, _)) if !line.starts_with(' ') => format!("{name}:"),
                    _ => line
                        .split(' ')
                        .filter(|word| word.parse::<u64>().is_err())
                        .map(|word| word.rsplit_once(':').map_or(word, |(name, _)| name))
                        .collect::<Vec<_>>()
                        .join(" "),
                };
                match functions.last_mut() {
                    Some(function) if line.starts_with(' ') => function.push_str(&line),
                    _ => functions.push(line),
                }
            }
            functions
        };
        let heads = |functions: &[String]| {
            let name = |function: &String| function.split(':').next().unwrap().to_owned();
            functions.iter().map(name).collect::<Vec<_>>()
        };
        let (mut one, mut two) = (places(1), places(2));
        assert_ne!(heads(&one), heads(&two));
        one.sort();
        two.sort();
        assert_eq!(one, two);
        assert_ne!(sample_text(&options, 1), sample_text(&options, 2));
    }
}
