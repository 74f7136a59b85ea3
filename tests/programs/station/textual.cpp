#include "family.h"

#include <algorithm>

namespace station {
namespace {

struct Textual {
  static constexpr unsigned first = 24;
  struct State {
    std::uint64_t limit = 0;
    std::string name;
    std::string alphabet;
    std::map<char, unsigned> places;
  };

  template <unsigned N>
  static void configure(State& state, std::size_t settings) {
    for (unsigned i = 0; i < 26; i++) state.alphabet += static_cast<char>('a' + (i * (2 * (N % 6) + 1) + settings) % 26);
    for (unsigned i = 0; i < state.alphabet.size(); i++) state.places.emplace(state.alphabet[i], i + N);
    if constexpr (N % 2 == 0) std::reverse(state.name.begin(), state.name.end());
  }

  template <unsigned N>
  static std::uint64_t process(const State& state, Record& record) {
    std::uint64_t sum = N;
    for (char& letter : record.label) {
      const unsigned at = static_cast<unsigned char>(letter) + N;
      switch ((at + record.words[at % 8]) % 7) {
        case 0: letter = state.alphabet[(at + N) % 26]; break;
        case 1: sum += at * 3; break;
        case 2: letter = static_cast<char>('a' + (at * (N % 9 + 1)) % 26); break;
        case 3: sum ^= std::uint64_t(at) << (N % 23); break;
        case 4: sum = mix(sum); break;
        case 5: record.words[N % 8] += at; break;
        default: sum -= N + 1;
      }
    }
    if (record.label.size() < 8) record.label += state.alphabet[(sum + N) % 26];
    if (sum % 601 == N) throw Refused(first + N, record.label);
    return sum % (state.limit + 2);
  }

  template <unsigned N>
  static void repair(const State& state, Record& record) {
    std::string made;
    for (char letter : record.label) {
      const auto place = state.places.find(letter);
      made += place == state.places.end() ? 'q' : state.alphabet[place->second % 26];
    }
    record.label = made.substr(0, 12 + N % 8);
    record.key = mix(record.key + N);
  }

  template <unsigned N>
  static std::string explain(const State& state) {
    std::string text = "textual " + std::to_string(N) + ": " + state.alphabet + " of " + state.name;
    if (text.size() % 2 == N % 2) text.append(3, '.');
    for (const auto& [letter, place] : state.places)
      if (place % 5 == N % 5) text += std::string(" ") + letter + std::to_string(place);
    return text + "\n";
  }
};

}  // namespace

void add_textual(Stages& stages) { add_all<Textual>(stages, std::make_integer_sequence<unsigned, 20>()); }

}  // namespace station
