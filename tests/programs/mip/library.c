/* A shared library with an image of records of its own. */
void in_library(void) { __asm__ volatile(""); }

#ifdef TWO
void only_in_the_second(void) {}
#endif
