// What code of a real program does with the machine: jump tables of every width, exclusive accesses, inline assembly
// with labels of its own, registers under pressure, frames of any size, jumps out of and into functions.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline))

static unsigned state = 12345;

KEEP static unsigned next_random(void) {
  state = state * 1103515245u + 12345u;
  return state >> 8;
}

KEEP static int sum_of(int count, ...) {
  va_list values;
  int sum = 0;
  va_start(values, count);
  for (int i = 0; i < count; i++)
    sum += i & 1 ? (int)va_arg(values, double) : va_arg(values, int);
  va_end(values);
  return sum;
}

// A dense switch of small cases: clang and gcc make a table of bytes or half-words of it.
KEEP static int small_cases(int kind, int value) {
  switch (kind) {
  case 0: return value + 1;
  case 1: puts("one"); return value;
  case 2: return value * value;
  case 3: value ^= state; break;
  case 4: return abs(value) - 9;
  case 5: puts("five"); break;
  case 6: return value / 3;
  case 7: value = (int)next_random() & 7; break;
  case 9: return -value;
  case 10: puts("ten"); return 10;
  case 11: return value << 3;
  default: return -1;
  }
  return value & 255;
}

// Enough code behind the switch that a table of bytes reaches just so far without probes, and not with them.
#define CASE(n)                                                                                                        \
  case n:                                                                                                              \
    cell[n] += value * n;                                                                                              \
    if (value > n)                                                                                                     \
      cell[(n + 1) % 32] ^= value - n;                                                                                 \
    break;
KEEP static unsigned long many_cases(unsigned kind, long value, long *cell) {
  switch (kind) {
    CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
    CASE(13) CASE(14) CASE(15) CASE(16) CASE(17) CASE(18) CASE(19) CASE(20) CASE(21) CASE(22) CASE(23)
  }
  return (unsigned long)cell[kind % 32];
}

// The table's address is the same in every turn, so compilers may take it out of the loop.
KEEP static long interpret(const unsigned char *code, long value) {
  long stack[8] = {value};
  int top = 0;
  for (;;) {
    switch (*code++) {
    case 'a': stack[top] += 3; break;
    case 'b': stack[top] *= 5; break;
    case 'c': stack[top + 1] = stack[top] >> 1; top = (top + 1) & 3; break;
    case 'd': if (top) { stack[top - 1] ^= stack[top]; top--; } break;
    case 'e': if (stack[top] & 1) code++; break;
    case 'f': stack[top] -= (long)next_random() & 15; break;
    case 'g': stack[top] = -stack[top]; break;
    case 'h': if (stack[top] > 1000) stack[top] %= 777; break;
    case 0: return stack[top];
    default: printf("? %d\n", code[-1]); break;
    }
  }
}

KEEP static long threaded(const char *code, long value) {
  static const void *const labels[] = {&&add, &&twice, &&negate, &&done};
  goto *labels[*code++ & 3];
add:
  value += 7;
  goto *labels[*code++ & 3];
twice:
  value *= 2;
  goto *labels[*code++ & 3];
negate:
  value = -value;
  goto *labels[*code++ & 3];
done:
  return value;
}

// Many values alive at once, so that no register is idle.
KEEP static long pressure(const long *p, int n) {
  long a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7];
  long i = p[8], j = p[9], k = p[10], l = p[11], m = p[12], o = p[13], q = p[14], r = p[15];
  long s = p[16], t = p[17], u = p[18], v = p[19], w = p[20], x = p[21], y = p[22], z = p[23];
  for (int turn = 0; turn < n; turn++) {
    a += b ^ z; b -= c; c ^= d + turn; d += e; e -= f; f ^= g; g += h; h -= i;
    if (a & 1) { i += j; j ^= k; k -= l; l += m; }
    if (b & 2) { m ^= o; o -= q; q += r; r ^= s; }
    if (c & 4) { s += t; t -= u; u ^= v; v += w; } else { w -= x; x ^= y; y += z; z -= a; }
  }
  return a + b + c + d + e + f + g + h + i + j + k + l + m + o + q + r + s + t + u + v + w + x + y + z;
}

KEEP static int shared(int *p, int wanted, int next) {
  int turns = 0;
  while (!__atomic_compare_exchange_n(p, &wanted, next, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    if (++turns > 1000)
      break;
  __atomic_fetch_add(p, 3, __ATOMIC_SEQ_CST);
  __atomic_fetch_nand(p, 5, __ATOMIC_RELAXED);
  return __atomic_exchange_n(p, next + 1, __ATOMIC_ACQ_REL) + wanted;
}

KEEP static unsigned long assembly(unsigned long value) {
  unsigned long result = value;
#if defined(__aarch64__)
  __asm__ volatile("1: subs %0, %0, #3\n\tb.hi 1b\n\tcbz %0, 2f\n\tneg %0, %0\n2:" : "+r"(result) : : "cc");
  int cell = 4, old, failed;
  __asm__ volatile("1: ldxr %w0, %2\n\tadd %w0, %w0, #1\n\tstxr %w1, %w0, %2\n\tcbnz %w1, 1b"
                   : "=&r"(old), "=&r"(failed), "+Q"(cell));
  result += (unsigned long)cell;
#elif defined(__arm__)
  __asm__ volatile("1: subs %0, %0, #3\n\tbhi 1b\n\trsb %0, %0, #0" : "+r"(result) : : "cc");
#elif defined(__x86_64__)
  __asm__ volatile("1: subq $3, %0\n\tja 1b\n\tnegq %0" : "+r"(result) : : "cc");
#endif
  return result;
}

struct large {
  long part[40];
};

KEEP static struct large by_memory(struct large in, int k) {
  for (int i = 0; i < 40; i++)
    in.part[i] = in.part[(i * 7) % 40] + k;
  return in;
}

KEEP static int on_stack(int n) {
  char text[n + 1];
  memset(text, 'x', (size_t)n);
  text[n] = 0;
  return (int)strlen(text);
}

static jmp_buf back;

KEEP static void jump_back(int value) {
  if (value < 4)
    longjmp(back, value);
}

KEEP static double mixed(float a, double b, int c, long d, int e, int f, int g, int h, int i, int j, double k) {
  return a * b + c - d * e + f / (g + 1) - h * k + i - j;
}

KEEP static int deep(int n) { return n < 2 ? n : deep(n - 1) + deep(n - 2); }

KEEP static int tail_two(int n);
KEEP static int tail_one(int n) { return n <= 0 ? 1 : tail_two(n - 1); }
KEEP static int tail_two(int n) { return n <= 0 ? 2 : tail_one(n - 1); }

__attribute__((weak)) int weak_one(int a) { return a ^ 5; }
extern int other_name(int) __attribute__((alias("weak_one")));

int never_called(int a) { return a + (a ? puts("never") : 1); }

__attribute__((cold)) KEEP static void complain(int code) { printf("complaint %d\n", code); }

KEEP static int rarely(int *p, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) {
    if (__builtin_expect(p[i] < 0, 0)) {
      complain(p[i]);
      sum -= 1;
    }
    sum += p[i];
  }
  return sum;
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

__attribute__((constructor)) static void at_start(void) { state += 1; }
__attribute__((destructor)) static void at_end(void) { puts("end"); }

int main(int argc, char **argv) {
  int numbers[] = {5, -2, 3, 9, 1, 0, 44, -8};
  (void)argv;
  qsort(numbers, 8, sizeof(int), compare);
  for (int i = 0; i < 8; i++)
    printf("%d ", numbers[i]);
  printf("\n%d\n", sum_of(4, 1, 2.5, 3, 4.0));
  for (int i = -1; i < 13; i++)
    printf("%d ", small_cases(i, i * 5 - 20));
  long cells[32] = {0};
  unsigned long total = 0;
  for (unsigned i = 0; i < 24; i += 1 + i % 3)
    total += many_cases(i, 8 + argc, cells);
  printf("\n%lu\n", total);
  printf("%ld %ld\n", interpret((const unsigned char *)"abcaedbhgfba", 11), interpret((const unsigned char *)"zbhbh", 999));
  printf("%ld\n", threaded("\0\1\2\0\1\1\3", 5));
  long values[24];
  for (int i = 0; i < 24; i++)
    values[i] = i * i - 50;
  printf("%ld\n", pressure(values, 100));
  int cell = 4;
  printf("%d %d\n", shared(&cell, 4, 9), cell);
  printf("%lu\n", assembly(100));
  struct large large = {{1, 2, 3}};
  large = by_memory(large, 3);
  printf("%ld %d\n", large.part[7] + large.part[39], on_stack(77));
  int code = setjmp(back);
  jump_back(code + 1);
  printf("code %d\n", code);
  printf("%.3f\n", mixed(1.5f, 2.25, 3, 4, 5, 6, 7, 8, 9, 10, 11.5));
  printf("%d %d %d\n", deep(12), tail_one(9), tail_two(9));
  printf("%d %d\n", weak_one(3), other_name(4));
  printf("%d\n", rarely(numbers, argc > 5 ? 3 : 8));
  if (argc > 7)
    never_called(3);
  return 0;
}
