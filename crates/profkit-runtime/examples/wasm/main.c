// A WebAssembly module without a host interface. Whoever runs it calls `work`, then `profile`, and takes
// `profile_size` bytes from the memory of the module.
unsigned long long __llvm_profile_get_size_for_buffer(void);
int __llvm_profile_write_buffer(char *);

static char place[65536];

__attribute__((noinline)) int collatz(unsigned number) {
  int steps = 0;
  while (number != 1) {
    number = number % 2 ? 3 * number + 1 : number / 2;
    steps++;
  }
  return steps;
}

__attribute__((export_name("work"))) int work(unsigned count) {
  int steps = 0;
  for (unsigned number = 1; number <= count; number++) steps += collatz(number);
  return steps;
}

__attribute__((export_name("profile_size"))) unsigned profile_size(void) {
  return (unsigned)__llvm_profile_get_size_for_buffer();
}

__attribute__((export_name("profile"))) char *profile(void) {
  return profile_size() <= sizeof place && __llvm_profile_write_buffer(place) == 0 ? place : 0;
}
