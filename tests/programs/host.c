/* A program and a shared library, each with a profile of its own. Arguments: SEED COUNT. */
#include <stdio.h>
#include <stdlib.h>

unsigned plugin_run(unsigned seed, unsigned (*call_back)(unsigned), unsigned count);

static unsigned helper(unsigned value) { return value ^ 0x55; }

static unsigned shared_name(unsigned value) { return value % 2 ? helper(value) : value; }

int main(int argc, char **argv) {
  unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], 0, 10) : 1;
  unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], 0, 10) : 10;
  printf("%u\n", plugin_run(seed, shared_name, count) + plugin_run(seed, helper, count / 3));
  return 0;
}
