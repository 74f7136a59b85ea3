/* A program without libc, for Linux on x86-64: its MIP runtime gives it the bytes of its raw file, which it writes to standard
   output by system calls of its own. */
typedef unsigned long size;
#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN int __profkit_mip_write(int (*function)(void *, const void *, size), void *context);

static long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

__attribute__((noinline)) void used(void) { __asm__ volatile(""); }
__attribute__((noinline)) void never(void) { __asm__ volatile(""); }

static int write_all(void *context, const void *bytes, size length) {
  return call(1, *(int *)context, (long)bytes, (long)length) == (long)length ? 0 : 1;
}

__attribute__((force_align_arg_pointer)) void _start(void) {
  int output = 1;
  used();
  if (call(39, 0, 0, 0) < 0)
    never();
  int failed = __profkit_mip_write(write_all, &output);
  call(60, failed ? 1 : 7, 0, 0);
}
