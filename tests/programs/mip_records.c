// Stands in for the runtime in tests of the instrumenter: what instrumented code refers to, and at exit the bytes of
// the record section into the file that RECORDS names, behind them the ring if there is one.
#include <stdio.h>
#include <stdlib.h>

#define HIDDEN __attribute__((visibility("hidden")))

extern HIDDEN const unsigned char __start___llvm_mipraw[], __stop___llvm_mipraw[];
extern __attribute__((weak)) HIDDEN const unsigned char __start___llvm_mipring[], __stop___llvm_mipring[];
HIDDEN unsigned __profkit_mip_ordinal = 1;
HIDDEN unsigned __profkit_mip_ring_next = 0;
HIDDEN int __profkit_mip_hook = 0;

__attribute__((destructor(101))) static void write_records(void) {
  const char *name = getenv("RECORDS");
  FILE *file = name ? fopen(name, "wb") : NULL;
  if (!file)
    return;
  fwrite(__start___llvm_mipraw, 1, (size_t)(__stop___llvm_mipraw - __start___llvm_mipraw), file);
  if (__start___llvm_mipring)
    fwrite(__start___llvm_mipring, 1, (size_t)(__stop___llvm_mipring - __start___llvm_mipring), file);
  fclose(file);
}
