/* What programs call that are built with one of clang's kinds of instrumentation and without its runtime: nothing is done. */
void __cyg_profile_func_enter_bare(void) {}
void __sanitizer_cov_8bit_counters_init(char *start, char *stop) { (void)start, (void)stop; }
void __sanitizer_cov_bool_flag_init(char *start, char *stop) { (void)start, (void)stop; }
