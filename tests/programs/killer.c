// Runs a program, counts its system calls, and kills it at the Nth: killer FROM N PROGRAM WORD… System calls are counted
// from the start of the program if FROM is "start", otherwise from the first getppid on. The exit code is that of the
// program if it came to its end, 1 if it was killed at the Nth call, 2 if it cannot be traced, 3 if another signal ended it.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
  int counting = !strcmp(words[1], "start");
  long left = atol(words[2]);
  pid_t child = fork();
  if (!child) {
    if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(2);
    raise(SIGSTOP);
    execv(words[3], words + 3);
    _exit(2);
  }
  int status, inside = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) return 2;
  ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  for (;;) {
    if (ptrace(PTRACE_SYSCALL, child, 0, 0) || waitpid(child, &status, 0) < 0) return 2;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return 3;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    inside = !inside;
    if (!inside) continue;
    if (counting && left-- == 0) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return 1;
    }
    long number = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user_regs_struct, orig_rax), 0);
    if (number == SYS_getppid) counting = 1;
  }
}
