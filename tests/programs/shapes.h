// Classes with virtual functions, and templates whose instances both files emit (COMDAT).
#ifndef SHAPES_H
#define SHAPES_H
#include <cstddef>

struct Shape {
  virtual ~Shape() {}
  virtual unsigned area() const = 0;
  virtual const char *name() const { return "shape"; }
};

struct Square : Shape {
  explicit Square(unsigned side) : side(side) {}
  unsigned area() const override { return side * side; }
  const char *name() const override { return "square"; }
  unsigned side;
};

struct Box : Shape {
  Box(unsigned width, unsigned height) : width(width), height(height) {}
  unsigned area() const override { return width * height; }
  unsigned width, height;
};

template <typename T, std::size_t N> struct Ring {
  T items[N] = {};
  std::size_t next = 0;
  void push(T item) {
    items[next] = item;
    next = next + 1 == N ? 0 : next + 1;
  }
  T total() const {
    T sum = T();
    for (const T &item : items)
      sum += item;
    return sum;
  }
};

template <typename T> T larger(T left, T right) { return left < right ? right : left; }

unsigned more_shapes(unsigned seed, unsigned count);

#endif
