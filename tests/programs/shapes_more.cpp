#include "shapes.h"

unsigned more_shapes(unsigned seed, unsigned count) {
  Ring<unsigned, 4> ring;
  Ring<unsigned long long, 8> wide;
  Box box(count, seed);
  const Shape &shape = box;
  for (unsigned i = 0; i < count; i++) {
    ring.push(larger(seed, i));
    wide.push(larger<unsigned long long>(i, shape.area()));
  }
  return ring.total() + static_cast<unsigned>(wide.total());
}
