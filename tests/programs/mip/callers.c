/* Counts the calls from each place to each function exactly, for programs that are compiled with -finstrument-functions. At
   exit it writes lines `CALLEE PLACE COUNT` to the file that CALLERS_FILE names, with the addresses that the linker gave. */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#define PLAIN __attribute__((no_instrument_function))
#define SLOTS (1u << 18)

static struct { char *callee, *place; unsigned long count; } slots[SLOTS];
static char *base;

void __cyg_profile_func_enter(void *callee, void *place) PLAIN;
void __cyg_profile_func_exit(void *callee, void *place) PLAIN;
static int first_image(struct dl_phdr_info *image, size_t size, void *unused) PLAIN;
static void set_base(void) PLAIN __attribute__((constructor(101)));
static void write_file(void) PLAIN __attribute__((destructor(101)));

void __cyg_profile_func_enter(void *callee, void *place) {
  unsigned long hash = ((unsigned long)callee * 31 + (unsigned long)place) * 0x9e3779b97f4a7c15ul;
  for (unsigned at = hash >> 46, tries = 0; tries < SLOTS; at = (at + 1) % SLOTS, tries++) {
    if (!slots[at].callee) {
      slots[at].callee = callee;
      slots[at].place = place;
    }
    if (slots[at].callee == callee && slots[at].place == place) {
      slots[at].count++;
      return;
    }
  }
  abort();
}

void __cyg_profile_func_exit(void *callee, void *place) {
  (void)callee;
  (void)place;
}

static int first_image(struct dl_phdr_info *image, size_t size, void *unused) {
  (void)size;
  (void)unused;
  base = (char *)image->dlpi_addr;
  return 1;
}

static void set_base(void) { dl_iterate_phdr(first_image, 0); }

static void write_file(void) {
  const char *name = getenv("CALLERS_FILE");
  FILE *file = name ? fopen(name, "w") : 0;
  if (!file)
    return;
  for (unsigned at = 0; at < SLOTS; at++)
    if (slots[at].callee)
      fprintf(file, "%lx %lx %lu\n", (unsigned long)(slots[at].callee - base), (unsigned long)(slots[at].place - base), slots[at].count);
  fclose(file);
}
