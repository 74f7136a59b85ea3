// A program for QEMU's machine "virt" with an AArch64 processor and no operating system. At its end it writes its profile
// to the file bare.profraw of the machine that runs QEMU, by semihosting: the call of a debugger.
#include <stddef.h>
#include <stdint.h>

uint64_t __llvm_profile_get_size_for_buffer(void);
int __llvm_profile_write_buffer(char *);

static char profile[65536];

__attribute__((noinline)) int collatz(unsigned number) {
  int steps = 0;
  while (number != 1) {
    number = number % 2 ? 3 * number + 1 : number / 2;
    steps++;
  }
  return steps;
}

static uint64_t host(uint64_t number, const void *arguments) {
  register uint64_t x0 __asm__("x0") = number;
  register const void *x1 __asm__("x1") = arguments;
  __asm__ volatile("hlt #0xf000" : "+r"(x0) : "r"(x1) : "memory");
  return x0;
}

static void end(uint64_t code) {
  const uint64_t arguments[2] = {0x20026, code};
  for (;;) host(0x18, arguments);
}

void run(void) {
  int steps = 0;
  for (unsigned number = 1; number <= 20; number++) steps += collatz(number);
  uint64_t size = __llvm_profile_get_size_for_buffer();
  if (steps != 196) end(1);
  if (size > sizeof profile || __llvm_profile_write_buffer(profile) != 0) end(2);
  static const char name[] = "bare.profraw";
  const uint64_t open[3] = {(uint64_t)name, 5, sizeof name - 1};
  uint64_t file = host(1, open);
  const uint64_t write[3] = {file, (uint64_t)profile, size};
  if (host(5, write) != 0) end(3);
  end(0);
}

// The stack, and registers for vectors, which compilers may use for copies.
static char stack[65536] __attribute__((aligned(16), used));

__attribute__((naked, noreturn)) void _start(void) {
  __asm__ volatile("mov x0, #(3 << 20)\n"
                   "msr cpacr_el1, x0\n"
                   "isb\n"
                   "adrp x0, %0\n"
                   "add x0, x0, :lo12:%0\n"
                   "add sp, x0, %1\n"
                   "b run\n" ::"S"(stack), "i"(sizeof stack));
}
