//! Makes the probes for all blocks of a function together. Which register a probe may use and where it may stand depend
//! on the whole function.
use super::reach::{self, Piece};
use super::sequences::{Addressing, separator};
use super::{flow, registers, sequences};
use crate::asm::ObjectFormat;
use crate::asm::{Instruction, Kind, Module};
use crate::instrument::backend::{BlockProbes, Flow, Site};
use crate::instrument::body::{self, Body, Exclusives, Line, What, may_be_code, what};
use crate::instrument::functions::Function;
use profkit_abi::mip::record;
use rustc_hash::FxHashMap;

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
    let module = site.module;
    let bodies = body::bodies(module, site.function);
    let body = bodies
        .get(part)
        .ok_or("the list of the function's parts is too short")?;
    let addressing = Addressing::new(format, site.options);
    let free = free_everywhere(module, &bodies);
    let exclusive = body.has_store_exclusive(EXCLUSIVES);
    let mut probes = Vec::with_capacity(starts.len());
    for (number, &start) in starts.iter().enumerate() {
        let from = body
            .position(start)
            .ok_or("a block of the function lies outside of the function")?;
        let outside = if exclusive {
            body.outside_of_exclusive(from, EXCLUSIVES)?
        } else {
            from
        };
        let at = if outside == from {
            before_hints(body, from)
        } else {
            outside
        };
        let register = free.or_else(|| registers::dead_before(body.instructions(at)));
        let offset = site.options.entry_size() + number * record::BLOCK_SIZE;
        let statement = body.lines.get(at).map_or(start, |line| line.index);
        probes.push((
            statement,
            sequences::block(site.labels.record(), offset, addressing, register).inline,
        ));
    }
    let replaced = mend(site, body, &probes, format)?;
    Ok(BlockProbes { probes, replaced })
}

/// x16 or x17, if nothing of the function mentions it. Callers may keep values in all other registers.
fn free_everywhere(module: &Module<'_>, bodies: &[Body]) -> Option<u8> {
    let lines = || bodies.iter().flat_map(|body| &body.lines);
    let known = lines().all(|line| match &line.what {
        What::Other => false,
        What::Directive(name, _) => !may_be_code(name) || is_table_directive(name),
        _ => true,
    });
    if !known {
        return None;
    }
    let open = is_entered_or_left_midway(bodies);
    [16, 17].into_iter().find(|&number| {
        let own = lines().any(|line| match &line.what {
            What::Instruction(word, rest) => {
                registers::mentions(rest, number) || registers::mentions(word, number)
            }
            _ => false,
        });
        !(own || open && mentioned_in_file(module, number))
    })
}

/// All directives that write data count as tables, except `.inst`: only hand-written assembly encodes with others.
fn is_table_directive(name: &str) -> bool {
    name != ".inst"
        && name.starts_with('.')
        && !matches!(name, ".rept" | ".irp" | ".irpc" | ".include" | ".incbin")
}

fn mentioned_in_file(module: &Module<'_>, number: u8) -> bool {
    module
        .statements
        .iter()
        .any(|statement| match statement.kind {
            Kind::Instruction(instruction) => {
                registers::mentions(&String::from_utf8_lossy(instruction.operands), number)
            }
            Kind::Template => true,
            _ => false,
        })
}

/// Whether the function jumps to code outside of `bodies`, which may use a register that they do not mention.
fn is_entered_or_left_midway(bodies: &[Body]) -> bool {
    bodies.iter().flat_map(|body| &body.lines).any(|line| {
        let What::Instruction(word, rest) = &line.what else {
            return false;
        };
        let instruction = Instruction {
            mnemonic: word.as_bytes(),
            operands: rest.as_bytes(),
        };
        let (Flow::Jump(label) | Flow::Branch(label)) = flow::of(&instruction) else {
            return false;
        };
        let label = String::from_utf8_lossy(label);
        let is_inside = bodies
            .iter()
            .any(|body| body.labels.contains_key(label.as_ref()));
        let is_number = label.starts_with(|first: char| first.is_ascii_digit());
        !is_inside && !is_number && (registers::is_local(&label) || is_part(&label))
    })
}

/// Whether a symbol has the form of the names that compilers give to parts of a function.
fn is_part(name: &str) -> bool {
    name.contains(".cold") || name.contains(".__part.") || name.contains(".eh")
}

/// A linker optimisation hint refers to the instruction after its label, so the probe comes before such labels.
fn before_hints(body: &Body, from: usize) -> usize {
    let is_hint = |at: usize| matches!(body.lines.get(at), Some(Line { what: What::Label(name), .. }) if name.starts_with("Lloh"));
    let mut at = from;
    while at.checked_sub(1).is_some_and(is_hint) {
        at -= 1;
    }
    at
}

/// Finds the branches and table entries that must be replaced, because probes increase distances.
fn mend(
    site: &Site<'_, '_>,
    body: &Body,
    probes: &[(usize, String)],
    format: ObjectFormat,
) -> Result<Vec<(usize, String)>, String> {
    let mut inserted: FxHashMap<usize, u32> = FxHashMap::default();
    for (statement, text) in probes {
        let bytes = 4 * text.split(separator(format)).count();
        *inserted.entry(*statement).or_default() += u32::try_from(bytes).unwrap_or(u32::MAX);
    }
    let mut pieces = Vec::with_capacity(body.lines.len() + probes.len());
    let mut indices = Vec::with_capacity(pieces.capacity());
    for line in &body.lines {
        if let Some(&bytes) = inserted.get(&line.index) {
            pieces.push(Piece::Inserted(bytes));
            indices.push(line.index);
        }
        pieces.push(match &line.what {
            What::Label(name) => Piece::Label(name),
            What::Instruction(word, rest) | What::Directive(word, rest) => {
                Piece::Statement { word, rest }
            }
            What::Other => {
                return Err(
                    "the function holds a macro or a repetition, whose size is unknown".to_owned(),
                );
            }
        });
        indices.push(line.index);
    }
    let texts = table_lines(site.module, site.function);
    let tables = reach::tables(texts.iter().map(|(index, what)| {
        let piece = match what {
            What::Label(name) => Piece::Label(name),
            What::Instruction(word, rest) | What::Directive(word, rest) => {
                Piece::Statement { word, rest }
            }
            What::Other => Piece::Statement { word: "", rest: "" },
        };
        (*index, piece)
    }));
    let fit = reach::fit(&pieces, &tables).map_err(|(piece, reason)| {
        let line = indices
            .get(piece)
            .and_then(|&index| site.module.statements.get(index))
            .map_or(0, |statement| statement.line);
        format!("the added instructions would make the function too large: line {line}: {reason}")
    })?;
    let separator = separator(format);
    let mut replaced: Vec<(usize, String)> = fit
        .pieces
        .into_iter()
        .filter_map(|(piece, text)| Some((*indices.get(piece)?, text)))
        .chain(fit.lines)
        .map(|(index, text)| (index, text.trim().replace("\n\t", separator)))
        .collect();
    replaced.sort();
    Ok(replaced)
}

fn table_lines(module: &Module<'_>, function: &Function<'_>) -> Vec<(usize, What)> {
    let mut lines = Vec::new();
    for (index, statement) in module.statements.iter().enumerate().skip(function.label) {
        // The jump tables of a function are within it or after it, before the code of the next function.
        if index >= function.end
            && statement.section == function.section
            && matches!(statement.kind, Kind::Instruction(_))
        {
            break;
        }
        if matches!(statement.kind, Kind::Label(_) | Kind::Directive(_)) {
            lines.push((index, what(module, statement)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use crate::instrument::{Options, Target, instrument};

    /// Returns the text of a function with block coverage, or the reason why it has none.
    fn instrumented(target: Target, text: &str) -> String {
        let options = Options {
            blocks: true,
            all_blocks: true,
            ..Options::default()
        };
        let made = instrument(text.as_bytes(), "a.s", Some(target), &options).unwrap();
        if let Some(skipped) = made.skipped.first() {
            return skipped.reason.to_string();
        }
        let text = String::from_utf8(made.text.into_owned()).unwrap();
        let own = text.split("\t.section").next().unwrap();
        own.replace("profkit_mip_", "")
            .replace(".Lb0_", "B")
            .trim()
            .to_owned()
    }

    fn elf(body: &str) -> String {
        instrumented(
            Target::Aarch64Elf,
            &format!(".type f,%function\nf:\n{body}\n.size f,.-f\n"),
        )
    }

    #[test]
    fn registers_of_blocks() {
        // A register that is never mentioned, one that is dead at the block, and no free register.
        insta::assert_snapshot!(elf("cbz x0, .L1\nmov x0, #1\n.L1:\nret"), @r"
        .type f,%function
        f: .Lf0:
        adrp x16, .Lr0; strb wzr, [x16, :lo12:.Lr0]; cbz x0, .L1
        B0: adrp x16, .Lr0+1; strb wzr, [x16, :lo12:.Lr0+1]; mov x0, #1
        .L1:
        B1: adrp x16, .Lr0+2; strb wzr, [x16, :lo12:.Lr0+2]; ret
        .Le0: .size f,.-f
        ");
        insta::assert_snapshot!(elf("mov x16, x17\ncbz x0, .L1\nstr x16, [x1]\n.L1:\nldr x9, [x16, x17]\nret"), @r"
        .type f,%function
        f: .Lf0:
        adrp x16, .Lr0; strb wzr, [x16, :lo12:.Lr0]; mov x16, x17
        cbz x0, .L1
        B0: adrp x9, .Lr0+1; strb wzr, [x9, :lo12:.Lr0+1]; str x16, [x1]
        .L1:
        B1: adrp x9, .Lr0+2; strb wzr, [x9, :lo12:.Lr0+2]; ldr x9, [x16, x17]
        ret
        .Le0: .size f,.-f
        ");
        insta::assert_snapshot!(elf("mov x16, x17\n.L1:\nsubs x16, x16, x17\nb.ne .L1\nret"), @r"
        .type f,%function
        f: .Lf0:
        adrp x16, .Lr0; strb wzr, [x16, :lo12:.Lr0]; mov x16, x17
        .L1:
        B0: str x16, [sp, #-16]!; adrp x16, .Lr0+1; strb wzr, [x16, :lo12:.Lr0+1]; ldr x16, [sp], #16; subs x16, x16, x17
        b.ne .L1
        B1: adrp x16, .Lr0+2; strb wzr, [x16, :lo12:.Lr0+2]; ret
        .Le0: .size f,.-f
        ");
    }

    #[test]
    fn parts_may_use_what_the_function_does_not_name() {
        let cold = "cbz x0, f.cold\nmov x0, #1\nret\n.size f,.-f\n.section .text.unlikely,\"ax\"\n.type g,%function\ng:\nmov x16, #1\nret";
        insta::assert_snapshot!(elf(cold), @r#"
        .type f,%function
        f: .Lf0:
        adrp x16, .Lr0; strb wzr, [x16, :lo12:.Lr0]; cbz x0, f.cold
        B0: adrp x17, .Lr0+1; strb wzr, [x17, :lo12:.Lr0+1]; mov x0, #1
        ret
        .Le0: .size f,.-f
        .section .text.unlikely,"ax"
        .type g,%function
        g: .Lf1:
        adrp x16, .Lr1; strb wzr, [x16, :lo12:.Lr1]; mov x16, #1
        ret; .Le1:
        .size f,.-f
        "#);
    }

    #[test]
    fn no_store_comes_between_exclusives() {
        insta::assert_snapshot!(elf(".L1:\nldaxr w8, [x0]\ncmp w8, w1\nb.ne .L2\nstlxr w9, w2, [x0]\ncbnz w9, .L1\n.L2:\nclrex\nret"), @r"
        .type f,%function
        f: .Lf0:
        adrp x16, .Lr0; strb wzr, [x16, :lo12:.Lr0]; .L1:
        ldaxr w8, [x0]
        cmp w8, w1
        b.ne .L2
        stlxr w9, w2, [x0]
        B0: adrp x16, .Lr0+1; strb wzr, [x16, :lo12:.Lr0+1]; cbnz w9, .L1
        .L2:
        B1: adrp x16, .Lr0+2; strb wzr, [x16, :lo12:.Lr0+2]; clrex
        ret
        .Le0: .size f,.-f
        ");
        insta::assert_snapshot!(elf(".L1:\nldaxr w8, [x0]\ncmp w8, w1\nb.ne .L2\nadd w2, w2, #1\nb .L3\n.L2:\nret\n.L3:\nstlxr w9, w2, [x0]\ncbnz w9, .L1\nret"), @"has no block coverage: a block of the function lies between a load-exclusive and its store-exclusive, where no other store is allowed");
    }

    #[test]
    fn optimisation_hints_of_mach_o_keep_their_instructions() {
        let text = "_f:\n.cfi_startproc\ncbz x0, LBB0_2\nLloh0:\nadrp x8, _g@PAGE\nLloh1:\nldr w0, [x8, _g@PAGEOFF]\nret\nLBB0_2:\nstr x16, [x17]\nblr x3\nret\n.loh AdrpLdr Lloh0, Lloh1\n.cfi_endproc\n";
        insta::assert_snapshot!(instrumented(Target::Aarch64MachO, text), @r"
        _f: Lf0:
        .cfi_startproc
        adrp x16, l_r0@PAGE%% strb wzr, [x16, l_r0@PAGEOFF]%% cbz x0, LBB0_2
        Lb0_0: adrp x8, l_r0@PAGE+1%% strb wzr, [x8, l_r0@PAGEOFF+1]%% Lloh0:
        adrp x8, _g@PAGE
        Lloh1:
        ldr w0, [x8, _g@PAGEOFF]
        ret
        LBB0_2:
        Lb0_1: str x16, [sp, #-144]!%% adrp x16, l_r0@PAGE+2%% strb wzr, [x16, l_r0@PAGEOFF+2]%% ldr x16, [sp], #144%% str x16, [x17]
        blr x3
        ret%% Le0:
        .loh AdrpLdr Lloh0, Lloh1
        .cfi_endproc
        ");
    }

    #[test]
    fn what_grows_too_much_has_no_block_probes() {
        let far = "adr x8, .L2\ncbz x0, .L1\n.L1:\n.space 1048576\n.L2:\nret";
        insta::assert_snapshot!(elf(far), @"has no block coverage: the added instructions would make the function too large: line 3: `adr x8, .L2` would not reach .L2 after the change");
        let short = "tbz w0, #3, .L1\nnop\n.space 32756\n.L1:\nret";
        insta::assert_snapshot!(elf(short), @r"
        .type f,%function
        f: .Lf0:
        adrp x16, .Lr0; strb wzr, [x16, :lo12:.Lr0]; tbnz	w0, #3, . + 8; b	.L1
        B0: adrp x16, .Lr0+1; strb wzr, [x16, :lo12:.Lr0+1]; nop
        .space 32756
        .L1:
        B1: adrp x16, .Lr0+2; strb wzr, [x16, :lo12:.Lr0+2]; ret
        .Le0: .size f,.-f
        ");
    }
}
