/* A library whose constructor takes a signal, with a handler of three arguments, before the program does. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

static void say(const char *text, size_t length) {
  if (write(1, text, length) < 0)
    _exit(1);
}

static void handler(int number, siginfo_t *info, void *context) {
  static const char right[] = "three arguments\n", wrong[] = "wrong arguments\n";
  if (number == SIGUSR1 && info && info->si_signo == number && info->si_pid == getpid() && context)
    say(right, sizeof right - 1);
  else
    say(wrong, sizeof wrong - 1);
}

__attribute__((constructor)) static void take(void) {
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  sigaction(SIGUSR1, &action, NULL);
}
