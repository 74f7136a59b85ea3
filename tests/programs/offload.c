// Writes raw profiles as programs with code for GPUs do. That of the host is written when the program ends. For each
// word on the command line, a profile with this word as its target is written by the function that the plugins of
// LLVM's offloading and its ROCm runtime call after they have copied the sections of a GPU: here these are copies of
// the host's, so that the functions have the same names and hashes, with counters of their own.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// LLVM 23 counts threads that enter a block with their whole wave, too, in counters of their own.
#define HAS_UNIFORM (__clang_major__ >= 23)
#define THREADS 64

// A data record of raw version 10 or 11.
struct record {
  uint64_t name, hash;
  int64_t counters;
#if HAS_UNIFORM
  int64_t uniform;
#endif
  int64_t bitmap, function, values;
  uint32_t counter_count;
  uint16_t sites[3], wave_size;
  uint32_t bitmap_size;
};

extern const struct record *__llvm_profile_begin_data(void), *__llvm_profile_end_data(void);
extern const char *__llvm_profile_begin_names(void), *__llvm_profile_end_names(void);
extern char *__llvm_profile_begin_counters(void), *__llvm_profile_end_counters(void);
#if HAS_UNIFORM
extern int __llvm_write_custom_profile(const char *, const struct record *, const struct record *, const char *,
                                       const char *, const char *, const char *, const char *, const char *,
                                       const uint64_t *);
#else
extern int __llvm_write_custom_profile(const char *, const struct record *, const struct record *, const char *,
                                       const char *, const char *, const char *, const uint64_t *);
#endif

#define NO_PROFILE __attribute__((no_profile_instrument_function))

NO_PROFILE static void write_profile(const char *target, int number) {
  const char *host_data = (const char *)__llvm_profile_begin_data();
  const char *host_counters = __llvm_profile_begin_counters();
  size_t data_size = (const char *)__llvm_profile_end_data() - host_data;
  size_t counters_size = __llvm_profile_end_counters() - host_counters;
  size_t names_size = __llvm_profile_end_names() - __llvm_profile_begin_names();
  char *data = malloc(data_size + 2 * counters_size + names_size);
  char *counters = data + data_size, *uniform = counters + counters_size, *names = uniform + counters_size;
  memcpy(data, host_data, data_size);
  memcpy(names, __llvm_profile_begin_names(), names_size);
  for (size_t i = 0; i < counters_size / 8; i++) {
    uint64_t count = ((const uint64_t *)host_counters)[i] * THREADS * number;
    ((uint64_t *)counters)[i] = count;
    // Threads of every third block enter it alone; which ones, depends on the device.
    ((uint64_t *)uniform)[i] = (i + number) % 3 == 0 ? count / 2 : count;
  }
  size_t count = data_size / sizeof(struct record);
  for (size_t i = 0; i < count; i++) {
    struct record *one = (struct record *)data + i;
    int64_t offset = host_data + i * sizeof *one + one->counters - host_counters;
    int64_t from_record = (int64_t)(data_size - i * sizeof *one) + offset;
    one->counters = from_record;
#if HAS_UNIFORM
    one->uniform = from_record + (int64_t)counters_size;
    one->wave_size = THREADS;
#endif
    one->bitmap = one->function = one->values = 0;
    memset(one->sites, 0, sizeof one->sites);
  }
  int failed = __llvm_write_custom_profile(target, (struct record *)data, (struct record *)data + count, counters,
                                           uniform,
#if HAS_UNIFORM
                                           uniform, names,
#endif
                                           names, names + names_size, NULL);
  if (failed)
    fprintf(stderr, "the profile of %s cannot be written\n", target);
  free(data);
}

// Functions of the host and of the device.
__attribute__((noinline)) static int clamp(int value) { return value > 100 ? 100 : value; }

__attribute__((noinline)) int kernel(int threads) {
  int sum = 0;
  for (int i = 0; i < threads; i++)
    sum += i % 3 ? clamp(i * 7) : 1;
  return sum;
}

int main(int count, char **targets) {
  printf("%d\n", kernel(50));
  for (int i = 1; i < count; i++)
    write_profile(targets[i], i);
  return 0;
}
