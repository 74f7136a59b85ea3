//! Generates helper functions with unusual constructs of C. Each is a static function `uint64_t NAME(uint64_t x,
//! uint64_t y)`. If a helper needs other functions, they are written before it.
use crate::Rng;
use std::fmt::Write as _;

/// The helper functions of one file. Helpers are numbered anew in each file, so that several files have static
/// functions with the same names.
#[derive(Debug, Default)]
pub struct Helpers {
    text: String,
    count: usize,
}

impl Helpers {
    /// Returns the text that was added since the last call.
    pub fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

/// A function that generates a helper. Its arguments are the index of the helper in its file, two constants below 2^56,
/// and a number from 0 to 7.
type Feature = fn(usize, u64, u64, usize) -> String;

const FEATURES: [Feature; 22] = [
    varargs,
    varargs_of_doubles,
    many_arguments,
    big_struct,
    small_struct,
    longjmp,
    allocates_on_the_stack,
    interpreter,
    tail_recursion,
    mutual_recursion,
    cold_path,
    inline_assembly,
    static_chain,
    other_calling_convention,
    wide_integers,
    long_doubles,
    complex_numbers,
    vectors,
    thread_local,
    sorting,
    alias,
    bit_fields,
];

/// Adds a helper function and returns its name.
pub fn any(rng: &mut Rng, helpers: &mut Helpers) -> String {
    let number = helpers.count;
    helpers.count += 1;
    let feature = FEATURES[rng.below(FEATURES.len())];
    let (first, second) = (rng.bits() >> 8, rng.bits() >> 8);
    let text = feature(number, first, second, rng.below(8));
    let _ = writeln!(helpers.text, "{text}");
    format!("helper{number}")
}

/// Returns the first line of a helper function. Every second helper has an attribute that prevents inlining.
fn head(n: usize, small: usize) -> String {
    let attribute = ["NOINLINE ", "", "inline ", "NOINLINE "][small % 4];
    format!("static {attribute}uint64_t helper{n}(uint64_t x, uint64_t y)")
}

fn varargs(n: usize, c: u64, _: u64, s: usize) -> String {
    let count = 1 + s * 2;
    let values: Vec<String> = (0..count).map(|i| format!("x + {i}u")).collect();
    format!(
        "static uint64_t sum_of{n}(unsigned count, ...) {{\n  va_list list; uint64_t sum = {c:#x}ull;\n  va_start(list, count);\n  \
         while (count--) sum = sum * 31 + va_arg(list, uint64_t);\n  va_end(list); return sum;\n}}\n\
         {} {{ return sum_of{n}({count}, {}) ^ y; }}",
        head(n, s),
        values.join(", ")
    )
}

/// Generates a variadic call with floating-point arguments. The caller passes the number of vector registers in a
/// register, which no prologue may change.
fn varargs_of_doubles(n: usize, c: u64, _: u64, s: usize) -> String {
    let count = 1 + s;
    let values: Vec<String> = (0..count)
        .map(|i| format!("(double)((x >> {i}) & 255)"))
        .collect();
    format!(
        "static NOINLINE uint64_t doubles_of{n}(unsigned count, ...) {{\n  va_list list; double sum = {}.5;\n  va_start(list, count);\n  \
         while (count--) sum = sum * 0.25 + va_arg(list, double);\n  va_end(list); return of_double(sum * 64.0);\n}}\n\
         {} {{ return doubles_of{n}({count}, {}) + y; }}",
        c & 1023,
        head(n, s),
        values.join(", ")
    )
}

fn many_arguments(n: usize, c: u64, d: u64, s: usize) -> String {
    format!(
        "static NOINLINE double wide{n}(double a, double b, uint64_t i, double c, double d, double e, double f, double g, \
         double h, double k, double l, uint64_t j, uint64_t m, uint64_t o, uint64_t p, uint64_t q, uint64_t r) {{\n  \
         return a - b + c * 2 - d + e * 0.5 + f - g + h * 3 - k + l + (double)((i ^ j ^ m) & 255) + (double)((o + p * 3 + q * 5 + r * 7) & 1023);\n}}\n\
         {} {{\n  double z = (double)(x & 4095);\n  \
         return of_double(wide{n}(z, 1.5, x, z + 2, 3, z * 2, 5, 6.25, z - 7, 8, {}.75, y, x >> 3, y >> 5, {d:#x}ull, x ^ y, 9));\n}}",
        head(n, s),
        c & 4095,
    )
}

fn big_struct(n: usize, c: u64, d: u64, s: usize) -> String {
    format!(
        "struct big{n} {{ uint64_t words[{}]; double number; char tail[{}]; }};\n\
         static NOINLINE struct big{n} turn{n}(struct big{n} in, uint64_t by) {{\n  \
         for (unsigned i = 0; i < sizeof in.words / 8; i++) in.words[i] = mix(in.words[i] + by);\n  \
         in.number += 1.5; in.tail[0] ^= (char)1; return in;\n}}\n\
         {} {{\n  struct big{n} value; memset(&value, 3, sizeof value); value.number = 2.0; value.words[0] = x;\n  \
         value = turn{n}(value, {c:#x}ull); value = turn{n}(value, y ^ {d:#x}ull);\n  \
         return value.words[0] ^ of_double(value.number) ^ (unsigned char)value.tail[0];\n}}",
        2 + s * 3,
        1 + s,
        head(n, s)
    )
}

fn small_struct(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "struct pair{n} {{ uint32_t low; double high; }};\n\
         static NOINLINE struct pair{n} pair_of{n}(uint64_t x, struct pair{n} old) {{\n  \
         struct pair{n} made = {{ (uint32_t)x ^ old.low, (double)(x & 65535) + old.high * 0.5 }}; return made;\n}}\n\
         {} {{\n  struct pair{n} value = {{ {}u, 1.0 }};\n  \
         for (unsigned i = 0; i < {}; i++) value = pair_of{n}(x + i, value);\n  return value.low ^ of_double(value.high) ^ y;\n}}",
        head(n, s),
        c & 0xffff_ffff,
        1 + s
    )
}

fn longjmp(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "static jmp_buf jump{n};\n\
         static NOINLINE uint64_t deep{n}(uint64_t x, unsigned left) {{\n  \
         if (left == 0) longjmp(jump{n}, 1 + (int)(x & 3));\n  return deep{n}(x * 3 + 1, left - 1) + 1;\n}}\n\
         {} {{\n  volatile uint64_t kept = x ^ {c:#x}ull; volatile int got = 0;\n  \
         switch (setjmp(jump{n})) {{\n  case 0: kept += deep{n}(y, {s}); break;\n  case 1: got = 11; break;\n  \
         case 2: got = 22; break;\n  default: got = 33; break;\n  }}\n  return kept + (uint64_t)got;\n}}",
        head(n, s)
    )
}

fn allocates_on_the_stack(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "{} {{\n  unsigned size = 16 + (unsigned)(x % {});\n  unsigned char *bytes = __builtin_alloca(size);\n  \
         uint32_t counts[1 + (y & 7)];\n  memset(bytes, (int)(x & 255), size); memset(counts, 0, sizeof counts);\n  \
         for (unsigned i = 0; i < size; i++) counts[bytes[i] % (1 + (y & 7))] += i + bytes[size - 1 - i];\n  \
         return mix(counts[0] ^ {c:#x}ull ^ size);\n}}",
        head(n, s),
        1 + s * 700
    )
}

/// Generates a function with computed gotos.
fn interpreter(n: usize, c: u64, d: u64, s: usize) -> String {
    format!(
        "{} {{\n  static const void *const places[] = {{ &&add, &&twice, &&flip, &&swap, &&back, &&end }};\n  \
         uint64_t code = {c:#x}ull ^ (x & 0xffff); uint64_t acc = x, other = y; unsigned steps = {};\n\
         #define NEXT do {{ if (steps-- == 0) goto end; acc += steps; goto *places[(code = mix(code + {d:#x}ull)) % 6]; }} while (0)\n  \
         NEXT;\nadd: acc += other; NEXT;\ntwice: acc = acc * 2 + 1; NEXT;\nflip: acc = ~acc; NEXT;\n\
         swap: {{ uint64_t held = acc; acc = other; other = held; }} NEXT;\nback: other ^= acc >> 7; NEXT;\n\
         end:\n#undef NEXT\n  return acc ^ other;\n}}",
        head(n, s),
        5 + s * 4
    )
}

fn tail_recursion(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "static uint64_t down{n}(uint64_t x, uint64_t left) {{ return left == 0 ? x : down{n}(mix(x + {c:#x}ull), left - 1); }}\n\
         {} {{ return down{n}(x, y % {}); }}",
        head(n, s),
        2 + s * 5
    )
}

fn mutual_recursion(n: usize, c: u64, d: u64, s: usize) -> String {
    format!(
        "static NOINLINE uint64_t even{n}(uint64_t x, unsigned left);\n\
         static NOINLINE uint64_t odd{n}(uint64_t x, unsigned left) {{ return left == 0 ? x ^ {c:#x}ull : even{n}(x * 5, left - 1) + 1; }}\n\
         static NOINLINE uint64_t even{n}(uint64_t x, unsigned left) {{ return left == 0 ? x + {d:#x}ull : odd{n}(x >> 1, left - 1); }}\n\
         {} {{ return even{n}(x, (unsigned)(y % {})); }}",
        head(n, s),
        2 + s * 3
    )
}

/// Generates a function with an unlikely part, which compilers move to another place.
fn cold_path(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "__attribute__((cold, noinline)) static uint64_t rare{n}(uint64_t x) {{ events++; return mix(x); }}\n\
         {} {{\n  if (__builtin_expect((x % {}) == 0, 0)) {{\n    uint64_t sum = 0;\n    \
         for (unsigned i = 0; i < 5; i++) sum += rare{n}(y + i) ^ {c:#x}ull;\n    \
         memory[sum & 63] += sum; return sum;\n  }}\n  return x + y;\n}}",
        head(n, s),
        2 + s
    )
}

/// Generates a function with inline assembly that contains labels and its own section.
fn inline_assembly(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "#if defined(__x86_64__)\n\
         #define TURN(v) __asm__ volatile(\"{{testq %0, %0|test %0, %0}}\\n\\tje 1f\\n\\t{{rolq $3, %0|rol %0, 3}}\\n1:\\n\\t\" \\\n  \
         \".pushsection .discard.notes,\\\"a\\\",@progbits\\n\\t.byte {s}\\n\\t.popsection\" : \"+r\"(v) : : \"cc\")\n\
         #else\n#define TURN(v) ((v) = (v) == 0 ? 0 : ((v) << 3) | ((v) >> 61))\n#endif\n\
         {} {{\n  uint64_t v = x ^ {c:#x}ull;\n  for (unsigned i = 0; i < {}; i++) {{ TURN(v); v += y; }}\n  return v;\n}}\n#undef TURN",
        head(n, s),
        1 + s
    )
}

/// Generates a nested function. It gets the address of the outer function's frame in a separate register.
fn static_chain(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "#if defined(__GNUC__) && !defined(__clang__)\n\
         {head} {{\n  uint64_t sum = {c:#x}ull;\n  \
         auto NOINLINE void add{n}(uint64_t by, unsigned left);\n  \
         void add{n}(uint64_t by, unsigned left) {{ sum = sum * 7 + by; if (left) add{n}(by + x, left - 1); }}\n  \
         add{n}(y, {s}); return sum;\n}}\n\
         #else\n\
         {head} {{\n  uint64_t sum = {c:#x}ull, by = y;\n  \
         for (unsigned i = 0; i <= {s}; i++) {{ sum = sum * 7 + by; by += x; }}\n  return sum;\n}}\n#endif",
        head = head(n, s)
    )
}

fn other_calling_convention(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "#if defined(__x86_64__)\n#define OTHER __attribute__((ms_abi))\n#else\n#define OTHER\n#endif\n\
         static NOINLINE OTHER uint64_t other{n}(uint64_t a, double b, uint64_t c, uint64_t d, uint64_t e) {{\n  \
         return mix(a + c * 3 + d * 5 + e * 7) ^ of_double(b);\n}}\n\
         {} {{ return other{n}(x, (double)(y & 255), y, {c:#x}ull, x ^ y); }}\n#undef OTHER",
        head(n, s)
    )
}

fn wide_integers(n: usize, c: u64, d: u64, s: usize) -> String {
    format!(
        "static NOINLINE unsigned __int128 wide_product{n}(unsigned __int128 a, uint64_t b) {{ return a * b + {c:#x}ull; }}\n\
         {} {{\n  unsigned __int128 v = x;\n  for (unsigned i = 0; i < {}; i++) v = wide_product{n}(v ^ {d:#x}ull, y | 1);\n  \
         return (uint64_t)(v >> 64) ^ (uint64_t)v;\n}}",
        head(n, s),
        1 + s
    )
}

fn long_doubles(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "static NOINLINE long double half{n}(long double v, uint64_t add) {{ return v * 0.5L + (long double)(add & 1023); }}\n\
         {} {{\n  long double v = (long double)({}u);\n  for (unsigned i = 0; i < {}; i++) v = half{n}(v, x + i * y);\n  \
         return of_double((double)v);\n}}",
        head(n, s),
        c & 0xffff,
        1 + s
    )
}

fn complex_numbers(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "static NOINLINE _Complex double turned{n}(_Complex double z, double by) {{\n  \
         double re = __real__ z, im = __imag__ z; _Complex double out;\n  \
         __real__ out = re * 0.25 - im * 0.5 + by; __imag__ out = re * 0.5 + im * 0.25; return out;\n}}\n\
         {} {{\n  _Complex double z; __real__ z = (double)(x & 255); __imag__ z = {}.0;\n  \
         for (unsigned i = 0; i < {}; i++) z = turned{n}(z, (double)(y & 15));\n  \
         return of_double(__real__ z) ^ of_double(__imag__ z);\n}}",
        head(n, s),
        c & 255,
        1 + s
    )
}

fn vectors(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "typedef uint32_t quad{n} __attribute__((vector_size(16)));\n\
         static NOINLINE quad{n} blend{n}(quad{n} a, quad{n} b) {{ return (a ^ b) * 5 + (a >> 3); }}\n\
         {} {{\n  quad{n} v = {{ (uint32_t)x, (uint32_t)y, {}u, {s}u }};\n  \
         for (unsigned i = 0; i < {}; i++) v = blend{n}(v, v + i);\n  return ((uint64_t)v[0] << 32 | v[1]) ^ ((uint64_t)v[2] << 7) ^ v[3];\n}}",
        head(n, s),
        c & 0xffff_ffff,
        1 + s
    )
}

fn thread_local(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "static __thread uint64_t local{n} = {c:#x}ull;\n\
         static NOINLINE uint64_t *place{n}(void) {{ return &local{n}; }}\n\
         {} {{ *place{n}() += x; local{n} = mix(local{n} ^ y); return *place{n}(); }}",
        head(n, s)
    )
}

fn sorting(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "static int compare{n}(const void *a, const void *b) {{\n  \
         uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b; return x < y ? -1 : x > y;\n}}\n\
         {} {{\n  uint64_t values[{size}], sum = 0;\n  for (unsigned i = 0; i < {size}; i++) values[i] = mix(x + i * {c:#x}ull);\n  \
         qsort(values, {size}, sizeof *values, compare{n});\n  for (unsigned i = 0; i < {size}; i++) sum = sum * 3 + values[i];\n  return sum ^ y;\n}}",
        head(n, s),
        size = 4 + s * 3
    )
}

fn alias(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "static NOINLINE uint64_t real_of{n}(uint64_t x) {{ return mix(x + {c:#x}ull); }}\n\
         static uint64_t alias_of{n}(uint64_t x) __attribute__((alias(\"real_of{n}\")));\n\
         {} {{ return alias_of{n}(x) ^ real_of{n}(y); }}",
        head(n, s)
    )
}

fn bit_fields(n: usize, c: u64, _: u64, s: usize) -> String {
    format!(
        "struct bits{n} {{ unsigned a : 3; unsigned b : 11; unsigned long long c : 37; _Bool d : 1; }};\n\
         static uint64_t pack{n}(struct bits{n} *bits, uint64_t x) {{\n  \
         bits->a = x & 7; bits->b = (x >> 3) & 2047; bits->c = (x >> 14) & 0x1fffffffffull; bits->d = x >> 63;\n  return bits->b * 3u + bits->c;\n}}\n\
         {} {{ struct bits{n} bits; memset(&bits, 0, sizeof bits); uint64_t v = pack{n}(&bits, x ^ {c:#x}ull); return v + bits.a + bits.d * y; }}",
        head(n, s)
    )
}
