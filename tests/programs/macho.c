// For objects of systems whose headers are not at hand: nothing is included.
int external(int);
int global;

static __attribute__((noinline)) int local(int a) { return a * global; }

__attribute__((weak)) int weak(int a) { return a ? external(a) : 3; }

int table(unsigned kind, int *p) {
  switch (kind) {
  case 0: return external(1);
  case 1: p[1] = external(5); break;
  case 2: return p[3];
  case 3: p[4]++; break;
  case 4: return external(77);
  case 5: p[0]--; break;
  case 6: p[3] ^= p[2];
  }
  while (p[2]--)
    if (p[1] & 1)
      p[3] += local(p[4]);
  return weak(3);
}

int hinted(void) { return global; }

int leaf(const int *p) {
  int cells[20], sum = 0;
  for (int i = 0; i < 20; i++)
    cells[i] = p[i] * i;
  for (int i = 0; i < p[3]; i++)
    sum += cells[(unsigned)p[i] % 20];
  return sum;
}

int exchange(int *p, int from, int to) {
  return __atomic_compare_exchange_n(p, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? to : from;
}
