/* Calls `f` in ways that a sample of call sites may get wrong. Prints how often each function was called from where.
   Usage: edges alternate|rare|threads|signals|fork|many|large N */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile int sink;
static volatile long handled;

NOINLINE void f(void) { sink = 1; }
NOINLINE void once(void) { sink = 2; }
NOINLINE void first(void) { f(); sink = 3; }
NOINLINE void second(void) { f(); sink = 4; }

static void *thread(void *count) {
  for (long i = 0; i < *(long *)count; i++) {
    first();
    if (i % 4 == 0)
      second();
  }
  once();
  return 0;
}

static void handler(int number) {
  (void)number;
  handled++;
  second();
}

/* 64 functions, each called from 8 places: 512 pairs. */
#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define ALL(X) EIGHT(X, 0) EIGHT(X, 1) EIGHT(X, 2) EIGHT(X, 3) EIGHT(X, 4) EIGHT(X, 5) EIGHT(X, 6) EIGHT(X, 7)
#define DEFINE(n) NOINLINE void g##n(void) { sink = 5; }
ALL(DEFINE)
#define CALL(n) g##n(); sink = 6;
static NOINLINE void round_(void) {
  ALL(CALL) ALL(CALL) ALL(CALL) ALL(CALL) ALL(CALL) ALL(CALL) ALL(CALL) ALL(CALL)
}

/* The records of this image, which the linker joins. */
extern unsigned __start___llvm_mipraw[] __attribute__((weak, visibility("hidden")));
extern unsigned __stop___llvm_mipraw[] __attribute__((weak, visibility("hidden")));

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  long count = argc > 2 ? atol(argv[2]) : 1000;
  if (!strcmp(how, "alternate")) {
    for (long i = 0; i < count; i++) {
      first();
      second();
    }
    printf("first %ld second %ld\n", count, count);
  } else if (!strcmp(how, "rare")) {
    for (long i = 0; i < count; i++)
      if (i % 1000 == 999)
        second();
      else
        first();
    printf("first %ld second %ld\n", count - count / 1000, count / 1000);
  } else if (!strcmp(how, "threads")) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
      pthread_create(&threads[i], 0, thread, &count);
    for (int i = 0; i < 4; i++)
      pthread_join(threads[i], 0);
    printf("first %ld second %ld\n", 4 * count, (count + 3) / 4 * 4);
  } else if (!strcmp(how, "signals")) {
    struct itimerval often = {{0, 50}, {0, 50}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, 0);
    for (long i = 0; i < count; i++)
      first();
    signal(SIGALRM, SIG_IGN);
    printf("first %ld second %ld\n", count, handled);
  } else if (!strcmp(how, "fork")) {
    for (long i = 0; i < count; i++)
      first();
    if (!fork()) {
      for (long i = 0; i < 3 * count; i++)
        second();
      return 0;
    }
    wait(0);
    printf("first %ld second %ld\n", count, 3 * count);
  } else if (!strcmp(how, "many")) {
    for (long i = 0; i < count; i++)
      round_();
    printf("first 0 second 0\n");
  } else if (!strcmp(how, "large")) {
    /* Seven calls make the count of f, and of nothing else, 6. It is set close to the largest signed number. */
    for (int i = 0; i < 7; i++)
      f();
    for (unsigned *word = __start___llvm_mipraw; word < __stop___llvm_mipraw; word += 2)
      if (*word == 6)
        *word = 0x7fffffffu - 10;
    for (long i = 0; i < count; i++)
      f();
    printf("first 0 second 0\n");
  }
  fflush(stdout);
  return 0;
}
