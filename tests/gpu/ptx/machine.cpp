#include "tests/gpu/ptx/machine.h"

#include <algorithm>
#include <numeric>

#include "tests/gpu/ptx/warp.h"

namespace quern::ptx {

namespace {

constexpr uint64_t long_turn = 1 << 12, short_turn = 64;

std::vector<uint64_t> in_order(uint64_t count, Schedule::Order order, std::mt19937_64& random) {
  std::vector<uint64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  if (order == Schedule::descending) std::ranges::reverse(all);
  if (order == Schedule::shuffled) std::ranges::shuffle(all, random);
  return all;
}

class Block {  // its warps point into it
 public:
  Block(LaunchState& launch, uint64_t number) : launch_(launch) {
    const auto [x, y, z] = launch.shape.grid;
    state_.index = {unsigned(number % x), unsigned(number / x % y), unsigned(number / x / y)};
    state_.number = number;
    state_.shared.resize(launch.code.shared_bytes + launch.shape.dynamic_shared_bytes);
    std::ranges::fill(state_.shared, std::byte(launch.random()));
    const auto threads = unsigned(launch.shape.threads_of_block());
    const unsigned warps = (threads + warp_size - 1) / warp_size;
    warps_.reserve(warps);
    for (uint64_t w : in_order(warps, launch.schedule.warps, launch.random))
      warps_.emplace_back(launch, state_, unsigned(w) * warp_size);
    threads_ = threads;
  }

  Block(const Block&) = delete;

  /// Gives each warp a turn; false: all threads are done.
  bool run() {
    bool some_ready = false, all_done = true;
    for (Warp& w : warps_) {
      const uint64_t turn = launch_.schedule.switches ? launch_.random() % short_turn : long_turn;
      const Warp::State state = w.run(turn);
      some_ready |= state == Warp::State::ready;
      all_done &= state == Warp::State::done;
    }
    if (!some_ready && !all_done) pass_barrier();
    return !all_done;
  }

 private:
  void pass_barrier() {
    unsigned barrier = ~0u, threads = 0;
    for (const Warp& w : warps_) {
      unsigned here = barrier;
      threads += unsigned(std::popcount(w.waiting(here)));
      if (barrier != ~0u && here != barrier)
        throw Fault(Fault::launch_failed,
                    "threads of a block wait at different barriers, kernel " + launch_.code.name);
      barrier = here;
    }
    if (threads != threads_)
      throw Fault(Fault::launch_failed,
                  std::to_string(threads) + " of " + std::to_string(threads_) +
                      " threads wait at a barrier, the others are gone, kernel " +
                      launch_.code.name);
    if (launch_.counts) launch_.counts->barriers++;
    state_.barriers++;
    for (Warp& w : warps_) w.pass_barrier();
  }

  LaunchState& launch_;
  BlockState state_;
  std::vector<Warp> warps_;
  unsigned threads_ = 0;
};

}  // namespace

void run(const Image& image, const Code& code, const Shape& shape, GlobalMemory& memory,
         const Schedule& schedule, Counts* counts) {
  LaunchState launch{image,
                     code,
                     shape,
                     memory,
                     schedule,
                     counts,
                     std::mt19937_64(schedule.seed),
                     schedule.most_steps};
  const std::vector<uint64_t> order = in_order(shape.blocks(), schedule.blocks, launch.random);
  std::vector<std::unique_ptr<Block>> running;
  size_t begun = 0;
  while (begun < order.size() || !running.empty()) {
    while (begun < order.size() && running.size() < schedule.resident)
      running.push_back(std::make_unique<Block>(launch, order[begun++]));
    const size_t turn = running.size() > 1 ? launch.random() % running.size() : 0;
    if (!running[turn]->run()) running.erase(running.begin() + long(turn));
  }
}

}  // namespace quern::ptx
