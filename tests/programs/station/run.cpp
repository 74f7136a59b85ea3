#include "station.h"

#include <atomic>
#include <numeric>
#include <thread>

namespace station {
namespace {

Record make_record(std::uint64_t number) {
  Record record;
  record.key = mix(number + 1);
  for (unsigned i = 0; i < record.words.size(); i++) record.words[i] = static_cast<std::uint32_t>(mix(record.key + i));
  record.label = "n" + std::to_string(record.key % 9973);
  record.weight = static_cast<double>(record.key % 1024);
  return record;
}

// One record through all stages. A stage that refuses it repairs it, and may refuse it again.
std::uint64_t travel(const Stages& stages, std::uint64_t number) {
  Record record = make_record(number);
  std::uint64_t sum = 0;
  for (const auto& stage : stages) {
    if ((record.key + stage->number()) % 4 == 3) continue;
    try {
      sum = mix(sum + stage->process(record));
    } catch (const Refused& refused) {
      stage->repair(record);
      sum ^= refused.stage() + std::string_view(refused.what()).size();
    }
  }
  return sum;
}

}  // namespace

std::uint64_t run(const Stages& stages, unsigned rounds, unsigned threads) {
  std::atomic<unsigned> next{0};
  std::vector<std::uint64_t> sums(threads, 0);
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < threads; worker++)
    workers.emplace_back([&, worker] {
      for (unsigned number; (number = next.fetch_add(1)) < rounds;) sums[worker] += travel(stages, number);
    });
  for (auto& worker : workers) worker.join();
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

std::string report(const Stages& stages) {
  std::string text;
  for (const auto& stage : stages) text += stage->explain();
  return text;
}

}  // namespace station
