// A kernel module: functions in the sections that the kernel places apart, data, and a function of the kernel.
extern int register_thing(int);
static volatile int seen[64];

__attribute__((noinline, cold)) static int odd(int x) {
  seen[x & 63] += x;
  return x * 3 + 1;
}

static inline int twice(int x) { return seen[x & 31] + 2 * x; }

__attribute__((noinline)) int step(int x) {
  if (x & 1)
    return odd(x);
  for (int i = 0; i < 8; i++)
    x += twice(i);
  return x / 2;
}

__attribute__((section(".init.text"))) int init_module(void) {
  return register_thing(step(1));
}

__attribute__((section(".exit.text"))) void cleanup_module(void) {
  seen[0] = step(2);
}

__attribute__((section(".gnu.linkonce.this_module"))) char this_module[64];
