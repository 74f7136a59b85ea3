/* Decisions of several conditions, for MC/DC. Arguments: SEED COUNT. */
#include <stdio.h>
#include <stdlib.h>

static int leap(unsigned year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

static int between(unsigned value, unsigned low, unsigned high) { return value >= low && value <= high; }

static unsigned grade(unsigned a, unsigned b, unsigned c) {
  if (a > 10 && (b > 10 || c > 10) && !(a == b && b == c))
    return 3;
  if ((a & 1) || (b & 1 && c & 1))
    return 2;
  return a < b && b < c ? 1 : 0;
}

int main(int argc, char **argv) {
  unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], 0, 10) : 1;
  unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], 0, 10) : 10;
  unsigned sum = 0;
  for (unsigned i = 0; i < count; i++) {
    sum += leap(1890 + seed * i) ? 1 : 0;
    sum += between(i, seed, seed + 10) ? 2 : 0;
    sum += grade(i, seed, i * seed % 20);
  }
  printf("%u\n", sum);
  return 0;
}
