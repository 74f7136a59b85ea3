// What the stages of all families have in common.
#pragma once
#include "station.h"

namespace station {

// A stage of family `Family`, number `N`. `Family` has the four bodies as templates over N.
template <class Family, unsigned N>
class StageOf final : public Stage {
 public:
  void configure(const Settings& settings) override {
    const std::string prefix = "stage" + std::to_string(number()) + ".";
    state_.limit = settings.number(prefix + "limit", 7);
    state_.name = settings.text(prefix + "name");
    Family::template configure<N>(state_, settings.size());
  }
  std::uint64_t process(Record& record) const override { return Family::template process<N>(state_, record); }
  void repair(Record& record) const override { Family::template repair<N>(state_, record); }
  std::string explain() const override { return Family::template explain<N>(state_); }
  unsigned number() const override { return Family::first + N; }

 private:
  typename Family::State state_{};
};

template <class Family, unsigned N>
std::unique_ptr<Stage> make_stage() {
  return std::make_unique<StageOf<Family, N>>();
}

template <class Family, unsigned... Ns>
void add_all(Stages& stages, std::integer_sequence<unsigned, Ns...>) {
  (stages.push_back(make_stage<Family, Ns>()), ...);
}

}  // namespace station
