/* Runs a function instruction by instruction. At each one the unwinder must find the way from there to main. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include <unwind.h>

int main(void);
static int steps, lost;

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *found) {
  if (_Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context)) == (void *)main)
    *(int *)found = 1;
  return _URC_NO_REASON;
}

static void step(int number) {
  int found = 0;
  (void)number;
  steps++;
  _Unwind_Backtrace(frame, &found);
  lost += !found;
}

__attribute__((noinline)) static int leaf(int n) {
  int product = 1;
  for (int i = 2; i <= n; i++)
    product = product % 3 == 1 ? product * i : product + i;
  return product;
}

__attribute__((noinline)) static int framed(int n) {
  volatile char room[n + 16];
  room[n] = (char)n;
  return n > 3 ? leaf(n) + room[n] : room[n];
}

__attribute__((noinline)) static int walked(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++)
    sum += i & 1 ? leaf(i) : framed(i);
  return sum;
}

int main(void) {
  signal(SIGTRAP, step);
  __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  int sum = walked(7);
  __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
  printf("%d: %d lost\n", sum, lost);
  return steps < 200;
}
