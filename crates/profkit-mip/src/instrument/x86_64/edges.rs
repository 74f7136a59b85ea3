//! The helper that samples a call into the table of call edges (`profkit_abi::mip::edge_table`), for x86-64.
use super::sequences::assign_ordinal;
use crate::instrument::helpers::EdgeNames;
use profkit_abi::mip::{edge_table as table, record};
use std::fmt::Write as _;

/// The bytes of the registers that the helper saves.
const SAVED: usize = 7 * 8;

/// Makes the body of the helper. A stub has called it, because the field `REMAINING_OFFSET` of the function's record has
/// become 0 or larger. The stub has saved rax, which holds the record, and in the large code model rcx too.
///
/// Only one thread at a time changes the table and the two fields of the record that are not the ordinal. A thread that
/// finds the table locked leaves, so a signal handler cannot wait for the thread that it interrupts. Its call is counted,
/// and the next call of the function comes here again.
///
/// `exact` says that probes increment atomically. If they do not, the store of another thread's increment may undo the
/// subtraction, so the subtraction is checked after the table was changed, when that store has arrived. A short distance
/// is not checked, because the calls of other threads may have used it up.
pub(super) fn helper(names: &EdgeNames, slots: u32, exact: bool, large: bool) -> String {
    let EdgeNames {
        ordinal,
        table: table_name,
        start,
        local,
    } = names;
    let mut out = String::new();
    if large {
        out.push_str("\tendbr64\n");
    }
    for register in ["rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10"] {
        let _ = writeln!(out, "\tpushq %{register}");
    }
    // On the stack after the saved registers: the return address of the stub's call, what the stub saved, and the
    // return address of the function.
    let caller = SAVED + if large { 24 } else { 16 };
    let address = |symbol: &str, register: &str| {
        if large {
            format!("\tmovabsq ${symbol}-{local}here, %{register}\n\taddq %r9, %{register}\n")
        } else {
            format!("\tleaq {symbol}(%rip), %{register}\n")
        }
    };
    if large {
        let _ = write!(out, "{local}here:\n\tleaq {local}here(%rip), %r9\n");
    }
    out.push_str("\tmovq %rax, %rdi\n");
    out.push_str(&address(ordinal, "r8"));
    out.push_str(&assign_ordinal("(%r8)", &format!("{local}known")));
    out.push_str(&address(table_name, "r8"));
    let _ = write!(
        out,
        "\tmovl $1, %ecx\n\txchgl %ecx, {lock}(%r8)\n\ttestl %ecx, %ecx\n\tjne {local}busy\n\tmovl $0, {waiting}(%r8)\n",
        lock = table::LOCK_OFFSET,
        waiting = table::WAITING_OFFSET,
    );
    // rcx: how far the count is beyond the call that was to be sampled. rdx: m = calls >> PERIOD_SHIFT.
    let _ = write!(
        out,
        "\tmovl (%rdi), %ecx\n\ttestl %ecx, %ecx\n\tjs {local}free\n\tmovq {next}(%rdi), %rdx\n\tleaq 2(%rdx,%rcx), %rdx\n\tshrq ${shift}, %rdx\n\tmovl ${most}, %eax\n\tcmpq %rax, %rdx\n\tcmovaq %rax, %rdx\n",
        next = record::NEXT_SAMPLE_OFFSET,
        shift = table::PERIOD_SHIFT,
        most = table::PERIOD_MAX,
    );
    // rsi: the distance to the next sampled call, which is also the weight of this sample.
    let _ = write!(
        out,
        "\timull ${factor}, {random}(%r8), %eax\n\taddl ${increment}, %eax\n\tmovl %eax, {random}(%r8)\n\tleaq 1(%rdx), %r10\n\timulq %r10, %rax\n\tshrq $32, %rax\n\tshrq %rdx\n\taddq %rdx, %rax\n\tleaq 1(%rax,%rcx), %rsi\n\t{lock_prefix}subl %esi, (%rdi)\n",
        lock_prefix = if exact { "lock " } else { "" },
        factor = table::RANDOM_FACTOR,
        increment = table::RANDOM_INCREMENT,
        random = table::RANDOM_OFFSET,
    );
    // rdx: the key. rcx: the offset of a slot from the first one.
    out.push_str(&address(start, "rcx"));
    let _ = write!(
        out,
        "\tmovl %edi, %edx\n\tsubl %ecx, %edx\n\tmovq {caller}(%rsp), %rax\n\tsubl %ecx, %eax\n\tshlq $32, %rax\n\torq %rax, %rdx\n\tmovabsq ${factor:#x}, %rcx\n\timulq %rdx, %rcx\n\tshrq $32, %rcx\n\timulq ${slots}, %rcx, %rcx\n\tshrq $32, %rcx\n\tshlq $4, %rcx\n\taddq ${head}, %r8\n",
        factor = table::HASH_FACTOR,
        head = table::HEAD_ENTRIES * table::SLOT_SIZE,
    );
    // r9: the number of slots to look at. r10: the lightest slot among them.
    let _ = write!(
        out,
        "\tmovl ${probes}, %r9d\n\tleaq (%r8,%rcx), %r10\n{local}probe:\n\tleaq (%r8,%rcx), %rax\n\tcmpq %rdx, (%rax)\n\tje {local}add\n\tcmpq $0, (%rax)\n\tje {local}take\n\tmovq {weight}(%rax), %rax\n\tcmpq {weight}(%r10), %rax\n\tleaq (%r8,%rcx), %rax\n\tcmovbq %rax, %r10\n\taddq ${size}, %rcx\n\tcmpq ${bytes}, %rcx\n\tjne {local}next\n\txorl %ecx, %ecx\n{local}next:\n\tdecl %r9d\n\tjne {local}probe\n",
        probes = table::PROBES,
        weight = table::WEIGHT_OFFSET,
        size = table::SLOT_SIZE,
        bytes = u64::from(slots) * table::SLOT_SIZE as u64,
    );
    // No slot is free: the lighter of the sample and the lightest slot is lost.
    let _ = write!(
        out,
        "\tmovq %rsi, %rcx\n\tcmpq %rsi, {weight}(%r10)\n\tjae {local}lost\n\tmovq {weight}(%r10), %rcx\n\tmovq $0, (%r10)\n\tmovq %rsi, {weight}(%r10)\n\tmovq %rdx, (%r10)\n{local}lost:\n\tmovq $-1, -{size}(%r8)\n\taddq %rcx, {weight}-{size}(%r8)\n\tjmp {local}done\n{local}take:\n\tmovq %rsi, {weight}(%rax)\n\tmovq %rdx, (%rax)\n\tjmp {local}done\n{local}add:\n\taddq %rsi, {weight}(%rax)\n{local}done:\n\tsubq ${head}, %r8\n",
        weight = table::WEIGHT_OFFSET,
        size = table::SLOT_SIZE,
        head = table::HEAD_ENTRIES * table::SLOT_SIZE,
    );
    if !exact {
        let _ = write!(
            out,
            "\tcmpl ${}, %esi\n\tjbe {local}sure\n\tcmpl $0, (%rdi)\n\tjns {local}free\n{local}sure:\n",
            super::super::helpers::UNCHECKED_DISTANCE
        );
    }
    let _ = write!(
        out,
        "\taddq %rsi, {next}(%rdi)\n{local}free:\n\tmovl $0, {lock}(%r8)\n{local}leave:\n",
        next = record::NEXT_SAMPLE_OFFSET,
        lock = table::LOCK_OFFSET,
    );
    for register in ["r10", "r9", "r8", "rdi", "rsi", "rdx", "rcx"] {
        let _ = writeln!(out, "\tpopq %{register}");
    }
    let _ = write!(
        out,
        "\tret\n{local}busy:\n\tincl {waiting}(%r8)\n\tcmpl ${most}, {waiting}(%r8)\n\tjb {local}leave\n\tjmp {local}free\n",
        waiting = table::WAITING_OFFSET,
        most = table::WAITING_MAX,
    );
    out
}
