//! The helper that samples a call into the table of call edges (`profkit_abi::mip::edge_table`), for 32-bit Arm.
use super::sequences::{Code, Coder};
use crate::instrument::helpers::{EdgeNames, UNCHECKED_DISTANCE};
use profkit_abi::mip::{edge_table as table, record};

/// The registers that the helper saves, and their size on the stack.
const SAVED: &str = "{r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, lr}";
const SAVED_SIZE: usize = 13 * 4;

/// Makes the statements of the helper, which is T32 code. Before the call, a stub has stored three words at the stack
/// pointer: the record, r12, and the return address of the function. The rules are those of the helper for x86-64.
pub(super) fn helper(names: &EdgeNames, slots: u32, exact: bool, coder: Coder) -> Code {
    let mut code = Code::default();
    let local = names.local;
    let lines = |code: &mut Code, lines: &[&str]| {
        for line in lines {
            code.add(*line, 4);
        }
    };
    // r0: the record. r1: the return address; bit 0 says that the caller is T32 code.
    code.add(format!("push {SAVED}"), 4);
    code.add(format!("ldr r0, [sp, #{SAVED_SIZE}]"), 4);
    code.add(format!("ldr r1, [sp, #{}]", SAVED_SIZE + 8), 4);
    code.add("bic r1, r1, #1", 4);
    // A record keeps its ordinal; two threads may make the first call.
    code.add(format!("ldr r2, [r0, #{}]", record::ORDINAL_OFFSET), 4);
    lines(&mut code, &["adds r2, r2, #1", "bne 3f"]);
    coder.address(
        3,
        &names.ordinal,
        &format!("{local}profkit_mip_o"),
        &mut code,
    );
    lines(
        &mut code,
        &[
            "1: ldrex r2, [r3]",
            "add r4, r2, #1",
            "strex r5, r4, [r3]",
            "cmp r5, #0",
            "bne 1b",
        ],
    );
    code.add(format!("add r3, r0, #{}", record::ORDINAL_OFFSET), 4);
    lines(
        &mut code,
        &[
            "2: ldrex r4, [r3]",
            "adds r4, r4, #1",
            "bne 3f",
            "strex r5, r2, [r3]",
            "cmp r5, #0",
            "bne 2b",
            "3:",
        ],
    );
    coder.address(3, &names.table, &format!("{local}profkit_mip_t"), &mut code);
    code.add(format!("add r4, r3, #{}", table::LOCK_OFFSET), 4);
    lines(
        &mut code,
        &[
            "mov r2, #1",
            "4: ldrex r5, [r4]",
            "strex r6, r2, [r4]",
            "cmp r6, #0",
            "bne 4b",
            "dmb ish",
            "cmp r5, #0",
            "bne.w 21f",
            "mov r5, #0",
        ],
    );
    code.add(format!("str r5, [r3, #{}]", table::WAITING_OFFSET), 4);
    // r2: how far the count is beyond the call that was to be sampled.
    lines(&mut code, &["ldr r2, [r0]", "cmp r2, #0", "blt.w 19f"]);
    // r4: the distance to the next sampled call, which is also the weight of this sample.
    let next = record::NEXT_SAMPLE_OFFSET;
    code.add(format!("ldr r4, [r0, #{next}]"), 4);
    code.add(format!("ldr r5, [r0, #{}]", next + 4), 4);
    lines(
        &mut code,
        &[
            "adds r4, r4, r2",
            "adc r5, r5, #0",
            "adds r4, r4, #2",
            "adc r5, r5, #0",
        ],
    );
    code.add(format!("lsr r4, r4, #{}", table::PERIOD_SHIFT), 4);
    code.add(
        format!("orr r4, r4, r5, lsl #{}", 32 - table::PERIOD_SHIFT),
        4,
    );
    code.add(format!("lsr r5, r5, #{}", table::PERIOD_SHIFT), 4);
    constant(6, table::PERIOD_MAX, &mut code);
    lines(
        &mut code,
        &[
            "cmp r5, #0",
            "bne 13f",
            "cmp r4, r6",
            "bls 14f",
            "13: mov r4, r6",
            "14: lsl r4, r4, #1",
            "add r4, r4, #1",
        ],
    );
    code.add(format!("ldr r5, [r3, #{}]", table::RANDOM_OFFSET), 4);
    constant(6, table::RANDOM_FACTOR, &mut code);
    code.add("mul r5, r5, r6", 4);
    constant(6, table::RANDOM_INCREMENT, &mut code);
    code.add("add r5, r5, r6", 4);
    code.add(format!("str r5, [r3, #{}]", table::RANDOM_OFFSET), 4);
    lines(
        &mut code,
        &[
            "umull r6, r7, r4, r5",
            "add r4, r7, r2",
            "add r4, r4, #1",
            "5: ldrex r2, [r0]",
            "sub r2, r2, r4",
            "strex r6, r2, [r0]",
            "cmp r6, #0",
            "bne 5b",
        ],
    );
    // r2 and r1: the lower and the upper half of the key. r3: the first slot. r6: the slot. r7: the end of the slots. r8:
    // the number of slots to look at. r9: the lightest slot among them.
    coder.address(5, &names.start, &format!("{local}profkit_mip_b"), &mut code);
    lines(&mut code, &["sub r2, r0, r5", "sub r1, r1, r5"]);
    let [low, high] = [table::HASH_FACTOR & 0xffff_ffff, table::HASH_FACTOR >> 32];
    constant(6, u32::try_from(low).unwrap_or_default(), &mut code);
    constant(7, u32::try_from(high).unwrap_or_default(), &mut code);
    lines(
        &mut code,
        &[
            "umull r8, r9, r2, r6",
            "mla r9, r2, r7, r9",
            "mla r9, r1, r6, r9",
        ],
    );
    constant(6, slots, &mut code);
    code.add("umull r8, r10, r9, r6", 4);
    let head = table::HEAD_ENTRIES * table::SLOT_SIZE;
    code.add(format!("add r3, r3, #{head}"), 4);
    code.add("add r7, r3, r6, lsl #4", 4);
    code.add("add r6, r3, r10, lsl #4", 4);
    code.add(format!("mov r8, #{}", table::PROBES), 4);
    let (weight, weight_high) = (table::WEIGHT_OFFSET, table::WEIGHT_OFFSET + 4);
    let pair = |low: &str, high: &str, base: &str, verb: &str, code: &mut Code| {
        code.add(format!("{verb} {low}, [{base}, #{weight}]"), 4);
        code.add(format!("{verb} {high}, [{base}, #{weight_high}]"), 4);
    };
    lines(
        &mut code,
        &[
            "mov r9, r6",
            "6: ldr r10, [r6]",
            "ldr r11, [r6, #4]",
            "cmp r10, r2",
            "bne 7f",
            "cmp r11, r1",
            "beq 9f",
            "7: orrs r10, r10, r11",
            "beq 10f",
        ],
    );
    pair("r10", "r11", "r6", "ldr", &mut code);
    pair("r5", "lr", "r9", "ldr", &mut code);
    lines(
        &mut code,
        &[
            "subs r10, r10, r5",
            "sbcs r11, r11, lr",
            "it lo",
            "movlo r9, r6",
        ],
    );
    code.add(format!("add r6, r6, #{}", table::SLOT_SIZE), 4);
    lines(
        &mut code,
        &[
            "cmp r6, r7",
            "it eq",
            "moveq r6, r3",
            "subs r8, r8, #1",
            "bne 6b",
        ],
    );
    // No slot is free: the lighter of the sample and the lightest slot is lost.
    pair("r5", "lr", "r9", "ldr", &mut code);
    lines(
        &mut code,
        &[
            "mov r10, r4",
            "mov r11, #0",
            "subs r6, r5, r4",
            "sbcs r6, lr, #0",
            "bhs 8f",
            "mov r10, r5",
            "mov r11, lr",
            "mov r6, #0",
            "str r6, [r9]",
            "str r6, [r9, #4]",
        ],
    );
    pair("r4", "r6", "r9", "str", &mut code);
    lines(
        &mut code,
        &[
            "str r2, [r9]",
            "str r1, [r9, #4]",
            "8: sub r9, r3, #16",
            "mvn r6, #0",
            "str r6, [r9]",
            "str r6, [r9, #4]",
        ],
    );
    pair("r5", "r6", "r9", "ldr", &mut code);
    lines(&mut code, &["adds r5, r5, r10", "adc r6, r6, r11"]);
    pair("r5", "r6", "r9", "str", &mut code);
    lines(&mut code, &["b 11f", "9:"]);
    pair("r10", "r11", "r6", "ldr", &mut code);
    lines(&mut code, &["adds r10, r10, r4", "adc r11, r11, #0"]);
    pair("r10", "r11", "r6", "str", &mut code);
    lines(&mut code, &["b 11f", "10: mov r10, #0"]);
    pair("r4", "r10", "r6", "str", &mut code);
    lines(&mut code, &["str r2, [r6]", "str r1, [r6, #4]"]);
    code.add(format!("11: sub r3, r3, #{head}"), 4);
    if !exact {
        code.add(format!("cmp r4, #{UNCHECKED_DISTANCE}"), 4);
        lines(
            &mut code,
            &["bls 12f", "ldr r10, [r0]", "cmp r10, #0", "bge 19f", "12:"],
        );
    }
    code.add(format!("ldr r10, [r0, #{next}]"), 4);
    code.add(format!("ldr r11, [r0, #{}]", next + 4), 4);
    lines(&mut code, &["adds r10, r10, r4", "adc r11, r11, #0"]);
    code.add(format!("str r10, [r0, #{next}]"), 4);
    code.add(format!("str r11, [r0, #{}]", next + 4), 4);
    lines(&mut code, &["19: dmb ish", "mov r10, #0"]);
    code.add(format!("str r10, [r3, #{}]", table::LOCK_OFFSET), 4);
    lines(&mut code, &["b 20f"]);
    code.add(format!("21: ldr r2, [r3, #{}]", table::WAITING_OFFSET), 4);
    code.add("add r2, r2, #1", 4);
    code.add(format!("str r2, [r3, #{}]", table::WAITING_OFFSET), 4);
    // The table is unlocked for a thread that no longer exists.
    code.add(format!("tst r2, #{}", table::WAITING_MAX), 4);
    lines(&mut code, &["bne 19b"]);
    code.add(format!("20: pop {SAVED}"), 4);
    code.add("bx lr", 2);
    code
}

fn constant(register: u8, value: u32, code: &mut Code) {
    code.add(format!("movw r{register}, #{}", value & 0xffff), 4);
    if value >> 16 != 0 {
        code.add(format!("movt r{register}, #{}", value >> 16), 4);
    }
}
