// station start            start-up only: reads the settings and configures every stage
// station run N [THREADS]  then N records
// station explain          then the report
#include "station.h"

#include <cstdlib>
#include <cstring>
#include <iostream>

namespace {

station::Stages start_up() {
  station::Stages stages;
  station::add_arithmetic(stages);
  station::add_textual(stages);
  station::add_ordering(stages);
  const auto settings = station::Settings::parse(station::default_settings(static_cast<unsigned>(stages.size())));
  for (const auto& stage : stages) stage->configure(settings);
  return stages;
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "run";
  try {
    const auto stages = start_up();
    std::cout << stages.size() << " stages\n";
    if (std::strcmp(what, "run") == 0) {
      const unsigned rounds = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 2000;
      const unsigned threads = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 2;
      std::cout << "sum " << station::run(stages, rounds, threads == 0 ? 1 : threads) << "\n";
    } else if (std::strcmp(what, "explain") == 0) {
      std::cout << station::report(stages);
    } else if (std::strcmp(what, "start") != 0) {
      std::cerr << "station start | run N [THREADS] | explain\n";
      return 2;
    }
    station::Settings::parse("a = 1\nnothing here\n");
  } catch (const std::invalid_argument& error) {
    std::cout << "refused: " << error.what() << "\n";
    return 0;
  }
  return 1;
}
