// What a device says to the launches that it submits, on a driver that writes it down.
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "quern/runtime/device.h"
#include "quern/runtime/launch.h"
#include "quern/runtime/storage.h"
#include "tests/catch.h"

using namespace quern;
using namespace quern::runtime;

namespace {

/// Runs nothing: its memory is the host's, and no record is ever claimed.
class Noting : public Driver {
 public:
  explicit Noting(std::vector<bool>& asked, int* waits = nullptr,
                  std::vector<uint64_t>* grains = nullptr)
      : asked_(asked), waits_(waits), grains_(grains) {
    target_.workers = 4;
  }

  const Target& target() const override { return target_; }
  Address allocate(uint64_t bytes, uint32_t) override {
    auto memory = std::make_unique<std::byte[]>(bytes);
    const Address address = reinterpret_cast<Address>(memory.get());
    memory_[address] = std::move(memory);
    return address;
  }
  void release(Address address, uint32_t) override { memory_.erase(address); }
  std::unique_ptr<Executable> load(const Image&) override { return std::make_unique<Executable>(); }
  Ticket submit(std::span<const Command> commands, const Order&) override {
    for (const Command& command : commands) {
      if (auto* l = std::get_if<Launch>(&command)) {
        asked_.push_back(l->asks);
        const auto* work = std::get_if<Chunked>(&l->work);
        if (work && grains_) grains_->push_back(work->grain);
      }
      if (auto* f = std::get_if<Fill>(&command))
        std::memset(reinterpret_cast<void*>(f->to), int(f->pattern), f->bytes);
    }
    return {0, ++ticket_};
  }
  bool done(Ticket) override { return true; }
  void wait(Ticket) override {
    if (waits_) ++*waits_;
  }
  void upload(Address to, std::span<const std::byte> from, uint32_t) override {
    std::memcpy(reinterpret_cast<void*>(to), from.data(), from.size());
  }
  void download(std::span<std::byte> to, Address from, uint32_t) override {
    if (waits_) ++*waits_;
    std::memcpy(to.data(), reinterpret_cast<void*>(from), to.size());
  }
  std::byte* host_pointer(Address address) override {
    return reinterpret_cast<std::byte*>(address);
  }

 private:
  std::vector<bool>& asked_;
  int* waits_;  ///< counts waits and downloads
  std::vector<uint64_t>* grains_;
  Target target_;
  std::map<Address, std::unique_ptr<std::byte[]>> memory_;
  uint64_t ticket_ = 0;
};

}  // namespace

TEST_CASE("all launches of a submission are told alike whether one has failed") {
  std::vector<bool> asked;
  Device device("noting", std::make_unique<Noting>(asked));
  Stream& stream = device.stream();
  auto quiet = std::make_shared<const Reporter>(Reporter{"quiet", {}});
  auto loud = std::make_shared<const Reporter>(Reporter{"loud", {ir::Site{}}});
  std::vector<Command> two = {Launch{}, Launch{}};
  auto submitted = [&](LaunchRecord& launch) {
    asked.clear();
    stream.submit(launch, two);
    return asked;
  };

  LaunchRecord& first = stream.begin_launch(*quiet);
  CHECK(submitted(first) == std::vector{false, false});
  // One that can fail begins before the next commands go: they may come to stand behind it.
  LaunchRecord& failing = stream.begin_launch(*loud);
  CHECK(submitted(first) == std::vector{true, true});
  stream.synchronize();  // it has not been submitted: a wait does not answer for it
  CHECK(submitted(first) == std::vector{true, true});
  CHECK(submitted(failing) == std::vector{true, true});
  stream.end_launch(failing, loud);
  stream.synchronize();
  CHECK(submitted(first) == std::vector{false, false});
  stream.end_launch(first, quiet);
}

namespace {

/// One task, whose domain is [0, cell 0); `bound`: the largest index that it may end before.
std::shared_ptr<Image> counted_image(std::optional<uint64_t> bound) {
  using Step = HostExpression::Step;
  const Step zero{.source = HostExpression::constant, .result = ir::Type::i64};
  const Step cell{.source = HostExpression::cell, .result = ir::Type::i64};
  auto image = std::make_shared<Image>();
  image->layout.bytes = ir::abi::head_bytes;
  image->frame_bytes = 8;
  Image::Task task;
  task.kind = ir::Task::range;
  task.walk = ir::Task::element;
  task.rank = 1;
  task.domain = {{zero, cell}, {0, 1}, true};
  if (bound) {
    Step limit = zero;
    limit.imm = *bound;
    task.bound = {{zero, limit}, {0, 1}, false};
  }
  image->tasks.push_back(task);
  image->schedule.push_back({});
  return image;
}

}  // namespace

TEST_CASE("extents that the device knows are waited for only where no bound is below 2^31") {
  std::vector<bool> asked;
  int waits = 0;
  auto device = std::make_shared<Device>("noting", std::make_unique<Noting>(asked, &waits));
  auto waits_of = [&](std::optional<uint64_t> bound) {
    const LoadedKernel kernel(device, counted_image(bound));
    const int before = waits;
    asked.clear();
    kernel.launch({});
    return waits - before;
  };
  CHECK(waits_of(INT32_MAX) == 0);
  CHECK(asked.size() == 1);
  CHECK(waits_of(0) == 0);
  CHECK(asked.empty());  // nothing can run
  CHECK(waits_of(uint64_t(1) << 31) == 1);
  CHECK(asked.empty());  // the cell holds 0
  CHECK(waits_of(std::nullopt) == 1);
}

TEST_CASE("memory is given back without a wait") {
  std::vector<bool> asked;
  int waits = 0;
  auto device = std::make_shared<Device>("noting", std::make_unique<Noting>(asked, &waits));
  const uint64_t before = device->allocated();
  {
    Storage field(device, {{ir::Type::f32, ir::Type::f32}}, {1000}, Loc{"f.cpp", 1});
    CHECK(device->allocated() == before + 4000);
  }
  CHECK(device->allocated() == before);
  CHECK(waits == 0);
  device->synchronize();  // waits are counted
  CHECK(waits > 0);
}

TEST_CASE("chunks have whole vectors of iterations") {
  std::vector<bool> asked;
  std::vector<uint64_t> grains;
  auto device =
      std::make_shared<Device>("noting", std::make_unique<Noting>(asked, nullptr, &grains));
  auto grain_of = [&](uint64_t iterations, uint64_t operations, uint32_t together,
                      uint32_t strip = 0, bool is_followed = false) {
    using Step = HostExpression::Step;
    const Step zero{.source = HostExpression::constant, .result = ir::Type::i64};
    Step end = zero;
    end.imm = iterations;
    auto image = std::make_shared<Image>();
    image->layout.bytes = ir::abi::head_bytes;
    Image::Task task;
    task.kind = ir::Task::range;
    task.walk = ir::Task::chunked;
    task.rank = 1;
    task.domain = {{zero, end}, {0, 1}, false};
    task.operations = operations;
    task.together = together;
    task.strip = strip;
    task.is_followed = is_followed;
    image->tasks.push_back(task);
    image->schedule.push_back({});
    LoadedKernel(device, image).launch({});
    return grains.back();
  };
  // Four workers, eight chunks for each where there is enough to do.
  CHECK(grain_of(1000, 100'000, 1) == 32);
  CHECK(grain_of(1000, 100'000, 1, 0, true) ==
        128);  // two for each, at whose ends rows are left over
  CHECK(grain_of(14, 1'000'000, 1) == 1);
  CHECK(grain_of(14, 1'000'000, 8) == 8);
  CHECK(grain_of(5, 1'000'000, 8) >= 5);  // one chunk
  CHECK(grain_of(100, 1, 8) == 100);      // too little for two
  CHECK(grain_of(1000, 50, 1) == 1000);
  CHECK(grain_of(1000, 60, 1) == 512);  // two, of whole cache lines
  // Few iterations that go one by one are as soon ready, each worker's.
  CHECK(grain_of(40, 1'000'000, 32) == 32);
  CHECK(grain_of(12, 1'000'000, 32) == 1);
  // Whole strips, where no worker has more to do by that.
  CHECK(grain_of(1000, 100'000, 8) == 32);
  CHECK(grain_of(1000, 100'000, 8, 128) == 128);
  CHECK(grain_of(400, 100'000, 8, 128) == 16);
  CHECK(grain_of(100, 100'000, 8, 128) == 8);
}
