//! Classifies instructions by their effect on the flow of control. Decodes x86-64 with iced-x86, and A64 with bit
//! masks.
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind};

/// The instruction sets whose code can be walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86,
    /// AArch64.
    A64,
}

/// The code that can be executed after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next instruction.
    Next,
    /// The next instruction, or the one at this address.
    Conditional(u64),
    Jump(u64),
    IndirectJump,
    Call(u64),
    IndirectCall,
    Return,
    /// A call of the kernel.
    System,
    /// No instruction. The program ends here.
    Trap,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction {
    pub length: u64,
    pub flow: Flow,
    /// Whether the instruction only fills the space between functions.
    pub padding: bool,
}

/// Decodes the first instruction of `bytes`. `None` if there is no instruction.
pub(super) fn decode(machine: Machine, bytes: &[u8], address: u64) -> Option<Instruction> {
    match machine {
        Machine::X86 => decode_x86(bytes, address),
        Machine::A64 => {
            let word = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
            Some(Instruction {
                length: 4,
                flow: flow_a64(word, address),
                padding: word == 0xd503_201f || word == 0,
            })
        }
    }
}

fn decode_x86(bytes: &[u8], address: u64) -> Option<Instruction> {
    let bytes = bytes.get(..bytes.len().min(15))?;
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if instruction.is_invalid() {
        return None;
    }
    let near = || {
        let is_near = instruction.op0_kind() == OpKind::NearBranch64;
        is_near.then(|| instruction.near_branch_target())
    };
    let mnemonic = instruction.mnemonic();
    let flow = match instruction.flow_control() {
        FlowControl::ConditionalBranch => near().map_or(Flow::Trap, Flow::Conditional),
        FlowControl::UnconditionalBranch => near().map_or(Flow::Trap, Flow::Jump),
        FlowControl::Call if matches!(mnemonic, Mnemonic::Syscall | Mnemonic::Sysenter) => {
            Flow::System
        }
        FlowControl::Call => near().map_or(Flow::Trap, Flow::Call),
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::IndirectCall => Flow::IndirectCall,
        FlowControl::Return if mnemonic == Mnemonic::Ret => Flow::Return,
        FlowControl::Return | FlowControl::Interrupt | FlowControl::Exception => Flow::Trap,
        _ if mnemonic == Mnemonic::Hlt => Flow::Trap,
        _ => Flow::Next,
    };
    Some(Instruction {
        length: instruction.len() as u64,
        flow,
        padding: matches!(mnemonic, Mnemonic::Nop | Mnemonic::Int3),
    })
}

fn flow_a64(word: u32, address: u64) -> Flow {
    // Reads a signed field of `width` bits from bit `low` on. The field counts words of four bytes.
    let target = |low: u32, width: u32| {
        let field = (word >> low) << (32 - width);
        let words = i64::from(field.cast_signed() >> (32 - width));
        address.wrapping_add_signed(words * 4)
    };
    if word & 0xfc00_0000 == 0x9400_0000 {
        return Flow::Call(target(0, 26));
    }
    if word & 0xfc00_0000 == 0x1400_0000 {
        return Flow::Jump(target(0, 26));
    }
    if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 {
        return Flow::Conditional(target(5, 19));
    }
    if word & 0x7e00_0000 == 0x3600_0000 {
        return Flow::Conditional(target(5, 14));
    }
    if word & 0xfe00_0000 == 0xd600_0000 {
        return match word >> 21 & 0xf {
            0 | 8 => Flow::IndirectJump,
            1 | 9 => Flow::IndirectCall,
            2 => Flow::Return,
            _ => Flow::Trap,
        };
    }
    if word & 0xffe0_001f == 0xd400_0001 {
        return Flow::System;
    }
    // BRK, HLT, UDF.
    let traps = word & 0xffe0_0000 == 0xd420_0000 || word & 0xffe0_0000 == 0xd440_0000;
    if traps || word < 0x1_0000 {
        return Flow::Trap;
    }
    Flow::Next
}
