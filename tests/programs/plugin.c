/* The shared library of host.c. */
static unsigned inside(unsigned value) {
  while (value > 1000)
    value /= 3;
  return value;
}

unsigned plugin_run(unsigned seed, unsigned (*call_back)(unsigned), unsigned count) {
  unsigned sum = seed;
  for (unsigned i = 0; i < count; i++)
    sum += call_back(sum) + inside(sum);
  return sum;
}

unsigned plugin_unused(unsigned seed) { return seed ? inside(seed) : 7; }
