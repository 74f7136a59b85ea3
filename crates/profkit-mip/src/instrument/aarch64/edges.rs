//! The helper that samples a call into the table of call edges (`profkit_abi::mip::edge_table`), for AArch64.
use super::sequences::{Addressing, Place, constant};
use crate::instrument::helpers::{EdgeNames, UNCHECKED_DISTANCE};
use profkit_abi::mip::{edge_table as table, record};

/// Makes the statements of the helper. Before the call, a stub has stored the record and the return address of the
/// function at the stack pointer. The rules are those of the helper for x86-64.
pub(super) fn helper(
    names: &EdgeNames,
    slots: u32,
    exact: bool,
    addressing: Addressing,
) -> Vec<String> {
    let line = str::to_owned;
    let mut body: Vec<String> = [
        "stp x9, x10, [sp, #-64]!",
        "stp x11, x12, [sp, #16]",
        "stp x13, x14, [sp, #32]",
        "stp x15, x30, [sp, #48]",
        "ldr x9, [sp, #64]",
        // `xpaclri` (`hint #7`) removes the signature of `paciasp`, but only from x30. Other processors ignore it.
        "ldr x30, [sp, #72]",
        "hint #7",
        "mov x10, x30",
    ]
    .map(line)
    .to_vec();
    // A record keeps its ordinal; two threads may make the first call.
    body.extend([
        format!("ldr w11, [x9, #{}]", record::ORDINAL_OFFSET),
        line("cmn w11, #1"),
        line("b.ne 3f"),
    ]);
    body.extend(addressing.address("x16", &Place::new(names.ordinal.clone())));
    body.extend([
        line("1: ldxr w11, [x16]"),
        line("add w12, w11, #1"),
        line("stxr w17, w12, [x16]"),
        line("cbnz w17, 1b"),
        format!("add x16, x9, #{}", record::ORDINAL_OFFSET),
        line("2: ldxr w12, [x16]"),
        line("cmn w12, #1"),
        line("b.ne 3f"),
        line("stxr w17, w11, [x16]"),
        line("cbnz w17, 2b"),
        line("3:"),
    ]);
    body.extend(addressing.address("x13", &Place::new(names.table.clone())));
    // w11: how far the count is beyond the call that was to be sampled.
    body.extend([
        format!("add x16, x13, #{}", table::LOCK_OFFSET),
        line("mov w11, #1"),
        line("4: ldaxr w12, [x16]"),
        line("stxr w17, w11, [x16]"),
        line("cbnz w17, 4b"),
        line("cbnz w12, 21f"),
        format!("str wzr, [x13, #{}]", table::WAITING_OFFSET),
        line("ldr w11, [x9]"),
        line("tbnz w11, #31, 19f"),
    ]);
    // x12: the distance to the next sampled call, which is also the weight of this sample.
    body.extend([
        format!("ldr x12, [x9, #{}]", record::NEXT_SAMPLE_OFFSET),
        line("add x12, x12, w11, uxtw"),
        line("add x12, x12, #2"),
        format!("lsr x12, x12, #{}", table::PERIOD_SHIFT),
    ]);
    body.extend(constant("x14", table::PERIOD_MAX.into()));
    body.extend([
        line("cmp x12, x14"),
        line("csel x12, x12, x14, ls"),
        format!("ldr w14, [x13, #{}]", table::RANDOM_OFFSET),
    ]);
    body.extend(constant("x16", table::RANDOM_FACTOR.into()));
    body.push(line("mul w14, w14, w16"));
    body.extend(constant("x16", table::RANDOM_INCREMENT.into()));
    body.extend([
        line("add w14, w14, w16"),
        format!("str w14, [x13, #{}]", table::RANDOM_OFFSET),
        line("add x16, x12, #1"),
        line("mul x16, x16, x14"),
        line("lsr x12, x12, #1"),
        line("add x12, x12, x16, lsr #32"),
        line("add x12, x12, x11"),
        line("add x12, x12, #1"),
        line("5: ldxr w11, [x9]"),
        line("sub w11, w11, w12"),
        line("stxr w17, w11, [x9]"),
        line("cbnz w17, 5b"),
    ]);
    // x11: the key. x13: the first slot. x16: the slot. x17: the end of the slots. w14: the number of slots to look at.
    // x15: the lightest slot among them.
    body.extend(addressing.address("x14", &Place::new(names.start.clone())));
    body.extend([
        line("sub w11, w9, w14"),
        line("sub w10, w10, w14"),
        line("orr x11, x11, x10, lsl #32"),
    ]);
    body.extend(constant("x16", table::HASH_FACTOR));
    body.extend([line("mul x16, x11, x16"), line("lsr x16, x16, #32")]);
    body.extend(constant("x17", slots.into()));
    body.extend([
        line("mul x16, x16, x17"),
        line("lsr x16, x16, #32"),
        format!("add x13, x13, #{}", table::HEAD_ENTRIES * table::SLOT_SIZE),
        line("add x17, x13, x17, lsl #4"),
        line("add x16, x13, x16, lsl #4"),
        format!("mov w14, #{}", table::PROBES),
        line("mov x15, x16"),
        line("6: ldr x10, [x16]"),
        line("cmp x10, x11"),
        line("b.eq 9f"),
        line("cbz x10, 10f"),
        format!("ldr x10, [x16, #{}]", table::WEIGHT_OFFSET),
        format!("ldr x30, [x15, #{}]", table::WEIGHT_OFFSET),
        line("cmp x10, x30"),
        line("csel x15, x16, x15, lo"),
        format!("add x16, x16, #{}", table::SLOT_SIZE),
        line("cmp x16, x17"),
        line("b.ne 7f"),
        line("mov x16, x13"),
        line("7: sub w14, w14, #1"),
        line("cbnz w14, 6b"),
    ]);
    // No slot is free: the lighter of the sample and the lightest slot is lost.
    body.extend([
        line("mov x10, x12"),
        format!("ldr x30, [x15, #{}]", table::WEIGHT_OFFSET),
        line("cmp x30, x12"),
        line("b.hs 8f"),
        line("mov x10, x30"),
        line("str xzr, [x15]"),
        format!("str x12, [x15, #{}]", table::WEIGHT_OFFSET),
        line("str x11, [x15]"),
        line("8: mov x30, #-1"),
        format!("stur x30, [x13, #-{}]", table::SLOT_SIZE),
        format!(
            "ldur x30, [x13, #-{}]",
            table::SLOT_SIZE - table::WEIGHT_OFFSET
        ),
        line("add x30, x30, x10"),
        format!(
            "stur x30, [x13, #-{}]",
            table::SLOT_SIZE - table::WEIGHT_OFFSET
        ),
        line("b 11f"),
        format!("9: ldr x10, [x16, #{}]", table::WEIGHT_OFFSET),
        line("add x10, x10, x12"),
        format!("str x10, [x16, #{}]", table::WEIGHT_OFFSET),
        line("b 11f"),
        format!("10: str x12, [x16, #{}]", table::WEIGHT_OFFSET),
        line("str x11, [x16]"),
        format!(
            "11: sub x13, x13, #{}",
            table::HEAD_ENTRIES * table::SLOT_SIZE
        ),
    ]);
    if !exact {
        body.extend([
            format!("cmp w12, #{UNCHECKED_DISTANCE}"),
            line("b.ls 12f"),
            line("ldr w10, [x9]"),
            line("tbz w10, #31, 19f"),
            line("12:"),
        ]);
    }
    body.extend([
        format!("ldr x10, [x9, #{}]", record::NEXT_SAMPLE_OFFSET),
        line("add x10, x10, x12"),
        format!("str x10, [x9, #{}]", record::NEXT_SAMPLE_OFFSET),
        format!("19: add x16, x13, #{}", table::LOCK_OFFSET),
        line("stlr wzr, [x16]"),
        line("b 20f"),
        format!("21: ldr w11, [x13, #{}]", table::WAITING_OFFSET),
        line("add w11, w11, #1"),
        format!("str w11, [x13, #{}]", table::WAITING_OFFSET),
        // The table is unlocked for a thread that no longer exists.
        format!("tbnz w11, #{}, 19b", table::WAITING_MAX.trailing_zeros()),
        line("20: ldp x15, x30, [sp, #48]"),
        line("ldp x13, x14, [sp, #32]"),
        line("ldp x11, x12, [sp, #16]"),
        line("ldp x9, x10, [sp], #64"),
    ]);
    body
}
