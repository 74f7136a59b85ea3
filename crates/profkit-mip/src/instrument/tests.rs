#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::*;

fn graph_of(text: &str) -> String {
    let backend = Target::X86_64Elf.backend();
    let scanned = Scanned::new(text.as_bytes(), backend.syntax());
    let module = Module::parse(&scanned, backend.syntax());
    let found = functions::find(&module, backend);
    let data = DataFacts::gather(&module);
    found
        .functions
        .iter()
        .map(
            |function| match blocks::find(&module, function, &data, backend) {
                Err(reason) => format!("{}: {reason}", String::from_utf8_lossy(function.name)),
                Ok(graph) => {
                    let blocks: Vec<String> = graph
                        .blocks
                        .iter()
                        .map(|block| {
                            let line = module.statements[block.statement].line;
                            format!("{line}{:?}", block.successors)
                        })
                        .collect();
                    format!(
                        "{}: {} {:08x} {}",
                        String::from_utf8_lossy(function.name),
                        blocks.join(" "),
                        graph.signature(),
                        graph.fixed.unwrap_or_default()
                    )
                }
            },
        )
        .collect::<Vec<_>>()
        .join("\n")
}

/// A function with this body, whose first line is line 3.
fn body(text: &str) -> String {
    graph_of(&format!(".type f,@function\nf:\n{text}\n.size f, .-f\n"))
}

#[test]
fn the_signature_of_an_if_is_the_published_one() {
    assert_eq!(
        body("test %edi,%edi\nje .L1\ncall g\n.L1:\nret"),
        "f: 3[1, 2] 5[2] 7[] 70c9fa27 "
    );
}

#[test]
fn flow_of_control() {
    // A loop from the start; a self-call; what no one reaches.
    insta::assert_snapshot!(body(".L1:\ndec %edi\njne .L1\njmp f\nnop\nret"), @"f: 4[1, 0] 6[] 7[] 232469c9");
    // A jump table, behind other code of the function; two equal targets are one successor.
    insta::assert_snapshot!(body("leaq .LT(%rip), %rax\njmp *%rax\n.section .rodata\n.LT: .long .LA-.LT\n.long .LB-.LT, .LA-.LT\n.text\n.LA: nop\n.LB: ret\n.LC: ud2"), @"f: 3[1, 2] 9[2] 10[] 11[] a6afb9fd");
    // Numeric labels, a tail call, a branch to another function.
    insta::assert_snapshot!(body("1: dec %edi\nje 1b\njs 1f\njle g\njmp g\n1: ret"), @"f: 3[1, 0] 5[2, 4] 6[3] 7[] 8[] a41dbd39");
    // A call that may land: the calls of a region each end a block.
    insta::assert_snapshot!(body(".LB: call g\ncall h\n.LE:\nret\n.LP: call k\nret\n.section .gcc_except_table,\"a\",@progbits\n.byte 0xff\n.byte 0x9b\n.uleb128 .LTT-.LTD\n.LTD: .byte 0x1\n.uleb128 .LCE-.LCB\n.LCB: .uleb128 .LB-f\n.uleb128 .LE-.LB\n.uleb128 .LP-f\n.uleb128 0x1\n.LCE:\n.LTT:\n.text"), @"f: 3[1, 3] 4[2, 3] 6[] 7[] 40255191");
    // Inline assembly is one step; `asm goto` leaves it.
    insta::assert_snapshot!(body("nop\n#APP\n1: jmp 1b\njne .L7\n#NO_APP\nnop\n.L7: ret"), @"f: 3[1, 2] 8[2] 9[] 70c9fa27");
    // What no probe may be put into, and what is not understood.
    insta::assert_snapshot!(body("lock\n.L1: incl (%rdi)\nje .L1\nret"), @"f: 3[1] 4[2, 1] 6[] aa4e04c2 a label stands between a prefix and its instruction");
    insta::assert_snapshot!(body(".L1: loop .L1\nret"), @"f: 3[1, 0] 4[] d48210a4 it has a branch of fixed short range");
    insta::assert_snapshot!(body("jmp .+5\nret"), @"f: it branches relative to the location counter");
    insta::assert_snapshot!(body(".if 1\nnop\n.endif\nret"), @"f: it has a conditional directive");
    insta::assert_snapshot!(body(".rept 2\nnop\n.endr\nret"), @"f: it has a macro or a repetition");
}
