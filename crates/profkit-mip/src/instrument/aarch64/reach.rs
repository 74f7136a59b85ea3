//! Finds the branches and jump tables that must be replaced when a function becomes longer. AArch64's short branches
//! and the compilers' narrow jump tables have a limited reach, and no assembler extends them.
//!
//! All positions are upper bounds, because the padding of an alignment directive is unknown and counts as its maximum.
//! So a branch may be replaced although it would just have reached its target. `tbz` and `tbnz` reach 32 KiB; `cbz`,
//! `cbnz` and `b.cond` reach 1 MiB. A branch that does not reach its target is replaced by the opposite branch, which
//! skips a `b` to the target. A jump table of bytes is replaced by a table of half-words, and the load from the table
//! is replaced too. If something cannot be replaced, the function gets no block coverage and the reason is reported.

use std::collections::{HashMap, HashSet};

use super::registers;

#[derive(Clone, Copy, Debug)]
pub(super) enum Piece<'text> {
    Label(&'text str),
    Statement { word: &'text str, rest: &'text str },
    Inserted(u32),
}

#[derive(Clone, Debug)]
pub(super) struct Table<'text> {
    pub(super) label: &'text str,
    pub(super) width: u8,
    /// gcc's entries are signed; clang measures from the lowest target, so its entries are not.
    pub(super) signed: bool,
    /// For each entry the index of its line, the target, and the label from which the distance is measured.
    pub(super) entries: Vec<(usize, &'text str, &'text str)>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fit {
    pub(super) pieces: Vec<(usize, String)>,
    pub(super) lines: Vec<(usize, String)>,
}

/// The reach of `tbz` and `tbnz` in bytes.
const TEST_REACH: u32 = 32 * 1024 - 4;
/// The reach in bytes of conditional branches, `cbz`, `cbnz`, `adr` and literal loads.
const CONDITIONAL_REACH: u32 = 1024 * 1024 - 4;
/// A replaced branch is longer and may put other targets out of reach. After so many rounds, all are replaced.
const ROUNDS: usize = 16;

pub(super) fn tables<'text>(
    pieces: impl Iterator<Item = (usize, Piece<'text>)>,
) -> Vec<Table<'text>> {
    let mut tables: Vec<Table<'text>> = Vec::new();
    let mut label = None;
    for (line, piece) in pieces {
        match piece {
            Piece::Label(name) => label = Some(name),
            Piece::Statement { word, rest } => {
                let width = match word {
                    ".byte" | ".1byte" => 1,
                    ".hword" | ".2byte" | ".short" | ".half" => 2,
                    _ => 0,
                };
                let entry = if width == 0 { None } else { entry(rest) };
                let (Some((to, from, signed)), Some(name)) = (entry, label) else {
                    // Alignment directives may stand between a label and the table that it names.
                    if !is_alignment(word) {
                        label = None;
                    }
                    continue;
                };
                match tables.last_mut() {
                    Some(table) if table.label == name && table.width == width => {
                        table.entries.push((line, to, from));
                    }
                    _ => tables.push(Table {
                        label: name,
                        width,
                        signed,
                        entries: vec![(line, to, from)],
                    }),
                }
            }
            Piece::Inserted(_) => {}
        }
    }
    tables
}

/// `(A-B)>>2` (unsigned, clang) or `(A - B) / 4` (signed, gcc). Returns A, B, and whether it is signed.
fn entry(text: &str) -> Option<(&str, &str, bool)> {
    let (difference, scale) = text.trim().strip_prefix('(')?.split_once(')')?;
    let scale: String = scale.split_whitespace().collect();
    let signed = match scale.as_str() {
        ">>2" => false,
        "/4" => true,
        _ => return None,
    };
    let (to, from) = difference.split_once('-')?;
    Some((to.trim(), from.trim(), signed))
}

fn is_alignment(word: &str) -> bool {
    matches!(word, ".align" | ".p2align" | ".balign")
}

pub(super) fn fit(pieces: &[Piece<'_>], tables: &[Table<'_>]) -> Result<Fit, (usize, String)> {
    let labels: HashMap<&str, usize> = pieces
        .iter()
        .enumerate()
        .filter_map(|(index, piece)| match piece {
            Piece::Label(name) => Some((*name, index)),
            _ => None,
        })
        .collect();
    let mut long: HashSet<usize> = HashSet::new();
    let mut positions = positions(pieces, &long)?;
    for round in 0.. {
        let before = long.len();
        for (index, piece) in pieces.iter().enumerate() {
            let Piece::Statement { word, rest } = piece else {
                continue;
            };
            let Some((reach, can_be_long)) = reach_of(word, rest) else {
                continue;
            };
            let target = rest.rsplit(',').next().unwrap_or_default().trim();
            let Some(&target_index) = labels.get(target) else {
                continue;
            };
            if distance(&positions, index, target_index) <= reach || long.contains(&index) {
                continue;
            }
            if !can_be_long {
                return Err((
                    index,
                    format!("`{word} {rest}` would not reach {target} after the change"),
                ));
            }
            long.insert(index);
        }
        if long.len() == before || round == ROUNDS {
            break;
        }
        positions = self::positions(pieces, &long)?;
    }
    let mut fit = Fit::default();
    for &index in &long {
        if let Some(Piece::Statement { word, rest }) = pieces.get(index) {
            fit.pieces.push((index, lengthened(word, rest)));
        }
    }
    for table in tables {
        let farthest = table
            .entries
            .iter()
            .filter_map(|(_, to, from)| {
                Some(distance(&positions, *labels.get(to)?, *labels.get(from)?))
            })
            .max();
        let Some(farthest) = farthest else { continue };
        let bits = u32::from(table.width) * 8 - u32::from(table.signed);
        if farthest / 4 < 1 << bits {
            continue;
        }
        if table.width != 1 || farthest / 4 >= 1 << (15 + u32::from(!table.signed)) {
            return Err((
                0,
                format!(
                    "entries of jump table {} would not reach their targets after the change",
                    table.label
                ),
            ));
        }
        widen(pieces, table, tables, &mut fit)?;
    }
    fit.pieces.sort();
    Ok(fit)
}

/// Upper bounds for the positions of all pieces in bytes, and the size of the function. The branches in `long` count
/// with their size after replacement.
fn positions(pieces: &[Piece<'_>], long: &HashSet<usize>) -> Result<Vec<u32>, (usize, String)> {
    let mut at = 0_u32;
    let mut positions = Vec::with_capacity(pieces.len() + 1);
    for (index, piece) in pieces.iter().enumerate() {
        positions.push(at);
        let size = match piece {
            Piece::Label(_) => 0,
            Piece::Inserted(bytes) => *bytes,
            Piece::Statement { word, rest } => {
                size(word, rest)
                    .ok_or_else(|| (index, format!("the size of `{word} {rest}` is not known")))?
                    + if long.contains(&index) { 4 } else { 0 }
            }
        };
        at = at.saturating_add(size);
    }
    positions.push(at);
    Ok(positions)
}

fn distance(positions: &[u32], one: usize, other: usize) -> u32 {
    let at = |index: usize| positions.get(index).copied().unwrap_or_default();
    at(one).abs_diff(at(other))
}

/// Returns the largest possible size of a statement in bytes; `None` if it is unknown.
fn size(word: &str, rest: &str) -> Option<u32> {
    let Some(directive) = word.strip_prefix('.') else {
        return Some(4);
    };
    let count = u32::try_from(rest.split(',').count()).ok()?;
    let number = |index: usize| -> Option<u32> { rest.split(',').nth(index)?.trim().parse().ok() };
    match directive {
        "p2align" | "align" => match number(2) {
            Some(most) => Some(most),
            None => 1_u32.checked_shl(number(0)?),
        },
        "balign" => number(0),
        "byte" | "1byte" => Some(count),
        "hword" | "2byte" | "short" | "half" => Some(count * 2),
        "word" | "long" | "4byte" | "int" | "inst" => Some(count * 4),
        "xword" | "quad" | "8byte" | "dword" => Some(count * 8),
        "space" | "skip" | "zero" => number(0),
        "rept" | "irp" | "irpc" | "include" | "incbin" | "fill" | "org" | "ascii" | "asciz"
        | "string" | "ltorg" | "pool" | "macro" => None,
        _ => Some(0),
    }
}

/// How far a statement reaches in bytes, and whether a longer one can replace it. `None`: no limit.
fn reach_of(word: &str, rest: &str) -> Option<(u32, bool)> {
    match word {
        "tbz" | "tbnz" => Some((TEST_REACH, true)),
        "cbz" | "cbnz" => Some((CONDITIONAL_REACH, true)),
        "adr" => Some((CONDITIONAL_REACH, false)),
        "ldr" | "ldrsw" if !rest.contains('[') => Some((CONDITIONAL_REACH, false)),
        _ => condition(word).map(|_| (CONDITIONAL_REACH, true)),
    }
}

/// Returns the condition of a conditional branch (`b.eq` or `beq`). `None` for other statements.
fn condition(word: &str) -> Option<&'static str> {
    let name = word.strip_prefix("b.").or_else(|| word.strip_prefix('b'))?;
    OPPOSITES
        .iter()
        .flatten()
        .find(|condition| **condition == name)
        .copied()
}

/// Pairs of opposite conditions.
const OPPOSITES: [[&str; 2]; 9] = [
    ["eq", "ne"],
    ["cs", "cc"],
    ["hs", "lo"],
    ["mi", "pl"],
    ["vs", "vc"],
    ["hi", "ls"],
    ["ge", "lt"],
    ["gt", "le"],
    ["any", "none"],
];

fn opposite(condition: &str) -> Option<&'static str> {
    OPPOSITES.iter().find_map(|[one, other]| {
        if *one == condition {
            Some(*other)
        } else if *other == condition {
            Some(*one)
        } else {
            None
        }
    })
}

fn lengthened(word: &str, rest: &str) -> String {
    let (tested, target) = rest.rsplit_once(',').unwrap_or(("", rest));
    let over = match word {
        "tbz" => "tbnz".to_owned(),
        "tbnz" => "tbz".to_owned(),
        "cbz" => "cbnz".to_owned(),
        "cbnz" => "cbz".to_owned(),
        _ => format!(
            "b.{}",
            condition(word).and_then(opposite).unwrap_or_default()
        ),
    };
    let tested = if tested.is_empty() {
        String::new()
    } else {
        format!("{}, ", tested.trim())
    };
    format!("\t{over}\t{tested}. + 8\n\tb\t{}", target.trim())
}

fn widen(
    pieces: &[Piece<'_>],
    table: &Table<'_>,
    tables: &[Table<'_>],
    fit: &mut Fit,
) -> Result<(), (usize, String)> {
    let unknown = |index: usize| {
        let label = table.label;
        (
            index,
            format!(
                "entries of jump table {label} would not reach their targets after the change, and its load was not found"
            ),
        )
    };
    let mut references: HashSet<usize> = (0..pieces.len())
        .filter(|&index| match pieces.get(index) {
            Some(Piece::Statement { rest, .. }) => names(rest, table.label),
            _ => false,
        })
        .collect();
    let first = references.iter().min().copied().unwrap_or_default();
    if references.is_empty() {
        return Err(unknown(0));
    }
    let mut additions: Vec<usize> = references.iter().copied().collect();
    additions.sort_unstable();
    for &index in &additions {
        let Some(Piece::Statement { word: "add", rest }) = pieces.get(index) else {
            continue;
        };
        let mut operands = rest.split(',').map(str::trim);
        let (Some(base), Some(page)) = (operands.next(), operands.next()) else {
            return Err(unknown(index));
        };
        // The nearest `adrp` set the register. Compilers may schedule other instructions in between.
        let Some(page_at) = (0..index).rev().find(|&at| match pieces.get(at) {
            Some(Piece::Statement { word: "adrp", rest }) => {
                rest.split(',').next().map(str::trim) == Some(page) && names(rest, table.label)
            }
            _ => false,
        }) else {
            return Err(unknown(index));
        };
        widen_load(pieces, index, base, tables, fit).ok_or_else(|| unknown(index))?;
        references.remove(&index);
        references.remove(&page_at);
    }
    if !references.is_empty() {
        return Err(unknown(first));
    }
    for (line, to, from) in &table.entries {
        let scale = if table.signed { "/4" } else { ">>2" };
        fit.lines
            .push((*line, format!("\t.hword\t({to}-{from}){scale}")));
    }
    Ok(())
}

/// Replaces the byte load from the table whose address is in `base` by a half-word load; `None` if there may be others.
fn widen_load(
    pieces: &[Piece<'_>],
    start: usize,
    base: &str,
    tables: &[Table<'_>],
    fit: &mut Fit,
) -> Option<()> {
    let base_number = registers::number(base)?;
    let mut loaded = None;
    for (index, piece) in pieces.iter().enumerate().skip(start + 1) {
        match piece {
            Piece::Label(name) => {
                if is_jumped_to(pieces, tables, name) {
                    return None;
                }
            }
            Piece::Inserted(_) => return None,
            Piece::Statement { word, rest } if word.starts_with('.') || rest.is_empty() => {
                if *word == "ret" {
                    return None;
                }
            }
            Piece::Statement { word: "ldrb", rest } if loaded.is_none() && rest.contains('[') => {
                let (value, address) = rest.split_once(',')?;
                let inner = address.trim().strip_prefix('[')?.strip_suffix(']')?;
                let mut parts = inner.split(',').map(str::trim);
                if registers::number(parts.next()?)? != base_number {
                    // A load from a different table may come first, if it does not change the register `base`.
                    if registers::number(value.trim()) == Some(base_number) {
                        return None;
                    }
                    continue;
                }
                let offset = parts.next()?;
                registers::number(offset)?;
                let extended = match parts.next() {
                    None => "lsl #1".to_owned(),
                    Some(extend @ ("uxtw" | "sxtw")) => format!("{extend} #1"),
                    Some(_) => return None,
                };
                let value = value.trim();
                fit.pieces.push((
                    index,
                    format!("\tldrh\t{value}, [{base}, {offset}, {extended}]"),
                ));
                loaded = Some(registers::number(value)?);
            }
            Piece::Statement { word: "add", rest }
                if loaded.is_some_and(|number| uses(rest, number)) =>
            {
                if rest.contains("sxtb") {
                    fit.pieces
                        .push((index, format!("\tadd\t{}", rest.replace("sxtb", "sxth"))));
                }
                return Some(());
            }
            Piece::Statement { word, rest } => {
                let effect = registers::effect(word, rest);
                if effect.next != registers::Next::Here {
                    return None;
                }
                let watched = loaded.unwrap_or(base_number);
                if effect.writes.contains(watched) || effect.reads.contains(watched) {
                    return None;
                }
            }
        }
    }
    None
}

/// The operand of the `add` may be extended or shifted.
fn uses(rest: &str, number: u8) -> bool {
    rest.split(',')
        .skip(2)
        .any(|operand| registers::number(operand.trim()) == Some(number))
}

fn is_jumped_to(pieces: &[Piece<'_>], tables: &[Table<'_>], label: &str) -> bool {
    let by_instruction = |piece: &Piece<'_>| matches!(piece, Piece::Statement { word, rest } if !word.starts_with('.') && names(rest, label));
    // An `adr` computes the label from which a table's distances are measured. This label need not be a jump target.
    let by_table = |table: &Table<'_>| table.entries.iter().any(|(_, to, _)| *to == label);
    pieces.iter().any(|piece| {
        by_instruction(piece) && !matches!(piece, Piece::Statement { word: "adr", .. })
    }) || tables.iter().any(by_table)
}

fn names(text: &str, symbol: &str) -> bool {
    text.match_indices(symbol).any(|(at, _)| {
        let is_part =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '$');
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text
            .get(at + symbol.len()..)
            .and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<Piece<'_>> {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(
                |line| match (line.strip_suffix(':'), line.strip_prefix('+')) {
                    (Some(label), _) => Piece::Label(label),
                    (None, Some(bytes)) => Piece::Inserted(bytes.parse().unwrap()),
                    (None, None) => {
                        let (word, rest) =
                            line.split_once(char::is_whitespace).unwrap_or((line, ""));
                        Piece::Statement {
                            word,
                            rest: rest.trim(),
                        }
                    }
                },
            )
            .collect()
    }

    fn fitted(text: &str, tables_text: &str) -> Result<Fit, (usize, String)> {
        let tables_pieces = pieces(tables_text);
        fit(
            &pieces(text),
            &tables(tables_pieces.into_iter().enumerate()),
        )
    }

    #[test]
    fn branches_that_would_not_reach_become_long() {
        let text = "tbz w0, #3, .L1\ncbz x1, .L1\nb.le .L1\nbcs .L1\n+32768\n.L1:\nret";
        let fit = fitted(text, "").unwrap();
        assert_eq!(
            fit.pieces,
            [(0, "\ttbnz\tw0, #3, . + 8\n\tb\t.L1".to_owned())]
        );
        let text = "tbnz w0, #3, .L1\ncbnz x1, .L1\nb.le .L1\nbcs .L1\n+1048576\n.L1:\nret";
        let fit = fitted(text, "").unwrap();
        let texts: Vec<&str> = fit.pieces.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "\ttbz\tw0, #3, . + 8\n\tb\t.L1",
                "\tcbz\tx1, . + 8\n\tb\t.L1",
                "\tb.gt\t. + 8\n\tb\t.L1",
                "\tb.cc\t. + 8\n\tb\t.L1",
            ]
        );
    }

    #[test]
    fn a_long_branch_makes_others_long() {
        // Four bytes below its reach: when the first branch becomes longer, it must be replaced too.
        let text = ".L0:\ntbz w0, #3, .L1\n+32756\n.p2align 2\ntbz w1, #4, .L0\n+8\n.L1:";
        assert_eq!(fitted(text, "").unwrap().pieces.len(), 2);
        let text = ".L0:\ntbz w0, #3, .L1\n+32744\ntbz w1, #4, .L0\n.L1:";
        assert_eq!(fitted(text, "").unwrap().pieces.len(), 0);
    }

    const CLANG: &str = "adrp x9, .LJTI1_0
        add x9, x9, :lo12:.LJTI1_0
        adr x10, .LBB1_2
        ldrb w11, [x9, x8]
        add x10, x10, x11, lsl #2
        br x10
        .LBB1_2:
        +8
        ret
        ";
    const CLANG_TABLE: &str = ".LJTI1_0:\n.byte (.LBB1_2-.LBB1_2)>>2\n.byte (.LBB1_3-.LBB1_2)>>2";

    #[test]
    fn a_table_of_clang_becomes_one_of_half_words() {
        let near = format!("{CLANG}+1000\n.LBB1_3:\nret");
        assert_eq!(fitted(&near, CLANG_TABLE).unwrap(), Fit::default());
        let far = format!("{CLANG}+1012\n.LBB1_3:\nret");
        let fit = fitted(&far, CLANG_TABLE).unwrap();
        assert_eq!(
            fit.pieces,
            [(3, "\tldrh\tw11, [x9, x8, lsl #1]".to_owned())]
        );
        assert_eq!(
            fit.lines,
            [
                (1, "\t.hword\t(.LBB1_2-.LBB1_2)>>2".to_owned()),
                (2, "\t.hword\t(.LBB1_3-.LBB1_2)>>2".to_owned())
            ]
        );
    }

    #[test]
    fn a_table_of_gcc_has_half_the_reach() {
        let text = "adrp x1, .L4
            add x1, x1, :lo12:.L4
            ldrb w1, [x1,w0,uxtw]
            adr x0, .Lrtx4
            add x1, x0, w1, sxtb #2
            br x1
            .Lrtx4:
            +8
            .L5:
            ret
            +500
            .L6:
            ret";
        let table = ".L4:\n.byte (.L5 - .Lrtx4) / 4\n.byte (.L6 - .Lrtx4) / 4";
        let fit = fitted(text, table).unwrap();
        assert_eq!(
            fit.pieces,
            [
                (2, "\tldrh\tw1, [x1, w0, uxtw #1]".to_owned()),
                (4, "\tadd\tx1,x0, w1, sxth #2".replace("x1,x0", "x1, x0"))
            ]
        );
        assert_eq!(fit.lines.first().unwrap().1, "\t.hword\t(.L5-.Lrtx4)/4");
    }

    #[test]
    fn what_cannot_be_mended_is_said() {
        let hoisted =
            CLANG.replace("adr x10", ".LBB1_9:\nadr x10") + "b .LBB1_9\n+1012\n.LBB1_3:\nret";
        insta::assert_snapshot!(fitted(&hoisted, CLANG_TABLE).unwrap_err().1, @"entries of jump table .LJTI1_0 would not reach their targets after the change, and its load was not found");
        let words = CLANG_TABLE.replace(".byte", ".hword");
        let far = format!("{CLANG}+300000\n.LBB1_3:\nret");
        insta::assert_snapshot!(fitted(&far, &words).unwrap_err().1, @"entries of jump table .LJTI1_0 would not reach their targets after the change");
        insta::assert_snapshot!(fitted("adr x0, .L1\n+1048576\n.L1:\nret", "").unwrap_err().1, @"`adr x0, .L1` would not reach .L1 after the change");
        insta::assert_snapshot!(fitted(".rept 7\n.L1:\nret", "").unwrap_err().1, @"the size of `.rept 7` is not known");
    }
}
