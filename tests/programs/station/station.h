// A station sorts records by what its stages make of them. Only what profiles need of a large program is here: several
// hundred functions, most of them for one phase alone. See main.cpp.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace station {

inline std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  return x * 0x94d049bb133111ebu;
}

// What travels through the stages.
struct Record {
  std::uint64_t key = 0;
  std::array<std::uint32_t, 8> words{};
  std::string label;
  double weight = 0;
};

// A record that a stage refuses.
class Refused : public std::runtime_error {
 public:
  Refused(unsigned stage, const std::string& why) : std::runtime_error(why), stage_(stage) {}
  unsigned stage() const { return stage_; }

 private:
  unsigned stage_;
};

// Settings of all stages, read at start-up.
class Settings {
 public:
  static Settings parse(std::string_view text);
  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const;
  std::string text(const std::string& name) const;
  std::size_t size() const { return values_.size(); }

 private:
  std::map<std::string, std::string> values_;
};

// One step. configure runs at start-up, process in the main phase, repair for one record in some hundreds, and explain
// only on request.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual void configure(const Settings& settings) = 0;
  virtual std::uint64_t process(Record& record) const = 0;
  virtual void repair(Record& record) const = 0;
  virtual std::string explain() const = 0;
  virtual unsigned number() const = 0;
};

using Stages = std::vector<std::unique_ptr<Stage>>;

// Each adds its family's stages; one file a family.
void add_arithmetic(Stages& stages);
void add_textual(Stages& stages);
void add_ordering(Stages& stages);

// The settings' text, made rather than read, so that the program needs no file.
std::string default_settings(unsigned stages);

// Runs `rounds` records through all stages on `threads` threads; the sum does not depend on their number.
std::uint64_t run(const Stages& stages, unsigned rounds, unsigned threads);

// What the station is made of, in words.
std::string report(const Stages& stages);

}  // namespace station
