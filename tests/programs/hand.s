# Assembly as people write it, with everything that an instrumenter must step around.
	.file "hand.s"
	.intel_syntax noprefix
	.text
	.globl	start; .type start, @function
start:	endbr64 /* stays first */
	.cfi_startproc
	push	rbp
	mov	eax, dword ptr [rip + table@GOTPCREL]; jmp	qword ptr [8*rax + table]
again:
	dec	edi
	jnz	again		# a loop
	pop rbp
	ret
	.cfi_endproc
	.size start, . - start
	.att_syntax prefix
	.macro	save reg, more:vararg
\reg\()_label:	pushq %\reg
	.ifnb \more
	save \more
	.endif
	.endm
	.type	saves, %function
saves:	.rept 2
	nop
	.endr
	save rax, rbx
	popq %rbx
	popq %rax
	ret
	.size	saves, .-saves
	.section .text.once,"axG",@progbits,once,comdat
	.weak	once
	.type	once, STT_FUNC
once:
.Lbegin:
	testl	%edi, %edi
	je	1f
	lock
	incl	(%rsi)
	call	saves
1:	jmp	2f
	.byte	0x90, '#, ';', '\''
2:	rep; ret
.Lend:
	.size	once, .Lend-once
	.type	"quoted name", @function
"quoted name":
	jmp	"quoted name"
	.size	"quoted name", .-"quoted name"
	.pushsection .rodata.text,"aMS",@progbits,1
table:	.quad	again, once
	.ascii	"not a # comment; nor \" a statement"
	.popsection
#APP
# 12 "inline.c" 1
0:	jmp 0b
# 0 "" 2
#NO_APP
	.type	unsized, @function
unsized:
	loop	unsized_end
	cmpb	$'", %al
unsized_end:
	ud2
	.section .text.unlikely,"ax",@progbits
	.type	once.cold, @function
once.cold:
.Lcold:
	call	abort
	.size	once.cold, .-once.cold
	.if	0
	.type	absent, @function
absent:	ret
	.size absent, .-absent
	.endif
	.set	alias, once
	value = . - .Lcold ; other = 5
	.section	.note.GNU-stack,"",@progbits
	.end
	anything ( at all
