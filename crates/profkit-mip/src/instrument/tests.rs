#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::*;

fn graph_of(text: &str, target: Target) -> String {
    let backend = target.backend();
    let scanned = Scanned::new(text.as_bytes(), backend.syntax());
    let module = Module::parse(&scanned, backend.syntax());
    let found = functions::find(&module, backend.syntax().format);
    let data = DataFacts::gather(&module);
    let callees = ways::Callees::gather(&module, &data, backend);
    found
        .functions
        .iter()
        .map(
            |function| match blocks::find(&module, function, &data, &callees, backend) {
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

/// Returns the blocks of a function with this body. The body begins at line 3.
fn body(text: &str) -> String {
    let text = format!(".type f,@function\nf:\n{text}\n.size f, .-f\n");
    graph_of(&text, Target::X86_64Elf)
}

/// Returns the blocks of a Mach-O function with this body.
fn mach_o_body(text: &str) -> String {
    let text = format!(".section __TEXT,__text,regular,pure_instructions\n_f:\n{text}\n");
    graph_of(&text, Target::X86_64MachO)
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
    // The code has a loop that begins at the first block, a recursive jump, and an unreachable block.
    insta::assert_snapshot!(body(".L1:\ndec %edi\njne .L1\njmp f\nnop\nret"), @"f: 4[1, 0] 6[] 7[] 232469c9");
    // The code has a jump table before other code of the function. Two equal targets in the table are one successor.
    insta::assert_snapshot!(body("leaq .LT(%rip), %rax\njmp *%rax\n.section .rodata\n.LT: .long .LA-.LT\n.long .LB-.LT, .LA-.LT\n.text\n.LA: nop\n.LB: ret\n.LC: ud2"), @"f: 3[1, 2] 9[2] 10[] 11[] a6afb9fd");
    // The code has numeric labels, a tail call, and a conditional branch to another function.
    insta::assert_snapshot!(body("1: dec %edi\nje 1b\njs 1f\njle g\njmp g\n1: ret"), @"f: 3[1, 0] 5[2, 4] 6[3] 7[] 8[] a41dbd39");
    // The code has a region with a landing pad. Each call in this region ends a block.
    insta::assert_snapshot!(body(".LB: call g\ncall h\n.LE:\nret\n.LP: call k\nret\n.section .gcc_except_table,\"a\",@progbits\n.byte 0xff\n.byte 0x9b\n.uleb128 .LTT-.LTD\n.LTD: .byte 0x1\n.uleb128 .LCE-.LCB\n.LCB: .uleb128 .LB-f\n.uleb128 .LE-.LB\n.uleb128 .LP-f\n.uleb128 0x1\n.LCE:\n.LTT:\n.text"), @"f: 3[1, 3] 4[2, 3] 6[] 7[] 40255191");
    // Inline assembly belongs to one block, which `asm goto` ends.
    insta::assert_snapshot!(body("nop\n#APP\n1: jmp 1b\njne .L7\n#NO_APP\nnop\n.L7: ret"), @"f: 3[1, 2] 8[2] 9[] 70c9fa27");
    // The first four may have no probe in their blocks; the flow of the last three is unknown.
    insta::assert_snapshot!(body("lock\n.L1: incl (%rdi)\nje .L1\nret"), @"f: 3[1] 4[2, 1] 6[] aa4e04c2 a label stands between a prefix and its instruction");
    insta::assert_snapshot!(body(".L1: loop .L1\nret"), @"f: 3[1, 0] 4[] d48210a4 the function has a branch of fixed short range");
    insta::assert_snapshot!(mach_o_body("lock\nL1: incl (%rdi)\nje L1\nret"), @"_f: 3[1] 4[2, 1] 6[] aa4e04c2 a label stands between a prefix and its instruction");
    insta::assert_snapshot!(mach_o_body("L1: jrcxz L1\nret"), @"_f: 3[1, 0] 4[] d48210a4 the function has a branch of fixed short range");
    insta::assert_snapshot!(body("jmp .+5\nret"), @"f: the function has a branch relative to the location counter");
    insta::assert_snapshot!(body(".if 1\nnop\n.endif\nret"), @"f: the function has a conditional directive");
    insta::assert_snapshot!(body(".rept 2\nnop\n.endr\nret"), @"f: the function contains a macro or a repeat block");
}

fn made(text: &str, options: &Options) -> String {
    let made = instrument(text.as_bytes(), "in.s", Some(Target::X86_64Elf), options).unwrap();
    let out = String::from_utf8(made.text.into_owned()).unwrap();
    out.lines()
        .take(text.lines().count())
        .filter(|line| line.contains("(%rip)") || line.contains("[rip"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn where_the_entry_probe_goes() {
    let at = |text: &str| {
        let text = format!(".type f,@function\nf:\n{text}\n.size f, .-f\n");
        made(&text, &Options::default())
    };
    insta::assert_snapshot!(at(".cfi_startproc\n.loc 1 2 3\n.LVL1:\nret"), @"movb $0, .Lprofkit_mip_r0(%rip); ret");
    insta::assert_snapshot!(at("endbr64\n.loc 1 2\nret"), @"movb $0, .Lprofkit_mip_r0(%rip); ret");
    insta::assert_snapshot!(at("endbr64\n.L1: decl %edi\njne .L1\nret"), @"movb $0, .Lprofkit_mip_r0(%rip); .L1: decl %edi");
    insta::assert_snapshot!(at(".section __patchable_function_entries,\"awo\",@progbits,.LP\n.quad .LP\n.text\n.LP:\nnop\nnopl (%rax)\nret"), @"movb $0, .Lprofkit_mip_r0(%rip); ret");
    // No-op instructions that no section lists as patchable are treated like other code.
    insta::assert_snapshot!(at("nop\nret"), @"movb $0, .Lprofkit_mip_r0(%rip); nop");
    insta::assert_snapshot!(at("1: call *__fentry__@GOTPCREL(%rip)\nret"), @r##"
    1: call *__fentry__@GOTPCREL(%rip)
    movb $0, .Lprofkit_mip_r0(%rip); ret
    "##);
    // The probe comes after a frame setup that debuggers recognise, but not after a label that is a jump target.
    insta::assert_snapshot!(at("pushq %rbp\n.cfi_def_cfa_offset 16\nmovq %rsp, %rbp\n.cfi_def_cfa_register 6\n.loc 1 3\nleave\nret"), @"movb $0, .Lprofkit_mip_r0(%rip); .loc 1 3");
    insta::assert_snapshot!(at(".intel_syntax noprefix\npush rbp\nmov rbp, rsp\n.L1: dec edi\njne .L1\nret"), @"mov byte ptr [rip + .Lprofkit_mip_r0], 0; .L1: dec edi");
    let mach_o = |text: &str| {
        let text = format!(".section __TEXT,__text,regular,pure_instructions\n_f:\n{text}\n");
        let target = Some(Target::X86_64MachO);
        let made = instrument(text.as_bytes(), "in.s", target, &Options::default()).unwrap();
        String::from_utf8(made.text.into_owned()).unwrap()
    };
    insta::assert_snapshot!(mach_o("pushq %rbp\nmovq %rsp, %rbp\nretq").lines().nth(4).unwrap(), @"movb $0, l_profkit_mip_r0(%rip); retq; Lprofkit_mip_e0:");
    // The appended text is in AT&T syntax.
    let intel = mach_o(".intel_syntax noprefix\nret");
    insta::assert_snapshot!(intel.lines().skip(3).take(3).collect::<Vec<_>>().join("\n"), @r"
    mov byte ptr [rip + l_profkit_mip_r0], 0; ret; Lprofkit_mip_e0:
    	.att_syntax prefix
    	.section __DATA,__llvm_mipraw,regular
    ");
    insta::assert_snapshot!(at("pushq %rbp\n.L1: movq %rsp, %rbp\njmp .L1"), @"movb $0, .Lprofkit_mip_r0(%rip); pushq %rbp");
}

#[test]
fn what_is_skipped_is_said() {
    let skipped = |text: &str| {
        let made = instrument(
            text.as_bytes(),
            "in.s",
            Some(Target::X86_64Elf),
            &Options::default(),
        );
        let made = made.unwrap();
        let reasons: Vec<String> = made
            .skipped
            .iter()
            .map(|skipped| format!("{}: {} {}", skipped.line, skipped.name, skipped.reason))
            .collect();
        format!("{} made, {}", made.functions, reasons.join("; "))
    };
    let function = |name: &str, text: &str| {
        format!(".type {name},@function\n{name}:\n{text}\n.size {name}, .-{name}\n")
    };
    insta::assert_snapshot!(skipped(&function("f", "")), @"0 made, 2: f has no instruction");
    insta::assert_snapshot!(skipped(&function("f", "#APP\nret\n#NO_APP\nud2")), @"0 made, 2: f consists only of inline assembly (naked)");
    insta::assert_snapshot!(skipped(&function("f", "#APP\nnop\n#NO_APP\nret")), @"1 made,");
    insta::assert_snapshot!(skipped(&format!(".if 1\n{}.endif", function("f", "ret"))), @"0 made, 3: f stands inside a conditional directive");
    insta::assert_snapshot!(skipped(&format!(".macro m\nendbr64\n.endm\n{}", function("f", "m\nret"))), @"0 made, 5: f begins with a macro whose instructions are unknown");
    insta::assert_snapshot!(skipped(&function("f", "nop\n.type g,@function\ng: ret\n.size g, .-g")), @"1 made, 5: g begins inside another function");
    insta::assert_snapshot!(skipped(&format!("{}{}", function("__cfi_f", "nop\nmovl $1, %eax"), function("f", "ret"))), @"1 made, 2: __cfi_f is a type hash, not code");
    insta::assert_snapshot!(skipped(".type f,@gnu_indirect_function\nf: ret\n.size f, .-f"), @"0 made, 2: f is the resolver of an indirect function");
    insta::assert_snapshot!(skipped(&format!("{}.org 64\n", function("f", "ret"))), @"0 made, 2: f is in a section with .org");
    insta::assert_snapshot!(skipped(&format!("{}{}", function("f", "ret"), function("f", "ret"))), @"0 made, 2: f has a label that is defined more than once; 6: f has a label that is defined more than once");
    insta::assert_snapshot!(skipped(&function("OUTLINED_FUNCTION_0", "ret")), @"0 made, 2: OUTLINED_FUNCTION_0 is a piece of other functions, outlined by LLVM");
    // Two labels at one place, a jump into `f.cold`, and a function `f.cold.1` that is no part.
    insta::assert_snapshot!(skipped(&function("f", ".type g,@function\ng: ret")), @"1 made,");
    insta::assert_snapshot!(skipped(&format!("{}{}", function("f", "jmp .Lc"), function("f.cold", ".Lc: ret"))), @"1 made,");
    insta::assert_snapshot!(skipped(&format!("{}{}", function("f", "call f.cold.1\nret"), function("f.cold.1", "ret"))), @"2 made,");
}

#[test]
fn what_is_refused_is_located() {
    let message = |text: &str| {
        instrument(
            text.as_bytes(),
            "in.s",
            Some(Target::X86_64Elf),
            &Options::default(),
        )
        .unwrap_err()
        .to_string()
    };
    let all: Vec<String> = [
        "nop\n.Lprofkit_mip_f0:\n",
        "\n.section .gnu.lto_.decls,\"e\"\n",
        " .section .note.GNU-split-stack,\"\"\n",
        ".code32\n",
    ]
    .into_iter()
    .map(message)
    .collect();
    insta::assert_snapshot!(all.join("\n"), @r##"
    in.s:2: the file is already instrumented, at `.Lprofkit_mip_f0:`
    in.s:2: holds link-time optimisation bytecode, which has no machine code yet (compile without -flto), at `.section .gnu.lto_.decls,"e"`
    in.s:1: was compiled with -fsplit-stack: linkers rewrite the start of its functions, where the probe would be, at `.section .note.GNU-split-stack,""`
    in.s:1: has 16-bit or 32-bit code, which there is no back end for, at `.code32`
    "##);
}

#[test]
fn a_large_probe_describes_the_stack_where_the_frame_is_found_by_it() {
    let code = "\t.text\n\t.type f,@function\nf:\n\t.cfi_startproc\n\tjne .L1\n\tpushq %rbp\n\t.cfi_def_cfa_offset 16\n\tmovq %rsp, %rbp\n\t.cfi_def_cfa_register 6\n\
        .L1:\n\tjne .L2\n\t.cfi_remember_state\n\tpopq %rbp\n\t.cfi_def_cfa %rsp, 8\n\tjne .L3\n\tret\n\
        .L2:\n\t.cfi_restore_state\n\tjne .L3\n\t.cfi_def_cfa_register rsp\n\
        .L3:\n\tnop\n\tjne .L4\n\t.cfi_escape 0x0f, 0x03, 0x76, 0x78, 0x06\n\
        .L4:\n\tret\n\t.cfi_endproc\n\t.size f,.-f\n";
    let options = Options {
        blocks: true,
        all_blocks: true,
        large_code_model: true,
        ..Options::default()
    };
    let made = instrument(code.as_bytes(), "f.s", None, &options).unwrap();
    let text = String::from_utf8(made.text.into_owned()).unwrap();
    let described: Vec<bool> = text
        .lines()
        .filter(|line| line.contains("leaq -128(%rsp), %rsp"))
        .map(|line| {
            let changes = line.matches(".cfi_adjust_cfa_offset").count();
            assert!(changes == 0 || changes == 6, "{line}");
            changes == 6
        })
        .collect();
    // The blocks begin after the first branch, at .L1, the pop, the ret, .L2, .L3 and .L4.
    assert_eq!(
        described,
        [true, false, false, true, false, true, false],
        "{text}"
    );
}
