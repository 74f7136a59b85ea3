// A program of a few functions for correlation, which links without a run-time library on any system.
int __llvm_profile_runtime;

#ifdef _WIN32
// What the run-time library puts around the counters.
__attribute__((section(".lprfc$A"))) char counters_begin = 0;
__attribute__((section(".lprfc$Z"))) char counters_end = 0;
#endif

static int helper(int x) { return x > 2 ? x * 2 : x + 1; }

int twice(int x) {
  int r = 0;
  while (x-- > 0) r += 2;
  return r;
}

int start(void) {
  int s = 0;
  for (int i = 0; i < 9; i++) s += helper(twice(i));
  return s;
}
