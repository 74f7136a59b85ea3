//! Classifies x86-64 instructions by their names (Intel SDM volume 2; GNU as manual, "i386-Mnemonics").
use crate::asm::{Instruction, words};
use crate::instrument::backend::Flow;

fn is_prefix(word: &[u8]) -> bool {
    matches!(
        word,
        b"lock"
            | b"rep"
            | b"repe"
            | b"repz"
            | b"repne"
            | b"repnz"
            | b"notrack"
            | b"bnd"
            | b"data16"
            | b"data32"
            | b"addr32"
            | b"addr16"
            | b"xacquire"
            | b"xrelease"
            | b"cs"
            | b"ds"
            | b"es"
            | b"fs"
            | b"gs"
            | b"ss"
    ) || word.starts_with(b"rex")
        || word.starts_with(b"{")
}

/// The mnemonic and operands without prefixes; the mnemonic is empty if there is nothing else.
fn plain<'a>(instruction: &Instruction<'a>) -> (&'a [u8], &'a [u8]) {
    let (mut mnemonic, mut operands) = (instruction.mnemonic, instruction.operands);
    while is_prefix(mnemonic) {
        let end = operands
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(operands.len());
        let (word, rest) = operands.split_at(end);
        (mnemonic, operands) = (word, rest.trim_ascii_start());
    }
    // A branch hint is written as a suffix of the mnemonic, as in `jne,pt`.
    let mnemonic = mnemonic
        .split(|&byte| byte == b',')
        .next()
        .unwrap_or_default();
    (mnemonic, operands)
}

pub(super) fn of<'a>(instruction: &Instruction<'a>) -> Flow<'a> {
    let (mnemonic, operands) = plain(instruction);
    match mnemonic {
        b"jmp" | b"jmpq" | b"jmpl" | b"jmpw" => match direct(operands) {
            Some(label) => Flow::Jump(label),
            None => Flow::Indirect,
        },
        b"ljmp" | b"ljmpq" | b"ljmpl" => Flow::Leave,
        b"call" | b"callq" | b"calll" | b"lcall" => Flow::Call,
        b"xbegin" => match direct(operands) {
            Some(label) => Flow::Branch(label),
            None => Flow::Next,
        },
        b"ret" | b"retq" | b"retl" | b"retw" | b"lret" | b"lretq" | b"lretl" | b"iret"
        | b"iretq" | b"iretd" | b"iretl" | b"sysret" | b"sysretq" | b"sysretl" | b"sysexit"
        | b"uiret" | b"ud0" | b"ud1" | b"ud1l" | b"ud1q" | b"ud1w" | b"ud2" | b"ud2a" | b"ud2b" => {
            Flow::Leave
        }
        _ if mnemonic.starts_with(b"j") || mnemonic.starts_with(b"loop") => {
            match direct(operands) {
                Some(label) => Flow::Branch(label),
                None => Flow::Next,
            }
        }
        _ => Flow::Next,
    }
}

pub(super) fn is_prefix_alone(instruction: &Instruction<'_>) -> bool {
    is_prefix(instruction.mnemonic) && plain(instruction).0.is_empty()
}

pub(super) fn is_short_branch(instruction: &Instruction<'_>) -> bool {
    let (mnemonic, _) = plain(instruction);
    mnemonic.starts_with(b"loop") || matches!(mnemonic, b"jcxz" | b"jecxz" | b"jrcxz")
}

/// The target of a direct branch; `None` for an indirect one, and `.` for a sum, which is never a label.
fn direct(operands: &[u8]) -> Option<&[u8]> {
    if operands.first() == Some(&b'*') || operands.contains(&b'[') {
        return None;
    }
    let mut names = words(operands);
    let name = names.next()?;
    match names.next() {
        // In Intel syntax, an indirect branch looks like `jmp qword ptr table`.
        Some(second) if second.eq_ignore_ascii_case(b"ptr") => None,
        Some(_) => Some(b"."),
        None if is_register(name) || operands.first() == Some(&b'%') => None,
        None => Some(name),
    }
}

fn is_register(name: &[u8]) -> bool {
    matches!(
        name,
        b"rax" | b"rbx" | b"rcx" | b"rdx" | b"rsi" | b"rdi" | b"rbp" | b"rsp"
    ) || matches!(name, [b'r', digits @ ..]
        if !digits.is_empty() && digits.len() <= 2 && digits.iter().all(u8::is_ascii_digit))
}

pub(super) fn is_nop(instruction: &Instruction<'_>) -> bool {
    let (mnemonic, operands) = plain(instruction);
    match mnemonic {
        b"nop" | b"nopw" | b"nopl" | b"nopq" => true,
        b"xchg" | b"xchgw" => {
            let operands: Vec<u8> = operands
                .iter()
                .filter(|byte| !matches!(byte, b'%' | b' ' | b'\t'))
                .copied()
                .collect();
            operands == b"ax,ax"
        }
        _ => false,
    }
}

pub(super) fn is_entry_hook(instruction: &Instruction<'_>) -> bool {
    let (mnemonic, operands) = plain(instruction);
    matches!(mnemonic, b"call" | b"callq") && words(operands).any(|word| word == b"__fentry__")
}

pub(super) fn is_frame_setup(first: &Instruction<'_>, second: &Instruction<'_>) -> bool {
    let squeezed = |operands: &[u8]| -> Vec<u8> {
        let kept = operands.iter().filter(|byte| !byte.is_ascii_whitespace());
        kept.copied().collect()
    };
    matches!(first.mnemonic, b"push" | b"pushq")
        && matches!(second.mnemonic, b"mov" | b"movq")
        && matches!(
            (
                squeezed(first.operands).as_slice(),
                squeezed(second.operands).as_slice()
            ),
            (b"%rbp", b"%rsp,%rbp") | (b"rbp", b"rbp,rsp")
        )
}
