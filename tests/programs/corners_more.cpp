// Exceptions, COMDAT functions and equal names of local functions, beside corners.c.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
struct Guard {
  const char *name;
  ~Guard() { std::printf("leaves %s\n", name); }
};

// Equal to a local function of corners.c.
__attribute__((noinline)) int never(int x) { return x + 1; }
} // namespace

__attribute__((noinline)) int risky(int x) {
  Guard guard{"risky"};
  if (x > 4)
    throw std::runtime_error("too much");
  if (x == 4)
    throw x;
  return x + 1;
}

__attribute__((noinline)) int careful(int x) {
  try {
    Guard guard{"careful"};
    return risky(x) * 2;
  } catch (const std::exception &error) {
    std::printf("caught %s\n", error.what());
    return -1;
  } catch (int value) {
    return value;
  }
}

struct Shape {
  virtual ~Shape() = default;
  virtual int area() const { return 0; }
};
struct Square : Shape {
  explicit Square(int s) : side(s) {}
  int area() const override { return side * side; }
  int side;
};
struct Named {
  virtual ~Named() = default;
  virtual const char *name() const { return "nobody"; }
};
// Its functions are reached through adjusting thunks too.
struct Both : Named, Square {
  Both() : Square(3) {}
  int area() const override { return side + name()[0] - 'b'; }
  const char *name() const override { return "both"; }
};

template <class T> __attribute__((noinline)) T most(const std::vector<T> &all) {
  return *std::max_element(all.begin(), all.end());
}

extern "C" int corners_more(int x) {
  int total = never(x);
  for (int i = 2; i < 7; i++)
    total += careful(i);
  Square square(x);
  Both both;
  const Shape *shapes[] = {&square, &both};
  for (const Shape *shape : shapes)
    total += shape->area();
  std::map<std::string, int> counts;
  for (const char *word : {"one", "two", "one"})
    counts[word]++;
  std::function<int(int)> scale = [&](int y) { return y * counts["one"]; };
  return total + scale(5) + most(std::vector<int>{3, 9, 4}) + (int)most(std::vector<double>{1.5, 0.5});
}
