// Drives re2 over generated text: many patterns compiled, searched, captured and replaced.
//   regex_bench N    N rounds; prints a sum
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "re2/re2.h"
#include "re2/set.h"

namespace {

std::uint64_t state = 88172645463325252u;
std::uint64_t draw(std::uint64_t limit) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % limit;
}

std::string line() {
  static const char* const words[] = {"get", "post", "user", "order", "error", "timeout", "Zürich", "cache", "v2", "ok"};
  std::string made;
  switch (draw(4)) {
    case 0: made = "10." + std::to_string(draw(256)) + "." + std::to_string(draw(256)) + ".7"; break;
    case 1: made = std::string("mail") + std::to_string(draw(999)) + "@host" + std::to_string(draw(9)) + ".example.org"; break;
    case 2: made = "2021-0" + std::to_string(1 + draw(9)) + "-1" + std::to_string(draw(10)) + "T12:00:00Z"; break;
    default: made = "http://h" + std::to_string(draw(99)) + ".example/" + words[draw(10)] + "?q=" + words[draw(10)];
  }
  for (unsigned i = 0; i < 12; i++) made += std::string(draw(3) ? " " : "\t") + words[draw(10)] + std::to_string(draw(50));
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  static const char* const patterns[] = {
      R"((\d+)\.(\d+)\.(\d+)\.(\d+))",
      R"(([a-z0-9]+)@([a-z0-9.]+)\.(org|com))",
      R"((\d{4})-(\d\d)-(\d\d)T)",
      R"(https?://([^/\s]+)/(\w+)(?:\?q=(\w*))?)",
      R"((?i)\b(error|TIMEOUT)(\d*)\b)",
      R"((user|order)\d+\s+(get|post)(\d)\d*)",
      R"(\pL+rich\d)",
      R"((a|ab|abc|cache)+(\d{1,3}).*ok)",
      R"(^(?:[^ \t]*[ \t]){3}(\S+))",
  };
  std::uint64_t sum = 0;
  std::vector<std::string> lines;
  for (unsigned i = 0; i < 400; i++) lines.push_back(line());
  for (int round = 0; round < rounds; round++) {
    std::vector<std::unique_ptr<RE2>> compiled;
    RE2::Set set(RE2::DefaultOptions, RE2::UNANCHORED);
    for (const char* pattern : patterns) {
      compiled.push_back(std::make_unique<RE2>(pattern));
      if (!compiled.back()->ok() || set.Add(pattern, nullptr) < 0) return 1;
    }
    if (!set.Compile()) return 1;
    for (const auto& text : lines) {
      std::vector<int> which;
      if (set.Match(text, &which)) sum += which.size();
      for (const auto& expression : compiled) {
        re2::StringPiece groups[3];
        if (expression->Match(text, 0, text.size(), RE2::UNANCHORED, groups, 3)) {
          sum = sum * 31 + groups[0].size();
          for (const auto& group : groups) sum += group.empty() ? 0 : static_cast<unsigned char>(group[0]);
        }
      }
      std::string changed = text;
      sum += static_cast<unsigned>(RE2::GlobalReplace(&changed, *compiled[5], "\\2-\\1"));
      sum += changed.size();
    }
    RE2 backwards(std::string("(x+x+)+y|") + std::to_string(round));
    sum += RE2::PartialMatch("xxxxxxxxxxxxxxxxxxxxxxxx", backwards);
  }
  std::printf("sum %llu\n", static_cast<unsigned long long>(sum));
  return 0;
}
