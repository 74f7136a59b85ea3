/* What the tests of the MIP runtime run. Each argument is one thing to do. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int __profkit_mip_dump(void) __attribute__((visibility("hidden")));
void __profkit_mip_reset(void) __attribute__((visibility("hidden")));

__attribute__((noinline)) static void first(void) { __asm__ volatile(""); }
__attribute__((noinline)) static void second(void) { __asm__ volatile(""); }
__attribute__((noinline)) static void never(void) { __asm__ volatile(""); }

static void *many(void *unused) {
  for (int i = 0; i < 20000; i++)
    second();
  return unused;
}

static void handler(int number) {
  static const char text[] = "own handler\n";
  (void)number;
  if (write(1, text, sizeof text - 1) < 0)
    abort();
}

int main(int count, char **words) {
  int code = 7;
  for (int i = 1; i < count; i++) {
    const char *word = words[i];
    if (!strcmp(word, "first"))
      first();
    else if (!strcmp(word, "second"))
      second();
    else if (!strcmp(word, "never-in-fact") && count > 100)
      never();
    else if (!strcmp(word, "dump"))
      printf("dump %d\n", __profkit_mip_dump());
    else if (!strcmp(word, "reset"))
      __profkit_mip_reset();
    else if (!strcmp(word, "_exit"))
      fflush(stdout), _exit(9);
    else if (!strcmp(word, "raise"))
      raise(SIGUSR1);
    else if (!strcmp(word, "kill"))
      raise(SIGKILL);
    else if (!strcmp(word, "handle"))
      signal(SIGUSR1, handler);
    else if (!strcmp(word, "overwrite"))
      memset(getenv("LLVM_MIP_PROFILE_FILENAME"), 'x', 4);
    else if (!strcmp(word, "fork")) {
      fflush(stdout);
      if (fork() == 0) {
        second();
        exit(0);
      }
      wait(NULL);
    } else if (!strcmp(word, "threads")) {
      pthread_t threads[4];
      for (int t = 0; t < 4; t++)
        pthread_create(&threads[t], NULL, many, NULL);
      for (int t = 0; t < 20; t++)
        __profkit_mip_dump();
      for (int t = 0; t < 4; t++)
        pthread_join(threads[t], NULL);
    } else if (!strncmp(word, "./", 2)) {
      void *library = dlopen(word, RTLD_NOW);
      if (!library)
        return fprintf(stderr, "%s\n", dlerror()), 1;
      ((void (*)(void))dlsym(library, "in_library"))();
      dlclose(library);
    }
  }
  return code;
}
