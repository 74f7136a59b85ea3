// Sorting, searching and hashing: the program whose samples tests/programs/samples/perf.txt holds.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 4096

static uint32_t state = 7;

static inline uint32_t next(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

static int ascending(const void *one, const void *two) {
  uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)two;
  return a < b ? -1 : a > b;
}

static int by_low_bits(const void *one, const void *two) {
  uint32_t a = *(const uint32_t *)one & 0xfff, b = *(const uint32_t *)two & 0xfff;
  return a < b ? -1 : a > b;
}

static void insertion(uint32_t *list, int count, int (*compare)(const void *, const void *)) {
  for (int i = 1; i < count; i++)
    for (int j = i; j > 0 && compare(&list[j - 1], &list[j]) > 0; j--) {
      uint32_t swapped = list[j];
      list[j] = list[j - 1];
      list[j - 1] = swapped;
    }
}

__attribute__((noinline)) static void sort(uint32_t *list, int count, int (*compare)(const void *, const void *)) {
  if (count < 16) {
    insertion(list, count, compare);
    return;
  }
  uint32_t pivot = list[count / 2];
  int low = 0, high = count - 1;
  while (low <= high) {
    while (compare(&list[low], &pivot) < 0)
      low++;
    while (compare(&pivot, &list[high]) < 0)
      high--;
    if (low <= high) {
      uint32_t swapped = list[low];
      list[low++] = list[high];
      list[high--] = swapped;
    }
  }
  sort(list, high + 1, compare);
  sort(list + low, count - low, compare);
}

__attribute__((noinline)) static int search(const uint32_t *list, int count, uint32_t wanted) {
  int low = 0, high = count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (list[middle] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static uint32_t mix(uint32_t hash, uint32_t word) {
  hash ^= word;
  return hash * 16777619u;
}

__attribute__((noinline)) static uint32_t hash(const uint32_t *list, int count) {
  uint32_t sum = 2166136261u;
  for (int i = 0; i < count; i++) {
    if (list[i] & 1)
      sum = mix(sum, list[i]);
    else
      sum = mix(mix(sum, list[i] >> 16), list[i] & 0xffff);
  }
  return sum;
}

int main(int argc, char **argv) {
  static uint32_t list[COUNT], copy[COUNT];
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  uint32_t sum = 0;
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < COUNT; i++)
      list[i] = next();
    memcpy(copy, list, sizeof list);
    sort(list, COUNT, round & 1 ? ascending : by_low_bits);
    for (int i = 0; i < COUNT; i += 3)
      sum += (uint32_t)search(list, COUNT, copy[i]);
    sum ^= hash(copy, COUNT);
  }
  printf("%u\n", sum);
  return 0;
}
