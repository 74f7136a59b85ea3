#include "family.h"

namespace station {
namespace {

struct Arithmetic {
  static constexpr unsigned first = 0;
  struct State {
    std::uint64_t limit = 0;
    std::string name;
    std::array<std::uint32_t, 16> table{};
  };

  template <unsigned N>
  static void configure(State& state, std::size_t settings) {
    std::uint64_t seed = mix(N * 977 + settings);
    for (unsigned i = 0; i < state.table.size(); i++) {
      seed = mix(seed + i * (N + 1));
      state.table[i] = static_cast<std::uint32_t>(N % 3 == 0 ? seed : N % 3 == 1 ? seed >> 11 : ~seed);
    }
    for (char letter : state.name) state.table[N % 16] = state.table[N % 16] * 31 + static_cast<unsigned char>(letter);
  }

  template <unsigned N>
  static std::uint64_t process(const State& state, Record& record) {
    std::uint64_t sum = record.key + N;
    for (unsigned i = 0; i < record.words.size(); i++) {
      auto& word = record.words[i];
      if constexpr (N % 5 == 0) word = word * (2 * N + 3) + state.table[i];
      if constexpr (N % 5 == 1) word ^= state.table[(word + N) % 16] >> (N % 13);
      if constexpr (N % 5 == 2) word = (word << (N % 7 + 1) | word >> (31 - N % 7)) + N;
      if constexpr (N % 5 == 3) word += state.table[(i * N) % 16] / (word % 9 + 1);
      if constexpr (N % 5 == 4) word -= static_cast<std::uint32_t>(record.weight * N) & 0xff;
      sum = mix(sum ^ word);
    }
    if (sum % 509 == N % 509) throw Refused(first + N, "sum " + std::to_string(sum % 1000) + " of " + state.name);
    record.weight = record.weight * 0.5 + static_cast<double>(sum % 64);
    return sum % (state.limit + 1);
  }

  template <unsigned N>
  static void repair(const State& state, Record& record) {
    for (auto& word : record.words) word = word / (N % 4 + 2) + static_cast<std::uint32_t>(state.limit);
    record.label += "r" + std::to_string(N);
    if (record.label.size() > 40) record.label.resize(N % 20 + 4);
  }

  template <unsigned N>
  static std::string explain(const State& state) {
    std::string text = "arithmetic " + std::to_string(N) + " (" + state.name + "):";
    for (auto entry : state.table) text += " " + std::to_string(entry % (N + 10));
    return text + ", limit " + std::to_string(state.limit) + "\n";
  }
};

}  // namespace

void add_arithmetic(Stages& stages) { add_all<Arithmetic>(stages, std::make_integer_sequence<unsigned, 24>()); }

}  // namespace station
