/* Allocations of one function on two call paths, for MemProf. */
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static char *make(int size) {
  char *block = malloc((size_t)size);
  memset(block, 1, (size_t)size);
  return block;
}

__attribute__((noinline)) int short_lived(int size) {
  char *block = make(size);
  int sum = 0;
  for (int i = 0; i < size; i++)
    sum += block[i];
  free(block);
  return sum;
}

__attribute__((noinline)) int sometimes_leaked(int size) {
  char *block = make(size);
  int first = block[0];
  if (size % 3)
    free(block);
  return first;
}

int main(void) {
  int sum = 0;
  for (int i = 1; i < 50; i++)
    sum += short_lived(i) + sometimes_leaked(i);
  return sum == 1;
}
