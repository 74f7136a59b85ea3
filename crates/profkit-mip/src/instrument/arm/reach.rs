//! Finds the statements that must be replaced when a function becomes longer. Many instructions of 32-bit Arm have a
//! limited reach, and assemblers extend only some of them.
//!
//! All positions are upper bounds: a T32 instruction counts as four bytes unless it surely has two, and an alignment
//! as its maximum. So an instruction may be replaced although it would just have reached its target.
//!
//! | instruction | reach in bytes | replacement |
//! |---|---|---|
//! | `cbz`, `cbnz` (T32) | 126 | the opposite branch over a `b.w` |
//! | `tbb` | 510 | `tbh`, with a table of half-words |
//! | `ldr` of a literal, `adr` | 4095; A32 `adr` 1020 | the address by `movw`, `movt` and pc |
//! | `ldrh`, `ldrsb`, `ldrsh`, `ldrd` of a literal | A32 255; T32 4095, `ldrd` 1020 | the same |
//! | `vldr` of a literal | 1020 | the same in a register that is saved |
//! | `tbh`, conditional branches (T32) | 128 KiB, 1 MiB | none |
use super::mnemonic::{Mnemonic, condition, without_width};
use super::registers::{self, is_it};
use super::sequences::{Code, Coder};
use crate::asm::ArmSet;
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, Debug)]
pub(super) enum Piece<'text> {
    Label(&'text str),
    Statement { word: &'text str, rest: &'text str },
    Inserted(u32),
}

type Failure = (usize, String);

/// How many bytes longer a replacement is, at most: a literal load.
const LONGER: u32 = 16;
/// A replaced instruction is longer and may put others out of reach. After so many rounds, all are replaced.
const ROUNDS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    CompareAndBranch,
    Table(u8),
    Literal,
    VectorLiteral,
    Address,
    /// No replacement.
    Fixed,
}

struct Reach<'text> {
    kind: Kind,
    bytes: u32,
    target: &'text str,
}

/// Returns the pieces to replace and their new text. `label` is the beginning of labels that nothing else defines.
pub(super) fn fit(
    pieces: &[Piece<'_>],
    coder: Coder,
    label: &str,
) -> Result<Vec<(usize, String)>, Failure> {
    let labels: HashMap<&str, usize> = pieces
        .iter()
        .enumerate()
        .filter_map(|(index, piece)| match piece {
            Piece::Label(name) => Some((*name, index)),
            _ => None,
        })
        .collect();
    let mut long: HashSet<usize> = HashSet::new();
    for round in 0.. {
        let positions = positions(pieces, &long, coder)?;
        let before = long.len();
        for (index, piece) in pieces.iter().enumerate() {
            let Piece::Statement { word, rest } = piece else {
                continue;
            };
            let Some(reach) = reach_of(word, rest, coder) else {
                continue;
            };
            if long.contains(&index) {
                continue;
            }
            let farthest = match reach.kind {
                Kind::Table(_) => table_after(pieces, index)
                    .iter()
                    .filter_map(|(_, entry)| labels.get(target_of_entry(entry)))
                    .map(|&target| distance(&positions, index, target))
                    .max(),
                _ => labels.get(reach.target).and_then(|&target| {
                    is_changed_between(pieces, &long, index, target)
                        .then(|| distance(&positions, index, target))
                }),
            };
            if farthest.is_none_or(|farthest| farthest <= reach.bytes) {
                continue;
            }
            if reach.kind == Kind::Fixed || reach.kind == Kind::Table(2) {
                return Err((
                    index,
                    format!("`{word} {rest}` would not reach its target after the change"),
                ));
            }
            long.insert(index);
        }
        if long.len() == before || round == ROUNDS {
            break;
        }
    }
    let mut fit = Vec::new();
    let mut all: Vec<usize> = long.into_iter().collect();
    all.sort_unstable();
    for index in all {
        replace(pieces, index, coder, label, &mut fit)?;
    }
    // A branch that the user's compiler fixed to two bytes may have to become longer.
    for (index, piece) in pieces.iter().enumerate() {
        if let Piece::Statement { word, rest } = piece
            && let Some(plain) = word.strip_suffix(".n")
            && matches!(
                Mnemonic::parse(word),
                Some(Mnemonic {
                    base: "b" | "ldr" | "adr",
                    ..
                })
            )
            && !rest.contains('[')
            && !fit.iter().any(|(known, _)| *known == index)
        {
            fit.push((index, format!("{plain} {rest}")));
        }
    }
    fit.sort();
    Ok(fit)
}

/// Without inserted code between them, two places keep their distance, but for alignment.
fn is_changed_between(
    pieces: &[Piece<'_>],
    long: &HashSet<usize>,
    one: usize,
    other: usize,
) -> bool {
    let (first, last) = (one.min(other), one.max(other));
    pieces
        .iter()
        .enumerate()
        .take(last)
        .skip(first + 1)
        .any(|(index, piece)| match piece {
            Piece::Inserted(_) => true,
            Piece::Statement { word, .. } => {
                long.contains(&index) || matches!(*word, ".align" | ".p2align" | ".balign")
            }
            Piece::Label(_) => false,
        })
}

/// Upper bounds for the positions of all pieces in bytes.
fn positions(
    pieces: &[Piece<'_>],
    long: &HashSet<usize>,
    coder: Coder,
) -> Result<Vec<u32>, Failure> {
    let mut at = 0_u32;
    let mut positions = Vec::with_capacity(pieces.len() + 1);
    for (index, piece) in pieces.iter().enumerate() {
        positions.push(at);
        let size = match piece {
            Piece::Label(_) => 0,
            Piece::Inserted(bytes) => *bytes,
            Piece::Statement { word, rest } => {
                let size = size(word, rest, coder)
                    .ok_or_else(|| (index, format!("the size of `{word} {rest}` is not known")))?;
                match long.contains(&index) {
                    // A table of half-words has twice the size.
                    true if is_table(word) => {
                        let entries = u32::try_from(table_after(pieces, index).len());
                        size + entries.unwrap_or(u32::MAX)
                    }
                    true => size + LONGER,
                    false => size,
                }
            }
        };
        at = at.saturating_add(size);
    }
    positions.push(at);
    Ok(positions)
}

fn is_table(word: &str) -> bool {
    word == "tbb"
}

fn distance(positions: &[u32], one: usize, other: usize) -> u32 {
    let at = |index: usize| positions.get(index).copied().unwrap_or_default();
    at(one).abs_diff(at(other))
}

/// Returns the largest possible size of a statement in bytes; `None` if it is unknown.
fn size(word: &str, rest: &str, coder: Coder) -> Option<u32> {
    let Some(directive) = word.strip_prefix('.') else {
        return Some(instruction_size(word, rest, coder));
    };
    let count = u32::try_from(rest.split(',').count()).ok()?;
    let number = |index: usize| -> Option<u32> { rest.split(',').nth(index)?.trim().parse().ok() };
    match directive {
        "p2align" | "align" => match number(2) {
            Some(most) => Some(most),
            None => match number(0) {
                Some(power) => 1_u32.checked_shl(power),
                None if rest.trim().is_empty() => Some(4),
                None => None,
            },
        },
        "balign" => number(0),
        "byte" | "1byte" | "inst.n" => Some(count * if directive == "byte" { 1 } else { 2 }),
        "hword" | "2byte" | "short" | "half" => Some(count * 2),
        "word" | "long" | "4byte" | "int" | "inst" | "inst.w" | "float" | "single" => {
            Some(count * 4)
        }
        "quad" | "8byte" | "double" => Some(count * 8),
        "space" | "skip" | "zero" => number(0),
        "rept" | "irp" | "irpc" | "include" | "incbin" | "fill" | "org" | "ascii" | "asciz"
        | "string" | "ltorg" | "pool" | "macro" => None,
        _ => Some(0),
    }
}

fn instruction_size(word: &str, rest: &str, coder: Coder) -> u32 {
    if coder.set == ArmSet::A32 {
        // `adrl` is assembled as two instructions.
        return if word.starts_with("adrl") { 8 } else { 4 };
    }
    let is_low = |text: &str| registers::number(text.trim()).is_some_and(|number| number < 8);
    let parts: Vec<&str> = rest.split(',').collect();
    let short = word.ends_with(".n")
        || is_it(word)
        || matches!(word, "bx" | "cbz" | "cbnz" | "nop")
        || word == "blx" && registers::number(rest.trim()).is_some()
        || word == "mov"
            && parts.len() == 2
            && parts
                .iter()
                .all(|part| registers::number(part.trim()).is_some())
        || matches!(word, "movs" | "cmp")
            && parts.len() == 2
            && parts.first().is_some_and(|part| is_low(part))
            && small_immediate(parts.get(1).copied().unwrap_or_default());
    if short { 2 } else { 4 }
}

fn small_immediate(text: &str) -> bool {
    text.trim()
        .strip_prefix('#')
        .and_then(|number| number.parse::<u8>().ok())
        .is_some()
}

/// How far a statement reaches. `None` if there is no limit that a function could exceed.
fn reach_of<'text>(word: &'text str, rest: &'text str, coder: Coder) -> Option<Reach<'text>> {
    let thumb = coder.set == ArmSet::T32;
    let made = |kind, bytes: u32, target: &'text str| {
        let (target, offset) = symbol(target);
        Some(Reach {
            kind,
            bytes: bytes.saturating_sub(offset),
            target,
        })
    };
    let last = rest.rsplit(',').next().unwrap_or_default();
    if word.starts_with("vldr") {
        return if rest.contains('[') {
            None
        } else {
            made(Kind::VectorLiteral, 1020 - 4, last)
        };
    }
    let parsed = Mnemonic::parse(word)?;
    match parsed.base {
        "cbz" | "cbnz" => made(Kind::CompareAndBranch, 126, last),
        "tbb" => made(Kind::Table(1), 510, ""),
        "tbh" => made(Kind::Table(2), 2 * 65535, ""),
        "b" if parsed.conditional && thumb => made(Kind::Fixed, (1 << 20) - 4, last),
        "adr" => made(Kind::Address, if thumb { 4095 - 4 } else { 1020 - 8 }, last),
        "ldr" | "ldrb" | "pld" if !rest.contains('[') => made(
            if parsed.base == "pld" {
                Kind::Fixed
            } else {
                Kind::Literal
            },
            4095 - 8,
            last,
        ),
        "ldrh" | "ldrsb" | "ldrsh" if !rest.contains('[') => {
            made(Kind::Literal, if thumb { 4095 - 4 } else { 255 - 8 }, last)
        }
        "ldrd" if !rest.contains('[') => {
            made(Kind::Literal, if thumb { 1020 - 4 } else { 255 - 8 }, last)
        }
        _ => None,
    }
}

/// The label and the offset of `label` or `label+4`.
fn symbol(target: &str) -> (&str, u32) {
    match target.split_once(['+', '-']) {
        Some((label, offset)) => (label.trim(), offset.trim().parse().unwrap_or(u32::MAX)),
        None => (target.trim(), 0),
    }
}

/// The lines of the table after an instruction, each with its entry.
fn table_after<'text>(pieces: &[Piece<'text>], from: usize) -> Vec<(usize, &'text str)> {
    let mut table = Vec::new();
    for (index, piece) in pieces.iter().enumerate().skip(from + 1) {
        match piece {
            Piece::Label(_)
            | Piece::Statement {
                word: ".data_region",
                ..
            } => {}
            Piece::Statement { word, rest }
                if matches!(*word, ".byte" | ".1byte" | ".short" | ".hword" | ".2byte") =>
            {
                for entry in rest.split(',') {
                    table.push((index, entry.trim()));
                }
            }
            Piece::Statement { .. } | Piece::Inserted(_) => break,
        }
    }
    table
}

/// A in `(A-B)/2`.
fn target_of_entry(entry: &str) -> &str {
    entry
        .strip_prefix('(')
        .and_then(|inner| inner.split('-').next())
        .unwrap_or_default()
        .trim()
}

fn replace(
    pieces: &[Piece<'_>],
    index: usize,
    coder: Coder,
    label: &str,
    fit: &mut Vec<(usize, String)>,
) -> Result<(), Failure> {
    let Some(Piece::Statement { word, rest }) = pieces.get(index) else {
        return Ok(());
    };
    let Some(reach) = reach_of(word, rest, coder) else {
        return Ok(());
    };
    let here = format!("{label}{index}");
    let cannot = || {
        (
            index,
            format!("`{word} {rest}` would not reach its target after the change"),
        )
    };
    let condition = condition(word);
    // In T32, a condition needs an IT block, which has no room for more instructions.
    if !condition.is_empty() && coder.set == ArmSet::T32 {
        return Err(cannot());
    }
    let (first, target) = rest.rsplit_once(',').unwrap_or(("", rest));
    let (first, target) = (first.trim(), target.trim());
    match reach.kind {
        Kind::CompareAndBranch => {
            let opposite = if *word == "cbz" { "cbnz" } else { "cbz" };
            fit.push((
                index,
                format!("{opposite} {first}, {here}; b.w {target}; {here}:"),
            ));
        }
        Kind::Table(_) => {
            let inner = rest
                .trim()
                .strip_prefix('[')
                .and_then(|inner| inner.strip_suffix(']'))
                .ok_or_else(cannot)?;
            fit.push((index, format!("tbh [{inner}, lsl #1]")));
            if let Some(Piece::Statement {
                word: ".data_region",
                ..
            }) = pieces.get(index + 2)
            {
                fit.push((index + 2, ".data_region jt16".to_owned()));
            }
            let mut done = HashSet::new();
            for (line, _) in table_after(pieces, index) {
                if done.insert(line)
                    && let Some(Piece::Statement { rest, .. }) = pieces.get(line)
                {
                    fit.push((line, format!(".short {rest}")));
                }
            }
        }
        Kind::Literal | Kind::Address => {
            let register = first.split(',').next().unwrap_or_default().trim();
            let number = registers::number(register)
                .filter(|number| !matches!(number, 13 | 15))
                .ok_or_else(cannot)?;
            let mut code = Code::default();
            coder.address_if(condition, number, target, &here, &mut code);
            let load = match reach.kind {
                Kind::Address => String::new(),
                _ => format!("; {} {first}, [{register}]", without_width(word)),
            };
            fit.push((index, format!("{}{load}", code.text())));
        }
        Kind::VectorLiteral => {
            let mut code = Code::default();
            coder.address(0, target, &here, &mut code);
            fit.push((
                index,
                format!(
                    "push {{r0}}; {}; {word} {first}, [r0]; pop {{r0}}",
                    code.text()
                ),
            ));
        }
        Kind::Fixed => return Err(cannot()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::ObjectFormat;

    fn fitted(set: ArmSet, text: &str) -> Result<Vec<(usize, String)>, Failure> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let pieces: Vec<Piece<'_>> = lines
            .map(
                |line| match (line.strip_suffix(':'), line.strip_prefix('+')) {
                    (Some(label), _) => Piece::Label(label),
                    (None, Some(bytes)) => Piece::Inserted(bytes.parse().unwrap()),
                    (None, None) => {
                        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
                        Piece::Statement { word, rest }
                    }
                },
            )
            .collect();
        let coder = Coder {
            set,
            unified: true,
            format: ObjectFormat::Elf,
        };
        fit(&pieces, coder, ".Lx")
    }

    fn texts(set: ArmSet, text: &str) -> Vec<String> {
        let fit = fitted(set, text).unwrap();
        fit.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn short_branches() {
        use ArmSet::T32;
        let short = "cbz r0, .L1\n+126\n.L1:\nbx lr";
        assert_eq!(texts(T32, &short.replace("126", "124")), [""; 0]);
        assert_eq!(
            texts(T32, short),
            ["cbnz r0, .Lx0; b.w .L1; .Lx0:".to_owned()]
        );
        // Nothing is inserted between them.
        assert_eq!(
            texts(T32, &format!("+400\n{}", short.replace("+126", "bl f"))),
            [""; 0]
        );
        assert_eq!(texts(T32, "beq.n .L1\n+400\n.L1:\nbx lr"), ["beq .L1"]);
        insta::assert_snapshot!(
            fitted(T32, "bne .L1\n+1048576\n.L1:\nbx lr").unwrap_err().1,
            @"`bne .L1` would not reach its target after the change"
        );
    }

    #[test]
    fn tables_of_bytes() {
        let text = "tbb [pc, r0]\n.L4:\n.byte (.L1-.L4)/2\n.byte (.L2-.L4)/2\n.p2align 1\n.L1:\nbx lr\n+600\n.L2:\nbx lr";
        assert_eq!(
            texts(ArmSet::T32, text),
            [
                "tbh [pc, r0, lsl #1]",
                ".short (.L1-.L4)/2",
                ".short (.L2-.L4)/2"
            ]
        );
        assert_eq!(texts(ArmSet::T32, &text.replace("+600", "+400")), [""; 0]);
        let mach_o = text.replace(".L4:\n", ".L4:\n.data_region jt8\n");
        assert_eq!(texts(ArmSet::T32, &mach_o)[1], ".data_region jt16");
        insta::assert_snapshot!(
            fitted(ArmSet::T32, &text.replace("tbb", "tbh").replace(".byte", ".short").replace("+600", "+131072")).unwrap_err().1,
            @"`tbh [pc, r0]` would not reach its target after the change"
        );
    }

    #[test]
    fn literals() {
        let text = "ldrne r0, .L1+4\nldrd r2, r3, .L1\nvldr.64 d7, .L1\nadr r1, .L1\n+4080\n.align 2\n.L1:\n.word 1";
        assert_eq!(
            texts(ArmSet::A32, text),
            [
                "movwne r0, #:lower16:(.L1+4-(.Lx0+8)); movtne r0, #:upper16:(.L1+4-(.Lx0+8)); .Lx0: addne r0, pc, r0; ldrne r0, [r0]",
                "movw r2, #:lower16:(.L1-(.Lx1+8)); movt r2, #:upper16:(.L1-(.Lx1+8)); .Lx1: add r2, pc, r2; ldrd r2, r3, [r2]",
                "push {r0}; movw r0, #:lower16:(.L1-(.Lx2+8)); movt r0, #:upper16:(.L1-(.Lx2+8)); .Lx2: add r0, pc, r0; vldr.64 d7, [r0]; pop {r0}",
                "movw r1, #:lower16:(.L1-(.Lx3+8)); movt r1, #:upper16:(.L1-(.Lx3+8)); .Lx3: add r1, pc, r1",
            ]
        );
        assert_eq!(texts(ArmSet::A32, &text.replace("+4080", "+200")), [""; 0]);
        insta::assert_snapshot!(
            fitted(ArmSet::T32, text).unwrap_err().1,
            @"`ldrne r0, .L1+4` would not reach its target after the change"
        );
        insta::assert_snapshot!(
            fitted(ArmSet::A32, ".rept 7\nldr r0, .L1").unwrap_err().1,
            @"the size of `.rept 7` is not known"
        );
    }
}
