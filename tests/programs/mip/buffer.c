/* A program whose MIP runtime has no files: it asks for the bytes of its raw file, in two ways. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))
typedef int sink(void *context, const void *bytes, size_t length);
HIDDEN int __profkit_mip_write(sink *function, void *context);
HIDDEN size_t __profkit_mip_size(void);
HIDDEN size_t __profkit_mip_copy(void *buffer, size_t size);
HIDDEN void __profkit_mip_reset(void);

struct buffer {
  char *end;
  int nested;
};

__attribute__((noinline)) void used(void) { __asm__ volatile(""); }
__attribute__((noinline)) void never(void) { __asm__ volatile(""); }

__attribute__((noinline)) static int refuse(void *context, const void *bytes, size_t length) {
  (void)context, (void)bytes, (void)length;
  return 5;
}

__attribute__((noinline)) static int collect(void *context, const void *bytes, size_t length) {
  struct buffer *buffer = context;
  buffer->nested = __profkit_mip_write(refuse, NULL);
  memcpy(buffer->end, bytes, length);
  buffer->end += length;
  return 0;
}

int main(int count, char **words) {
  (void)words;
  used();
  used();
  used();
  if (count > 100)
    never();
  size_t size = __profkit_mip_size();
  char *copied = malloc(size), *collected = malloc(size);
  printf("too small %zu\n", __profkit_mip_copy(copied, size - 1));
  printf("failed %d\n", __profkit_mip_write(refuse, NULL));
  struct buffer buffer = {collected, 0};
  if (__profkit_mip_write(collect, &buffer) != 0)
    return 1;
  printf("nested %d\n", buffer.nested);
  buffer.end = collected;
  if (__profkit_mip_write(collect, &buffer) != 0 || buffer.end != collected + size)
    return 2;
  if (__profkit_mip_copy(copied, size) != size || __profkit_mip_copy(collected, size) != size)
    return 3;
  printf("equal %d\n", !memcmp(copied, collected, size));
  FILE *file = fopen("buffer.raw", "wb");
  if (!file || fwrite(copied, 1, size, file) != size || fclose(file) != 0)
    return 4;
  return 0;
}
