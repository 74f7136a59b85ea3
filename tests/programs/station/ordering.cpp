#include "family.h"

#include <algorithm>
#include <numeric>

namespace station {
namespace {

struct Ordering {
  static constexpr unsigned first = 44;
  struct State {
    std::uint64_t limit = 0;
    std::string name;
    std::vector<unsigned> ranks;
  };

  template <unsigned N>
  static void configure(State& state, std::size_t settings) {
    state.ranks.resize(32 + N);
    std::iota(state.ranks.begin(), state.ranks.end(), N);
    for (std::size_t i = state.ranks.size() - 1; i > 0; i--)
      std::swap(state.ranks[i], state.ranks[mix(i * (N + 3) + settings) % (i + 1)]);
  }

  template <unsigned N>
  static std::uint64_t process(const State& state, Record& record) {
    auto words = record.words;
    const auto& ranks = state.ranks;
    std::sort(words.begin(), words.end(), [&](std::uint32_t a, std::uint32_t b) {
      const auto left = ranks[a % ranks.size()], right = ranks[b % ranks.size()];
      return left != right ? left < right : a < b;
    });
    std::uint64_t sum = N;
    for (unsigned i = 0; i < words.size(); i++) sum = sum * (2 * N + 5) + words[i] % (i + 3);
    record.words[N % 8] ^= static_cast<std::uint32_t>(sum);
    if (sum % 701 == N) throw Refused(first + N, "order of " + std::to_string(words[0]));
    return sum % (state.limit + 3);
  }

  template <unsigned N>
  static void repair(const State& state, Record& record) {
    std::vector<std::uint32_t> copy(record.words.begin(), record.words.end());
    std::sort(copy.begin(), copy.end(), [](std::uint32_t a, std::uint32_t b) {
      return a % (N + 7) != b % (N + 7) ? a % (N + 7) < b % (N + 7) : a < b;
    });
    std::copy(copy.begin(), copy.end(), record.words.begin());
    record.key ^= state.ranks.front();
  }

  template <unsigned N>
  static std::string explain(const State& state) {
    std::string text = "ordering " + std::to_string(N) + " of " + state.name + ":";
    for (unsigned i = 0; i < 4 + N % 4; i++) text += " " + std::to_string(state.ranks[i]);
    return text + "\n";
  }
};

}  // namespace

void add_ordering(Stages& stages) { add_all<Ordering>(stages, std::make_integer_sequence<unsigned, 20>()); }

}  // namespace station
