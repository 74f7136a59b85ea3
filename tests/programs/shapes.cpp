// C++: virtual calls with a hot class, templates in two files, exceptions, lambdas, a local class in an unnamed
// namespace. Arguments: SEED COUNT.
#include "shapes.h"
#include <cstdio>
#include <cstdlib>

namespace {
struct Triangle : Shape {
  Triangle(unsigned base, unsigned height) : base(base), height(height) {}
  unsigned area() const override { return base * height / 2; }
  unsigned base, height;
};

struct OutOfRange {
  explicit OutOfRange(unsigned value) : value(value) {}
  unsigned value;
};

unsigned checked(unsigned value) {
  if (value % 7 == 3)
    throw OutOfRange(value);
  return value + 1;
}

template <typename F> unsigned repeat(unsigned count, F f) {
  unsigned sum = 0;
  for (unsigned i = 0; i < count; i++)
    sum += f(i);
  return sum;
}
} // namespace

__attribute__((noinline)) static unsigned measure(const Shape &shape) {
  return shape.area() + static_cast<unsigned char>(shape.name()[0]);
}

int main(int argc, char **argv) {
  unsigned seed = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 1;
  unsigned count = argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : 10;
  Square square(seed);
  Box box(seed, 3);
  Triangle triangle(seed, 5);
  const Shape *shapes[] = {&square, &square, &square, &box, &triangle};
  Ring<unsigned, 4> ring;
  unsigned sum = repeat(count, [&](unsigned i) { return measure(*shapes[i % 5]); });
  unsigned caught = 0;
  for (unsigned i = 0; i < count; i++) {
    try {
      ring.push(checked(seed + i));
    } catch (const OutOfRange &error) {
      caught += error.value / 7;
    }
  }
  sum += ring.total() + larger(seed, count) + more_shapes(seed, count);
  std::printf("%u %u\n", sum, caught);
  return 0;
}
