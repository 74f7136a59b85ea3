// Landing pads, destructors on the way, virtual calls, and inline functions in COMDAT groups.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

struct Guard {
  const char *name;
  explicit Guard(const char *name) : name(name) { std::printf("+%s ", name); }
  ~Guard() { std::printf("-%s ", name); }
};

struct Shape {
  virtual ~Shape() = default;
  virtual int area() const = 0;
};

struct Square : Shape {
  int side;
  explicit Square(int side) : side(side) {}
  int area() const override {
    if (side < 0)
      throw std::range_error("negative");
    return side * side;
  }
};

struct Wide : Square {
  using Square::Square;
  int area() const override { return Square::area() * 2; }
};

template <class T> __attribute__((noinline)) T twice(T value) {
  Guard guard("twice");
  if (value > T(50))
    throw value;
  return value + value;
}

__attribute__((noinline)) static int attempt(int kind) {
  Guard outer("outer");
  try {
    Guard inner("inner");
    switch (kind) {
    case 0: return twice(4);
    case 1: return twice(60);
    case 2: return static_cast<int>(twice(99.5));
    case 3: return Wide(3).area();
    case 4: return Square(-3).area();
    case 5: return static_cast<int>(std::string("longer than the small buffer of a string").at(99));
    default: break;
    }
  } catch (int value) {
    std::printf("int %d ", value);
    return -1;
  } catch (const std::exception &) {
    std::printf("exception ");
    return -2;
  } catch (...) {
    std::printf("other ");
    try {
      throw;
    } catch (double value) {
      std::printf("double %.1f ", value);
    }
    return -3;
  }
  return kind;
}

int main() {
  for (int kind = 0; kind < 8; kind++)
    std::printf("= %d\n", attempt(kind));
  std::vector<std::string> words{"a", "b"};
  words.emplace_back("c");
  auto join = [&](int n) {
    std::string all;
    for (auto &word : words)
      for (int i = 0; i < n; i++)
        all += word;
    return all;
  };
  std::printf("%s\n", join(3).c_str());
}
