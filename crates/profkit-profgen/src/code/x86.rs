//! Instructions of x86.
use super::{Detail, Flow, Instruction};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind, Register};

/// Decodes what begins before `end`; `bytes` may reach beyond it. Bytes that are no instruction are skipped.
pub fn decode(bits: u32, bytes: &[u8], start: u64, end: u64) -> Box<[Instruction]> {
    let mut decoder = Decoder::with_ip(bits, bytes, start, DecoderOptions::NONE);
    let mut list = Vec::new();
    let mut instruction = iced_x86::Instruction::default();
    while decoder.can_decode() && decoder.ip() < end {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            // Try to decode an instruction at the next byte.
            let next = instruction.ip() + 1;
            let skipped = usize::try_from(next - start).unwrap_or(usize::MAX);
            if decoder.set_position(skipped).is_err() {
                break;
            }
            decoder.set_ip(next);
            continue;
        }
        list.push(Instruction {
            address: instruction.ip(),
            size: u8::try_from(instruction.len()).unwrap_or(u8::MAX),
            flow: flow(&instruction),
        });
    }
    list.into()
}

fn flow(instruction: &iced_x86::Instruction) -> Flow {
    match instruction.flow_control() {
        // `iced-x86` reports system calls as calls, but control continues after them.
        FlowControl::Call | FlowControl::IndirectCall
            if instruction.mnemonic() == Mnemonic::Call =>
        {
            Flow::Call
        }
        FlowControl::Return
            if !matches!(
                instruction.mnemonic(),
                Mnemonic::Sysexit | Mnemonic::Sysexitq | Mnemonic::Sysret | Mnemonic::Sysretq
            ) =>
        {
            Flow::Return
        }
        FlowControl::UnconditionalBranch => Flow::Jump,
        FlowControl::ConditionalBranch => Flow::Branch,
        FlowControl::IndirectBranch => Flow::IndirectJump,
        _ => Flow::Next,
    }
}

/// The target of a direct jump, branch or call. `bytes` are those of the instruction.
pub fn target(bits: u32, bytes: &[u8], address: u64) -> Option<u64> {
    let decoded = Decoder::with_ip(bits, bytes, address, DecoderOptions::NONE).decode();
    let is_direct = matches!(
        decoded.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    );
    is_direct.then(|| decoded.near_branch_target())
}

/// Decodes what begins before `end`, with the places that instructions name, for 64 bits.
pub fn details(bytes: &[u8], start: u64, end: u64) -> Vec<Detail> {
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    decode(64, bytes, start, end)
        .iter()
        .filter_map(|&instruction| {
            let skipped = usize::try_from(instruction.address.checked_sub(start)?).ok()?;
            decoder.set_position(skipped).ok()?;
            decoder.set_ip(instruction.address);
            let decoded = decoder.decode();
            let direct = matches!(instruction.flow, Flow::Jump | Flow::Branch)
                && decoded.op0_kind() == OpKind::NearBranch64;
            let is_address = decoded.mnemonic() == Mnemonic::Lea;
            let is_slot = instruction.flow == Flow::IndirectJump
                || decoded.mnemonic() == Mnemonic::Mov
                    && decoded.memory_base() == Register::None
                    && decoded.memory_index() != Register::None;
            let data = if decoded.is_ip_rel_memory_operand() {
                Some(decoded.ip_rel_memory_address())
            } else if is_slot && decoded.memory_base() == Register::None {
                Some(decoded.memory_displacement64()).filter(|&address| address != 0)
            } else {
                None
            };
            Some(Detail {
                instruction,
                target: direct.then(|| decoded.near_branch_target()),
                data: data.filter(|_| is_address || is_slot),
                is_absolute: is_slot,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_apart() {
        #[rustfmt::skip]
        let bytes = [
            0x55,                         // push rbp
            0xe8, 0, 0, 0, 0,             // call
            0xff, 0xd0,                   // call rax
            0x74, 0x00,                   // je
            0xeb, 0x00,                   // jmp
            0xff, 0xe0,                   // jmp rax
            0xe2, 0x00,                   // loop
            0x0f, 0x05,                   // syscall
            0xcc,                         // int3
            0x0f, 0x0b,                   // ud2
            0x06,                         // no instruction in 64 bits
            0xc3,                         // ret
            0x90,                         // nop, after the end
        ];
        let end = 0x1000 + bytes.len() as u64 - 1;
        let list = decode(64, &bytes, 0x1000, end);
        let found: Vec<_> = list.iter().map(|one| (one.size, one.flow)).collect();
        assert_eq!(
            found,
            [
                (1, Flow::Next),
                (5, Flow::Call),
                (2, Flow::Call),
                (2, Flow::Branch),
                (2, Flow::Jump),
                (2, Flow::IndirectJump),
                (2, Flow::Branch),
                (2, Flow::Next),
                (1, Flow::Next),
                (2, Flow::Next),
                (1, Flow::Return),
            ]
        );
    }
}
