// Functions inlined three deep, a loop and a cold call, without a library: the debug info of a small program.
static volatile int sink;

__attribute__((noinline, cold)) static void rare(int value) {
  sink = -value;
}

static inline int twice(int value) {
  return value * 2 + (value > 5 ? sink : 1);
}

static inline int folded(int value) {
  int sum = 0;
  for (int i = 0; i < value; i++)
    sum += twice(i) ^ twice(value);
  return sum;
}

__attribute__((noinline)) int work(int count) {
  int result = folded(count);
  if (__builtin_expect(result < 0, 0))
    rare(result);
  return result;
}

void _start(void) {
  sink = work(sink);
  for (;;)
    sink++;
}
