// A program with two libraries that allocate.
#include <stdlib.h>

void *library_buffer(size_t size, int depth);
typedef void *(*allocator)(size_t);
void *library_through(allocator allocate, size_t size);
void *second_buffer(size_t size);

__attribute__((noinline)) static void *own(size_t size) { return malloc(size + 7); }

int main(void) {
  void *all[4] = {library_buffer(100, 3), library_through(own, 50), library_through(second_buffer, 20), second_buffer(30)};
  for (int i = 0; i < 4; ++i)
    free(all[i]);
  return 0;
}
