/* Tail calls leave no frame: each function but main ends in one. There is one way from each call to the last function. */
static volatile int seen[16];
#define APART __attribute__((noinline))
APART int last(int x) { for (int i = 0; i < 3; i++) seen[x & 15] += i; return seen[x & 7]; }
APART int second(int x) { seen[1] += x; return last(x + 1); }
APART int first(int x) { seen[2] += x; return second(x * 2); }
APART int other(int x) { seen[3] += x; return last(x - 1); }
int main(void) {
  int sum = 0;
  for (int i = 0; i < 100000; i++) {
    sum += first(i);
    sum += other(i);
  }
  return sum & 1;
}
