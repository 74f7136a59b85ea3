//! Makes the probes for all blocks of a function together.
use super::reach::{self, Piece};
use super::registers::{self, Registers};
use super::sequences::{Coder, Pair};
use super::{OLD_SYNTAX, coder, flow, liveness};
use crate::asm::{ArmSet, Instruction, ObjectFormat, words};
use crate::instrument::backend::{BlockProbes, Flow, Site};
use crate::instrument::body::{self, Body, Exclusives, Line, What, may_be_code};
use crate::instrument::functions::is_data;
use crate::instrument::landing::added;
use profkit_abi::mip::record;
use rustc_hash::{FxHashMap, FxHashSet};

const EXCLUSIVES: Exclusives = Exclusives {
    flow: flow::of,
    is_load: flow::is_load_exclusive,
    is_store: flow::is_store_exclusive,
    clear: "clrex",
};

/// The probes of the blocks at `starts`. In the record, their bytes follow those of the entry.
pub(super) fn probes(
    site: &Site<'_, '_>,
    part: usize,
    starts: &[usize],
    format: ObjectFormat,
) -> Result<BlockProbes, String> {
    let bodies = body::bodies(site.module, site.function);
    let body = bodies
        .get(part)
        .ok_or("the list of the function's parts is too short")?;
    let Some(&first) = starts.first() else {
        return Ok(BlockProbes::default());
    };
    let coder = coder(site, first, format)?;
    if coder.set == ArmSet::T32 && !coder.unified {
        return Err(OLD_SYNTAX.to_owned());
    }
    let anchors = anchors(body);
    check(site, body, &anchors)?;
    let dead = liveness::dead(body, liveness::Facts::new(&bodies));
    let pads = coder.set == ArmSet::T32 && !bodies.iter().all(aligns_its_data);
    let exclusive = body.has_store_exclusive(EXCLUSIVES);
    let mut probes = Vec::with_capacity(starts.len());
    let mut inserted: FxHashMap<usize, u32> = FxHashMap::default();
    for (number, &start) in starts.iter().enumerate() {
        let from = body
            .position(start)
            .ok_or("a block of the function lies outside of the function")?;
        let outside = if exclusive {
            body.outside_of_exclusive(from, EXCLUSIVES)?
        } else {
            from
        };
        let at = before_anchors(body, outside, &anchors)?;
        let offset = site.options.entry_size() + number * record::BLOCK_SIZE;
        let place = format!("{}+{offset}", site.labels.record());
        let here = format!("{}_{number}", site.labels.other(&format!("q{part}_")));
        let pair = Pair::choose(dead.get(at).copied().unwrap_or(Registers::NONE), coder.set);
        let mut code = coder.store(pair, &place, &here);
        if pads {
            code = code.padded();
        }
        let statement = body.lines.get(at).map_or(start, |line| line.index);
        *inserted.entry(statement).or_default() += code.bytes;
        probes.push((statement, code.text()));
    }
    let replaced = mend(site, body, &inserted, coder, part)?;
    Ok(BlockProbes { probes, replaced })
}

/// The labels from which data or `movw` measure a distance: each stands directly before the instruction that it names.
fn anchors(body: &Body) -> FxHashSet<String> {
    let mut anchors = FxHashSet::default();
    for line in &body.lines {
        let text = match &line.what {
            What::Directive(name, arguments) if is_data(name.as_bytes()) => arguments,
            What::Instruction(_, operands) if operands.contains('(') => operands,
            _ => continue,
        };
        let added: FxHashSet<&[u8]> = added(text.as_bytes()).into_iter().collect();
        for word in words(text.as_bytes()).filter(|word| !added.contains(word)) {
            anchors.insert(String::from_utf8_lossy(word).into_owned());
        }
    }
    anchors
}

/// The labels at the place of the instruction at `at`, each with its line, the nearest first.
fn labels_at(body: &Body, at: usize) -> impl Iterator<Item = (usize, &str)> {
    body.lines
        .get(..at)
        .unwrap_or_default()
        .iter()
        .enumerate()
        .rev()
        .take_while(|(_, line)| match &line.what {
            What::Label(_) => true,
            What::Directive(name, _) => !is_data(name.as_bytes()),
            What::Instruction(..) | What::Other => false,
        })
        .filter_map(|(place, line)| match &line.what {
            What::Label(name) => Some((place, name.as_str())),
            _ => None,
        })
}

/// A label from which a distance is measured must stay beside its instruction, so the probe comes before such labels.
fn before_anchors(body: &Body, from: usize, anchors: &FxHashSet<String>) -> Result<usize, String> {
    let labels: Vec<(usize, &str)> = labels_at(body, from).collect();
    let Some(last) = labels.iter().rposition(|(_, name)| anchors.contains(*name)) else {
        return Ok(from);
    };
    let between = labels.get(..=last).unwrap_or_default();
    let jumped_to = between
        .iter()
        .find(|(_, name)| !anchors.contains(*name) && is_jumped_to(body, name));
    match (jumped_to, labels.get(last)) {
        (Some((_, name)), _) => Err(format!(
            "the label {name} stands between an instruction and the label from which data count"
        )),
        (None, Some((place, _))) => Ok(*place),
        (None, None) => Ok(from),
    }
}

fn is_jumped_to(body: &Body, label: &str) -> bool {
    body.lines.iter().any(|line| match &line.what {
        What::Instruction(_, rest) => words(rest.as_bytes()).any(|word| word == label.as_bytes()),
        What::Directive(name, rest)
            if may_be_code(name) || name.starts_with(".byte") || name.starts_with(".short") =>
        {
            added(rest.as_bytes()).contains(&label.as_bytes())
        }
        _ => false,
    })
}

/// What makes it impossible to insert code between the instructions of a function.
fn check(site: &Site<'_, '_>, body: &Body, anchors: &FxHashSet<String>) -> Result<(), String> {
    for (at, line) in body.lines.iter().enumerate() {
        let What::Instruction(word, rest) = &line.what else {
            if matches!(line.what, What::Other) {
                return Err(
                    "the function holds a macro or a repetition, whose size is unknown".to_owned(),
                );
            }
            continue;
        };
        let instruction = Instruction {
            mnemonic: word.as_bytes(),
            operands: rest.as_bytes(),
        };
        let number = site
            .module
            .statements
            .get(line.index)
            .map_or(0, |statement| statement.line);
        let has_label = || labels_at(body, at).any(|(_, name)| anchors.contains(name));
        if reads_pc(word, rest) && !flow::counts_from_itself(&instruction) && !has_label() {
            return Err(format!(
                "line {number} reads the program counter, and no label before it tells what counts from it"
            ));
        }
        if words(rest.as_bytes()).any(|name| name == b".") {
            return Err(format!("line {number} counts from the location counter"));
        }
        if rest.contains('=') {
            return Err(format!(
                "line {number} has a literal that the assembler places, which may get out of reach"
            ));
        }
        if word.starts_with("mov") && flow::of(&instruction) == Flow::Indirect {
            let after = body.lines.get(at + 1..).unwrap_or_default();
            let jumps = after
                .iter()
                .filter_map(|line| match &line.what {
                    What::Instruction(word, _) => Some(word == "b" || word == "b.w"),
                    What::Label(_) => None,
                    What::Directive(name, _) => is_data(name.as_bytes()).then_some(false),
                    What::Other => Some(false),
                })
                .take_while(|is_jump| *is_jump)
                .count();
            if jumps > 1 {
                return Err(format!("line {number} jumps into a table of branches"));
            }
        }
    }
    Ok(())
}

/// Whether an instruction reads the program counter as a value. Jumps through a table at pc are not meant.
fn reads_pc(word: &str, rest: &str) -> bool {
    let Some(parsed) = super::mnemonic::Mnemonic::parse(word) else {
        return registers::named(rest).contains(Registers::one(15));
    };
    // pc is the target of a load, in a list of `pop`, or of a computed jump.
    let sources = match parsed.base {
        "pop" | "ldm" | "ldmda" | "ldmia" | "ldmfd" | "ldmdb" | "ldmea" | "ldmib" => return false,
        "push" | "str" | "cmp" | "stm" => rest,
        _ => rest.split_once(',').map_or("", |(_, rest)| rest),
    };
    let two = parsed.base == "add" && rest.split(',').count() == 2;
    // The call of processors before ARMv5 saves the address after the jump that follows.
    if parsed.base == "mov" && rest.trim_start().to_ascii_lowercase().starts_with("lr") {
        return false;
    }
    registers::named(sources).contains(Registers::one(15))
        || two && registers::named(rest).contains(Registers::one(15))
}

/// Whether an alignment stands before the words that follow code. Then inserted code of any size keeps them aligned.
pub(super) fn aligns_its_data(body: &Body) -> bool {
    let mut aligned = false;
    body.lines.iter().all(|line| {
        match &line.what {
            What::Instruction(..) | What::Other => aligned = false,
            What::Directive(name, arguments) => match name.as_str() {
                ".align" | ".p2align" => aligned |= !matches!(arguments.trim(), "0" | "1"),
                ".balign" => aligned = true,
                ".word" | ".long" | ".int" | ".4byte" | ".quad" | ".8byte" => return aligned,
                _ => {}
            },
            What::Label(_) => {}
        }
        true
    })
}

/// Finds the statements that must be replaced, because probes increase distances.
fn mend(
    site: &Site<'_, '_>,
    body: &Body,
    inserted: &FxHashMap<usize, u32>,
    coder: Coder,
    part: usize,
) -> Result<Vec<(usize, String)>, String> {
    let mut pieces = Vec::with_capacity(body.lines.len() + inserted.len());
    let mut indices = Vec::with_capacity(pieces.capacity());
    for Line { index, what } in &body.lines {
        if let Some(&bytes) = inserted.get(index) {
            pieces.push(Piece::Inserted(bytes));
            indices.push(*index);
        }
        pieces.push(match what {
            What::Label(name) => Piece::Label(name),
            What::Instruction(word, rest) | What::Directive(word, rest) => {
                Piece::Statement { word, rest }
            }
            What::Other => Piece::Statement { word: "", rest: "" },
        });
        indices.push(*index);
    }
    let label = site.labels.other(&format!("x{part}_"));
    let fit = reach::fit(&pieces, coder, &label).map_err(|(piece, reason)| {
        let line = indices
            .get(piece)
            .and_then(|&index| site.module.statements.get(index))
            .map_or(0, |statement| statement.line);
        format!("the added instructions would make the function too large: line {line}: {reason}")
    })?;
    Ok(fit
        .into_iter()
        .filter_map(|(piece, text)| Some((*indices.get(piece)?, text)))
        .collect())
}
