// A library that allocates, and calls back: contexts that go through two libraries.
#include <stdlib.h>

typedef void *(*allocator)(size_t);

__attribute__((noinline)) void *library_buffer(size_t size, int depth) {
  if (depth > 0)
    return library_buffer(size + 1, depth - 1);
  return malloc(size);
}

__attribute__((noinline)) void *library_through(allocator allocate, size_t size) {
  void *result = allocate(size);
  ((char *)result)[0] = 1;
  return result;
}
