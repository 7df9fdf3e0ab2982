// Copies that wait for more of their kind: when they are made, and that nobody sees that they
// waited.
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "quern/runtime/device.h"
#include "quern/runtime/storage.h"
#include "tests/catch.h"
#include "tests/message_of.h"

using namespace quern;
using namespace quern::runtime;

namespace {

/// Copies and fills, in the host's memory; writes down how many copies each submission has.
class Copying : public Driver {
 public:
  const Target& target() const override { return target_; }
  uint32_t make_queue() override { return ++queues_; }
  Address allocate(uint64_t bytes, uint32_t) override {
    auto memory = std::make_unique<std::byte[]>(bytes);
    const Address address = reinterpret_cast<Address>(memory.get());
    memory_[address] = std::move(memory);
    return address;
  }
  void release(Address address, uint32_t) override {
    REQUIRE(memory_.contains(address));
    std::memset(reinterpret_cast<void*>(address), 0xee, 4);  // whoever copies later is found out
    memory_.erase(address);
  }
  std::unique_ptr<Executable> load(const Image&) override { return std::make_unique<Executable>(); }
  Ticket submit(std::span<const Command> commands, const Order& order) override {
    int copies = 0;
    for (const Command& command : commands) {
      if (auto* c = std::get_if<Copy>(&command)) {
        if (refuses) throw Error("it is refused");
        std::memcpy(reinterpret_cast<void*>(c->to), reinterpret_cast<void*>(c->from), c->bytes);
        copies++;
      }
      if (auto* f = std::get_if<Fill>(&command))
        for (uint64_t k = 0; k < f->bytes; k += 4)
          std::memcpy(reinterpret_cast<void*>(f->to + k), &f->pattern, 4);
    }
    if (copies > 0) submissions.push_back(copies);
    return {order.queue, ++ticket_};
  }
  bool done(Ticket) override { return true; }
  void wait(Ticket) override {}
  void upload(Address to, std::span<const std::byte> from, uint32_t) override {
    std::memcpy(reinterpret_cast<void*>(to), from.data(), from.size());
  }
  void download(std::span<std::byte> to, Address from, uint32_t) override {
    std::memcpy(to.data(), reinterpret_cast<void*>(from), to.size());
  }
  std::byte* host_pointer(Address address) override {
    return reinterpret_cast<std::byte*>(address);
  }

  std::vector<int> submissions;  ///< copies of those that have any
  bool refuses = false;

 private:
  Target target_;
  std::map<Address, std::unique_ptr<std::byte[]>> memory_;
  uint64_t ticket_ = 0;
  uint32_t queues_ = 0;
};

struct OnCopying {
  Copying* driver = new Copying;
  std::shared_ptr<Device> device =
      std::make_shared<Device>("copying", std::unique_ptr<Driver>(driver));

  /// Fields of `words` times this number.
  std::shared_ptr<Storage> field(uint32_t value, int64_t words = 16) {
    auto made =
        std::make_shared<Storage>(device, std::vector<ir::Storage>{{ir::Type::u32, ir::Type::u32}},
                                  std::vector<int64_t>{words}, Loc{});
    fill(*made, value);
    return made;
  }
  static void fill(Storage& x, uint32_t value) { x.fill(&value, {}); }
  static uint32_t last(const Storage& x) {
    uint32_t value = 0;
    x.read(&value, x.shape()[0] - 1, 1);
    return value;
  }
  /// The last word of a version.
  static uint32_t last(const Storage& x, const Storage::Contents& version) {
    const auto snapshot = x.empty_snapshot({});
    snapshot->show(version);
    return last(*snapshot);
  }
  std::vector<int> made() { return std::exchange(driver->submissions, {}); }
};

}  // namespace

TEST_CASE_METHOD(OnCopying, "versions of small fields are copied together, when one is written") {
  const auto x = field(1), y = field(2), z = field(3);
  Storage::Versions of_x, of_y, of_z;
  const auto a = of_x.of(*x, {});
  const auto b = of_y.of(*y, {}), c = of_z.of(*z, {});
  CHECK(made().empty());
  fill(*y, 20);
  CHECK(made() == std::vector{3});
  const auto d = of_y.of(*y, {});
  fill(*x, 10);  // nothing of it waits any more
  CHECK(made().empty());
  fill(*z, 30);
  CHECK(made().empty());
  fill(*y, 200);
  CHECK(made() == std::vector{1});
  CHECK(last(*x, a) == 1);
  CHECK(last(*y, b) == 2);
  CHECK(last(*z, c) == 3);
  CHECK(last(*y, d) == 20);
  CHECK((last(*x) == 10 && last(*y) == 200 && last(*z) == 30));
}

TEST_CASE_METHOD(OnCopying, "a version is copied before it is read, and before its field is gone") {
  auto x = field(1), y = field(2);
  Storage::Versions of_x, of_y;
  const auto a = of_x.of(*x, {});
  CHECK(last(*x, a) == 1);
  CHECK(made() == std::vector{1});
  fill(*x, 10);
  const auto b = of_x.of(*x, {}), c = of_y.of(*y, {});
  const auto like = x->empty_snapshot({});
  x.reset();
  CHECK(made() == std::vector{2});
  like->show(b);
  CHECK(last(*like) == 10);
  CHECK(last(*y, c) == 2);
  {
    Storage::Versions gone;  // and with it the memory that is copied to
    const auto z = field(7);
    gone.of(*z, {});
  }
  CHECK(made() == std::vector{1});
}

TEST_CASE_METHOD(OnCopying,
                 "swapped fields take along what is to be copied before they are written") {
  const auto x = field(1), y = field(2);
  Storage::Versions of_x;
  const auto a = of_x.of(*x, {});
  x->swap(*y, {});
  fill(*x, 10);
  CHECK(made().empty());  // that was y's memory
  fill(*y, 20);
  CHECK(made() == std::vector{1});
  CHECK(last(*x, a) == 1);
}

TEST_CASE_METHOD(OnCopying, "the host's writes, other code and waits find nothing left to copy") {
  const auto x = field(1), y = field(2);
  Storage::Versions of_x, of_y;
  const uint32_t value = 5;
  const auto a = of_x.of(*x, {});
  x->write(&value, 15, 1, {});
  CHECK(made() == std::vector{1});
  CHECK(last(*x, a) == 1);
  of_x.of(*x, {});
  device->synchronize();
  CHECK(made() == std::vector{1});
  const auto b = of_y.of(*y, {});
  auto* shown = reinterpret_cast<uint32_t*>(y->array({}).address);
  CHECK(made() == std::vector{1});
  shown[15] = 40;
  CHECK(last(*y, b) == 2);
  const auto c = of_y.of(*y, {});  // from now on at once
  CHECK(made() == std::vector{1});
  shown[15] = 41;
  CHECK(last(*y, c) == 40);
}

TEST_CASE_METHOD(OnCopying, "snapshots of what one launch writes are copied together") {
  const auto x = field(1, 1000), y = field(2, 1000);
  const auto of_x = x->contents({}), of_y = y->contents({});
  x->begin_write({});
  y->begin_write({});
  CHECK(made().empty());
  const Command nothing = Fill{};
  device->stream().submit({&nothing, 1});
  CHECK(made() == std::vector{2});
  fill(*x, 10);
  fill(*y, 20);
  CHECK(last(*x, of_x) == 1);
  CHECK(last(*y, of_y) == 2);
}

TEST_CASE_METHOD(OnCopying, "with several streams copies do not wait") {
  const auto x = field(1), y = field(2);
  Storage::Versions of_x, of_y;
  const auto a = of_x.of(*x, {});
  const auto other = Stream::make(device);
  CHECK(made() == std::vector{1});  // what waited is before the other stream
  const auto b = of_y.of(*y, {});
  CHECK(made() == std::vector{1});
  fill(*x, 10);
  fill(*y, 20);
  CHECK(made().empty());
  CHECK(last(*x, a) == 1);
  CHECK(last(*y, b) == 2);
}

TEST_CASE_METHOD(OnCopying,
                 "no more wait than that they stay few; what is refused is tried again") {
  const auto x = field(1);
  std::vector<std::shared_ptr<Storage>> many;
  std::vector<std::unique_ptr<Storage::Versions>> versions;
  for (int k = 0; k < 65; k++) {
    many.push_back(field(100 + uint32_t(k)));
    versions.push_back(std::make_unique<Storage::Versions>());
  }
  made();
  for (size_t k = 0; k < many.size(); k++) {
    versions[k]->of(*many[k], {});
    CHECK(driver->submissions.size() == (k < 63 ? 0 : 1));
  }
  CHECK(made() == std::vector{64});
  fill(*x, 10);
  CHECK(made().empty());
  fill(*many.back(), 1);
  CHECK(made() == std::vector{1});

  const auto a = versions[0]->of(*x, {});
  driver->refuses = true;
  CHECK_THROWS_AS(fill(*x, 11), Error);
  driver->refuses = false;
  fill(*x, 12);
  CHECK(made() == std::vector{1});
  CHECK(last(*x, a) == 10);
}

TEST_CASE_METHOD(OnCopying,
                 "a copy that is refused when its memory goes is not made of what comes there") {
  auto x = field(1);
  const auto y = field(2);
  Storage::Versions of_x, of_y;
  of_x.of(*x, {});
  driver->refuses = true;
  x.reset();
  driver->refuses = false;
  const auto version = of_y.of(*y, {});
  fill(*y, 20);
  CHECK(made() == std::vector{1});
  const std::string said = test::message_of([&] { last(*y, version); });
  CHECK(said.find("it is refused") != std::string::npos);
  CHECK(last(*y, version) == 2);
}

TEST_CASE_METHOD(OnCopying, "in somebody else's stream no copy waits") {
  driver = new Copying;
  device = std::make_shared<Device>("joined", std::unique_ptr<Driver>(driver), true);
  const auto x = field(1);
  Storage::Versions of_x;
  of_x.of(*x, {});
  CHECK(made() == std::vector{1});
}
