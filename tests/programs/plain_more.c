#include "plain.h"

/* The same name as in plain.c, with another body: local linkage puts the file name into the profile's name. */
static unsigned helper(unsigned value) {
  if (value % 5 == 0)
    return value / 5;
  return value + 3;
}

static unsigned halve(unsigned value) { return value / 2; }
static unsigned negate(unsigned value) { return 0u - value; }

unsigned more_steps(unsigned seed, unsigned count) {
  step_fn const own[] = {helper, halve, negate};
  unsigned sum = seed;
  for (unsigned i = 0; i < count; i++) {
    step_fn step = own[(i + seed) % 3];
    sum = rotate(step(sum) + i, i);
  }
  return sum;
}
