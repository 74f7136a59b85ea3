/* Plain C: two files with a static function of the same name, indirect calls with a few hot targets, copies of
   many sizes, a switch in a loop, recursion, functions that never run. Arguments: SEED COUNT. */
#include "plain.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned helper(unsigned value) { return value * 2654435761u + 1; }

static unsigned add_one(unsigned value) { return value + 1; }
static unsigned square(unsigned value) { return value * value; }
static unsigned collatz(unsigned value) { return value & 1 ? 3 * value + 1 : value / 2; }
static unsigned mix(unsigned value) { return rotate(value, 7) ^ helper(value); }

static step_fn const steps[] = {add_one, square, collatz, mix};

__attribute__((noinline)) static unsigned apply(step_fn step, unsigned value) { return step(value); }

__attribute__((noinline)) static unsigned copy_some(unsigned char *to, const unsigned char *from, size_t size) {
  memcpy(to, from, size);
  memset(to + size, 0, size / 2 + 1);
  return to[size / 2] + (unsigned)memcmp(to, from, size);
}

static unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__attribute__((noinline)) static unsigned classify(unsigned value) {
  switch (value % 11) {
  case 0:
    return 1;
  case 1:
  case 2:
    return value / 3;
  case 5:
    return helper(value);
  case 7:
    return rotate(value, value);
  default:
    return value > 100 ? value - 100 : value;
  }
}

unsigned never_called(unsigned seed) {
  unsigned sum = 0;
  for (unsigned i = 0; i < seed; i++)
    sum += classify(i);
  return sum;
}

int main(int argc, char **argv) {
  unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], 0, 10) : 1;
  unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], 0, 10) : 10;
  unsigned char from[4096], to[8192];
  unsigned sum = seed;
  for (unsigned i = 0; i < sizeof from; i++)
    from[i] = (unsigned char)(i * 7 + seed);
  for (unsigned i = 0; i < count; i++) {
    /* Mostly the first two targets, so that the profile has a clear winner. */
    unsigned which = i % 10 < 6 ? 0 : i % 10 < 9 ? 1 : (i / 10) % 4;
    sum += apply(steps[which], sum);
    sum ^= classify(sum);
    sum += copy_some(to, from, (i * i + seed) % 2000);
    if (i % 3 == 0)
      sum += copy_some(to, from, 16);
  }
  sum += fibonacci(seed % 15);
  sum += more_steps(seed, count);
  printf("%u\n", sum);
  return 0;
}
