// Another library that allocates.
#include <stdlib.h>

__attribute__((noinline)) void *second_buffer(size_t size) { return calloc(size, 2); }
