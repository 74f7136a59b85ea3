/* gcc moves the unlikely blocks of `work` and `idle` to parts of their own, `work.cold` and `idle.cold`. The first runs. */
#include <stdio.h>

__attribute__((noinline, cold)) void complain(int value) { fprintf(stderr, "%d\n", value); }

__attribute__((noinline)) int work(int value) {
  if (value == 3) {
    complain(value);
    complain(value + 1);
    return -1;
  }
  return value * 2 + 1;
}

__attribute__((noinline)) int idle(int value) {
  if (value == 99) {
    complain(value);
    complain(value + 2);
    return -1;
  }
  return value * 5 + 1;
}

int main(void) {
  int sum = 0;
  for (int value = 0; value < 5; value++) {
    sum += work(value) + idle(value);
  }
  printf("%d\n", sum);
  return 0;
}
