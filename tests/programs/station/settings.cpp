#include "station.h"

#include <cctype>
#include <sstream>

namespace station {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

bool valid_name(std::string_view name) {
  if (name.empty()) return false;
  for (char letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '.' && letter != '_') return false;
  return true;
}

}  // namespace

Settings Settings::parse(std::string_view text) {
  Settings settings;
  unsigned line = 0;
  while (!text.empty()) {
    line++;
    const auto end = text.find('\n');
    const auto whole = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const auto content = trimmed(whole.substr(0, whole.find('#')));
    if (content.empty()) continue;
    const auto equals = content.find('=');
    const auto name = trimmed(content.substr(0, equals));
    if (equals == std::string_view::npos || !valid_name(name))
      throw std::invalid_argument("line " + std::to_string(line) + " is no setting");
    settings.values_.emplace(name, trimmed(content.substr(equals + 1)));
  }
  return settings;
}

std::uint64_t Settings::number(const std::string& name, std::uint64_t otherwise) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return otherwise;
  std::uint64_t value = 0;
  for (char digit : found->second) {
    if (digit < '0' || digit > '9') throw std::invalid_argument(name + " is no number");
    value = value * 10 + static_cast<unsigned>(digit - '0');
  }
  return value;
}

std::string Settings::text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second;
}

std::string default_settings(unsigned stages) {
  std::ostringstream text;
  text << "# one line a setting\n";
  for (unsigned stage = 0; stage < stages; stage++) {
    text << "stage" << stage << ".limit = " << (stage * 37 + 11) % 251 + 3 << "\n";
    text << "stage" << stage << ".name = s" << mix(stage) % 100000 << "  # a label\n";
  }
  return text.str();
}

}  // namespace station
