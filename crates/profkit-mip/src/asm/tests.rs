#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::*;

fn kinds(text: &str) -> Vec<String> {
    let scanned = Scanned::new(text.as_bytes(), &Syntax::X86_ELF);
    let module = Module::parse(&scanned, &Syntax::X86_ELF);
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    module
        .statements
        .iter()
        .map(|statement| {
            let section = module.section(statement.section).unwrap();
            let what = match statement.kind {
                Kind::Label(name) => format!("label {}", show(name)),
                Kind::Directive(d) => format!("directive {} {}", show(d.name), show(d.arguments)),
                Kind::Instruction(i) => format!("{} {}", show(i.mnemonic), show(i.operands)),
                Kind::Assignment(a, b) => format!("{} = {}", show(a), show(b)),
                Kind::Template => "template".to_owned(),
            };
            let inline = if statement.context.inline {
                " inline"
            } else {
                ""
            };
            format!(
                "{}: {what} in {}{inline}",
                statement.line,
                show(section.name)
            )
        })
        .collect()
}

#[test]
fn statements_comments_and_strings() {
    let text = "a: b : ret # c: d\n.ascii \"x;#\\\"y\" ; nop\n/* one\ntwo */ nop /* three */ ; x = 1\n movb $'#, %al\n movb $';', %al; nop\n# 1 \"file.c\"\n1: jmp 1b\n";
    insta::assert_snapshot!(kinds(text).join("\n"), @r##"
    1: label a in .text
    1: label b in .text
    1: ret  in .text
    2: directive .ascii "x;#\"y" in .text
    2: nop  in .text
    4: nop  in .text
    4: x = 1 in .text
    5: movb $'#, %al in .text
    6: movb $';', %al in .text
    6: nop  in .text
    8: label 1 in .text
    8: jmp 1b in .text
    "##);
}

#[test]
fn sections_and_their_stack() {
    let text = ".section .rodata.str1.1,\"aMS\",@progbits,1\n.long 1\n.pushsection .text.f,\"axG\",@progbits,f,comdat\nnop\n.popsection\n.long 2\n.previous\nnop\n.text\n.section \".a;b\", \"ax\"\nnop\n";
    insta::assert_snapshot!(kinds(text).join("\n"), @r##"
    1: directive .section .rodata.str1.1,"aMS",@progbits,1 in .text
    2: directive .long 1 in .rodata.str1.1
    3: directive .pushsection .text.f,"axG",@progbits,f,comdat in .rodata.str1.1
    4: nop  in .text.f
    5: directive .popsection  in .text.f
    6: directive .long 2 in .rodata.str1.1
    7: directive .previous  in .rodata.str1.1
    8: nop  in .text
    9: directive .text  in .text
    10: directive .section ".a;b", "ax" in .text
    11: nop  in .a;b
    "##);
}

#[test]
fn macros_and_inline_assembly() {
    let text = ".macro m a\n\\a: .rept 2\nnop\n.endr\n.endm\nm x\n#APP\n# 5 \"x.c\" 1\n1: nop\n#NO_APP\n.if 1\nret\n.endif\n.end\nnop\n";
    insta::assert_snapshot!(kinds(text).join("\n"), @r##"
    1: directive .macro m a in .text
    2: template in .text
    3: template in .text
    4: template in .text
    5: directive .endm  in .text
    6: m x in .text
    9: label 1 in .text inline
    9: nop  in .text inline
    11: directive .if 1 in .text
    12: ret  in .text
    13: directive .endif  in .text
    14: directive .end  in .text
    "##);
}
