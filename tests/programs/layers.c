/* A small callee on two call paths with opposite branches: inlined twice, it counts differently in each copy, which
   is what context-sensitive profiles are for. Arguments: SEED COUNT. */
#include <stdio.h>
#include <stdlib.h>

static unsigned choose(unsigned value, int rare) {
  if (rare) {
    unsigned sum = 0;
    for (unsigned i = 0; i < value % 16; i++)
      sum += i * value;
    return sum;
  }
  return value + 1;
}

__attribute__((noinline)) unsigned often(unsigned value) { return choose(value, value % 64 == 0) * 3; }
__attribute__((noinline)) unsigned seldom(unsigned value) { return choose(value, value % 4 != 0) ^ 5; }

int main(int argc, char **argv) {
  unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], 0, 10) : 1;
  unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], 0, 10) : 10;
  unsigned sum = seed;
  for (unsigned i = 0; i < count; i++)
    sum += i % 8 ? often(sum + i) : seldom(sum + i);
  printf("%u\n", sum);
  return 0;
}
