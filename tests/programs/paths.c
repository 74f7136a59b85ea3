// A parser with paths that are taken and paths that are not, whose calls tell them apart. Argument: the text.
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long seen;

__attribute__((noinline)) void hot_digit(int c) { seen += (unsigned)c; }
__attribute__((noinline)) void hot_space(void) { seen ^= 1; }
__attribute__((noinline)) void cold_letter(int c) { fprintf(stderr, "letter %c\n", c); }
__attribute__((noinline)) void cold_sign(int c) { fprintf(stderr, "sign %c\n", c); }
__attribute__((noinline)) void cold_end(unsigned long sum) { fprintf(stderr, "sum %lu\n", sum); }

__attribute__((noinline)) unsigned long parse(const char *text) {
  unsigned long sum = 0;
  for (; *text; text++) {
    if (*text >= '0' && *text <= '9') {
      hot_digit(*text);
      sum = sum * 10 + (unsigned)(*text - '0');
    } else if (*text == ' ') {
      hot_space();
    } else if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z')) {
      cold_letter(*text);
      sum += 3;
    } else {
      cold_sign(*text);
      sum ^= 5;
    }
  }
  if (sum > 1000000)
    cold_end(sum);
  return sum;
}

static inline unsigned long twice(unsigned long value) {
  return value * 2 + (value > 9 ? seen : 1);
}

__attribute__((noinline)) void setup(void) { seen = 1; }
__attribute__((noinline)) void unused(void) { abort(); }

int main(int argc, char **argv) {
  setup();
  for (int i = 1; i < argc; i++)
    printf("%lu\n", twice(parse(argv[i])));
  if (argc > 90)
    unused();
  return 0;
}
