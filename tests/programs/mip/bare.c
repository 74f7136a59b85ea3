/* A program for QEMU's machine "virt" with a 64-bit Arm processor and no operating system. Its MIP runtime gives it the
   bytes of its raw file in pieces, which it writes to the file bare.raw of the machine that runs QEMU, by semihosting: the
   call of a debugger. */
#define HIDDEN __attribute__((visibility("hidden")))
typedef unsigned long size;
HIDDEN int __profkit_mip_write(int (*function)(void *context, const void *bytes, size length), void *context);
HIDDEN size __profkit_mip_size(void);
HIDDEN size __profkit_mip_copy(void *buffer, size length);
HIDDEN void __profkit_mip_reset(void);

static char copied[65536];

__attribute__((noinline)) void used(void) { __asm__ volatile(""); }
__attribute__((noinline)) void never(void) { __asm__ volatile(""); }

/* So many functions that the checksum of the raw file is that of a long input. */
#define ONE(name) \
  __attribute__((noinline)) void name(void) { __asm__ volatile(""); }
#define TEN(name) \
  ONE(name##0) ONE(name##1) ONE(name##2) ONE(name##3) ONE(name##4) ONE(name##5) ONE(name##6) ONE(name##7) ONE(name##8) ONE(name##9)
TEN(a) TEN(b) TEN(c) TEN(d) TEN(e)

static size host(size number, const void *arguments) {
  register size x0 __asm__("x0") = number;
  register const void *x1 __asm__("x1") = arguments;
  __asm__ volatile("hlt #0xf000" : "+r"(x0) : "r"(x1) : "memory");
  return x0;
}

static void end(size code) {
  const size arguments[2] = {0x20026, code};
  for (;;) host(0x18, arguments);
}

/* A sink: the file is open, and the context is its number. */
static int to_host(void *context, const void *bytes, size length) {
  const size write[3] = {*(size *)context, (size)bytes, length};
  return host(5, write) == 0 ? 0 : 1;
}

static size opened(const char *name, size length) {
  const size open[3] = {(size)name, 5, length};
  return host(1, open);
}

void run(void) {
  never();
  __profkit_mip_reset();
  used();
  used();
  used();
  size length = __profkit_mip_copy(copied, sizeof copied);
  if (length == 0 || length != __profkit_mip_size()) end(1);
  size file = opened("copy.raw", 8);
  if (to_host(&file, copied, length) != 0) end(2);
  file = opened("bare.raw", 8);
  if (__profkit_mip_write(to_host, &file) != 0) end(3);
  end(0);
}

/* The start: registers for vectors, which compilers may use for copies; the check of each address that a number is read from,
   because without a memory management unit the address must be a multiple of the number's size; the stack. */
static char stack[65536] __attribute__((aligned(16), used));

__attribute__((naked, noreturn)) void _start(void) {
  __asm__ volatile("mov x0, #(3 << 20)\n"
                   "msr cpacr_el1, x0\n"
                   "mrs x0, sctlr_el1\n"
                   "orr x0, x0, #2\n"
                   "msr sctlr_el1, x0\n"
                   "isb\n"
                   "adrp x0, %0\n"
                   "add x0, x0, :lo12:%0\n"
                   "add sp, x0, %1\n"
                   "b run\n" ::"S"(stack), "i"(sizeof stack));
}
