/* Functions as compilers put them into awkward places. Prints the same whatever is done to its assembly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static jmp_buf back;

/* A jump table, with a hole. */
NOINLINE int table(int x) {
  switch (x) {
  case 0: puts("zero"); return 4;
  case 1: return table(7) + 1;
  case 2: puts("two"); break;
  case 3: return -x;
  case 5: puts("five"); return table(3);
  case 6: return 66;
  case 7: puts("seven"); return 11;
  default: return x;
  }
  return 2 * x;
}

/* Addresses of labels: an interpreter. */
NOINLINE int interpret(const unsigned char *code) {
  static const void *const labels[] = {&&add, &&doubled, &&minus, &&stop};
  int value = 1;
#define NEXT goto *labels[*code++]
  NEXT;
add:
  value += 3;
  NEXT;
doubled:
  value *= 2;
  NEXT;
minus:
  value = -value;
  NEXT;
stop:
  return value;
}

/* Variadic: al holds the number of vector registers. */
NOINLINE double sum(int count, ...) {
  va_list list;
  double total = 0;
  va_start(list, count);
  while (count--)
    total += va_arg(list, double);
  va_end(list);
  return total;
}

/* Returns twice. */
NOINLINE void deeper(int level) {
  if (level == 0)
    longjmp(back, 5);
  deeper(level - 1);
}

NOINLINE int jumps(void) {
  volatile int seen = 0;
  int got = setjmp(back);
  seen++;
  if (!got)
    deeper(3);
  return got * 10 + seen;
}

/* A cold part. */
__attribute__((cold, noinline)) void complain(int x) { printf("complaint %d\n", x); }

NOINLINE int guarded(int x) {
  if (__builtin_expect(x < 0, 0)) {
    complain(x);
    if (x < -10) {
      complain(-x);
      return -1;
    }
    puts("mild");
  }
  return x * 3;
}

#if defined(__x86_64__)
/* Inline assembly with labels, sections and branches of its own. */
NOINLINE unsigned looped(unsigned count) {
  unsigned result = 0;
  __asm__ volatile(".Lagain%=: add{l}\t{$2, %0|%0, 2}\n\tdec{l}\t%1\n\tjnz .Lagain%=\n"
                   ".pushsection .rodata\n.ascii \"; # not a comment \\\" \"\n.popsection"
                   : "+r"(result), "+r"(count)
                   :
                   : "cc");
  return result;
}

NOINLINE int went(int x) {
  __asm__ goto("test{l}\t%0, %0; je %l[zero]" : : "r"(x) : "cc" : zero);
  return 1;
zero:
  return 2;
}

/* No prologue, no frame: movl $42, %eax in any syntax. */
__attribute__((naked)) int bare(void) { __asm__(".byte 0xb8, 42, 0, 0, 0\n\tret"); }

/* An indirect function. */
static int fast(int x) { return x + 1; }
static int slow(int x) { return x + 2; }
static int (*choose(void))(int) { return sizeof(void *) == 8 ? fast : slow; }
int chosen(int x) __attribute__((ifunc("choose")));
#else
static unsigned looped(unsigned count) { return 2 * count; }
static int went(int x) { return x ? 1 : 2; }
static int bare(void) { return 42; }
static int chosen(int x) { return x + 1; }
#endif

/* Two names of one function; a weak one. */
NOINLINE int original(int x) { return x ^ 5; }
int other_name(int x) __attribute__((alias("original")));
__attribute__((weak)) NOINLINE int replaceable(int x) { return x - 1; }

/* Begins with a loop. */
NOINLINE uint32_t spin(uint32_t x) {
  do
    x = x * 1664525u + 1013904223u;
  while (x & 0xf0000);
  return x;
}

/* In a section of its own. */
__attribute__((section(".text.kept"), noinline)) int kept(int x) { return x + 100; }

/* More arguments than registers, and a frame that is aligned anew. */
NOINLINE int many(int a, int b, int c, int d, int e, int f, int g, int h, ...) {
  char buffer[64] __attribute__((aligned(64)));
  memset(buffer, a + b + c + d, sizeof buffer);
  return buffer[13] + e * f - g * h + (int)((uintptr_t)buffer & 63);
}

#if defined(__GNUC__) && !defined(__clang__)
/* The static chain is in r10. */
NOINLINE int nested(int x) {
  NOINLINE int inner(int y) { return x++ * y; }
  x++;
  return inner(3) + inner(2);
}
#else
static int nested(int x) { return (x + 1) * 3 + (x + 2) * 2; }
#endif

static _Thread_local int local = 3;
NOINLINE int threads_own(int x) { return local += x; }

static int never(int x) { return x; }
int dead(int x) { return never(x) / 2; }

int corners_more(int x);

int main(void) {
  int i;
  for (i = -1; i < 9; i++)
    printf("table %d %d\n", i, table(i));
  printf("interpret %d\n", interpret((const unsigned char *)"\0\1\2\0\1\3"));
  printf("sum %g\n", sum(3, 1.5, 2.25, 3.0));
  printf("jumps %d\n", jumps());
  printf("guarded %d %d %d\n", guarded(4), guarded(-4), guarded(-40));
  printf("looped %u went %d %d bare %d chosen %d\n", looped(21), went(0), went(1), bare(), chosen(1));
  printf("names %d %d %d\n", original(1), other_name(2), replaceable(3));
  printf("spin %u kept %d many %d\n", (unsigned)spin(7), kept(1), many(1, 2, 3, 4, 5, 6, 7, 8, 9));
  printf("nested %d local %d %d\n", nested(6), threads_own(2), threads_own(2));
  printf("more %d\n", corners_more(3));
  return 0;
}
