/* Shared by plain.c and plain_more.c. */
#ifndef PLAIN_H
#define PLAIN_H

typedef unsigned (*step_fn)(unsigned);

unsigned more_steps(unsigned seed, unsigned count);
unsigned never_called(unsigned seed);

/* Lives in both objects: inlined where it is small enough, else one static copy in each. */
static inline unsigned rotate(unsigned value, unsigned by) {
  by &= 31;
  return by ? (value << by) | (value >> (32 - by)) : value;
}

#endif
