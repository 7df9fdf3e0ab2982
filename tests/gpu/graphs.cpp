// Batches that repeat.
#include "quern/ir/abi.h"
#include "tests/gpu/support.h"

using namespace quern;
using namespace quern::test;
using runtime::Address;
using runtime::Command;
using runtime::Copy;
using runtime::Fill;

namespace {

class Batches : public OnEachVendor {
 public:
  /// `n` launches that count at `x`, with a copy and a fill among them.
  std::vector<Command> batch(size_t n) const {
    std::vector<Command> all(n, launch(*executable, 0, runtime::Serial{}, x));
    all.push_back(Copy{y, x, 4});
    all.push_back(Fill{y + 4, 4, 5});
    return all;
  }
  uint32_t counted() { return read_word(*driver, x); }

  Code code{serial(), element()};
  std::unique_ptr<gpu::Driver> driver = open();
  std::unique_ptr<runtime::Executable> executable = driver->load(code.on(*driver));
  Address x = driver->allocate(64), y = driver->allocate(64);
  ~Batches() {
    driver->release(x);
    driver->release(y);
  }
};

}  // namespace

TEST_CASE_METHOD(Batches, "a batch that repeats becomes a graph, with the same effects") {
  Command zero = Fill{x, 64, 0};
  driver->submit({&zero, 1});
  for (int k = 0; k < 5; k++) driver->submit(batch(10));
  CHECK(counted() == 50);
  CHECK(recorder.calls["capture_begin"] == 1);
  CHECK(recorder.calls["graph_launch"] == 4);
  CHECK(recorder.calls["launch"] == 20);
  CHECK(recorder.live["graphs"] == 0);
  CHECK(recorder.live["executable graphs"] == 1);
  CHECK(read_word(*driver, y) == 50);
  CHECK(read_word(*driver, y + 4) == 5);
  CHECK(recorder.launches.at(15).in_graph);
}

TEST_CASE_METHOD(Batches, "a graph is of launches that ask whether one has failed, or of others") {
  std::vector<Command> told = batch(10), asking = told;
  for (Command& command : told)
    if (auto* l = std::get_if<runtime::Launch>(&command)) l->asks = false;
  for (int k = 0; k < 3; k++) driver->submit(told);
  CHECK(recorder.live["executable graphs"] == 1);
  driver->wait(driver->submit({}));
  recorder.launches.clear();
  driver->submit(asking);
  driver->wait(driver->submit({}));
  REQUIRE(recorder.launches.size() == 10);
  for (const recording::Launch& l : recorder.launches) CHECK(l.words[1] == ir::abi::asks_bit);
}

TEST_CASE_METHOD(Batches, "what differs is another batch; short ones are launched one by one") {
  Command zero = Fill{x, 64, 0};
  driver->submit({&zero, 1});
  std::vector<Command> a = batch(10), b = a, c = batch(3);
  std::get<runtime::Launch>(b[4]).args = y;
  std::get<Fill>(b[11]).to = x + 8;
  for (int k = 0; k < 3; k++) {
    driver->submit(a);
    driver->submit(b);
    driver->submit(c);
  }
  CHECK(counted() == 3 * (10 + 9 + 3));
  CHECK(recorder.calls["capture_begin"] == 2);
  CHECK(recorder.calls["graph_launch"] == 4);
}

TEST_CASE_METHOD(Batches, "copies onto themselves are never part of a graph") {
  std::vector<Command> moving = batch(10);
  moving.push_back(Copy{x + 8, x + 4, 16});
  for (int k = 0; k < 4; k++) driver->submit(moving);
  driver->wait(driver->submit({}));
  CHECK(recorder.calls["capture_begin"] == 0);
  CHECK(recorder.launches.size() == 40);
}

TEST_CASE_METHOD(Batches, "few graphs are kept") {
  for (size_t n = 10; n < 110; n++)
    for (int k = 0; k < 2; k++) driver->submit(batch(n));
  driver->wait(driver->submit({}));
  CHECK(recorder.calls["graph_launch"] == 100);
  CHECK(recorder.live["executable graphs"] <= int(gpu::Graphs::remembered));
}

TEST_CASE_METHOD(Batches, "without graphs everything still runs") {
  Command zero = Fill{x, 64, 0};
  driver->submit({&zero, 1});
  std::string step = GENERATE("capture_begin", "capture_end", "graph_instantiate");
  recorder.failures[step] = {1, 801};
  for (int k = 0; k < 5; k++) driver->submit(batch(10));
  CHECK(counted() == 50);
  CHECK(recorder.calls["graph_launch"] == 0);
  CHECK(recorder.calls["capture_begin"] == 1);
  if (step == "capture_end") recorder.live["graphs"] = 0;
}

TEST_CASE_METHOD(Batches, "the first graph that cannot be made is the last one tried") {
  Command zero = Fill{x, 64, 0};
  driver->submit({&zero, 1});
  std::vector<Command> other = batch(10);
  for (Command& command : other)
    if (auto* l = std::get_if<runtime::Launch>(&command)) l->args = x + 8;
  for (int k = 0; k < 2; k++) driver->submit(batch(10));
  recorder.failures["capture_begin"] = {2, 801};
  for (int k = 0; k < 5; k++) driver->submit(other);
  CHECK(counted() == 20);
  CHECK(read_word(*driver, x + 8) == 50);
  CHECK(recorder.calls["capture_begin"] == 2);
}

TEST_CASE_METHOD(Batches, "a launch that fails in a graph leaves the driver usable") {
  Command zero = Fill{x, 64, 0};
  driver->submit({&zero, 1});
  driver->submit(batch(10));
  recorder.failures["launch"] = {15, 701};
  CHECK_THAT(message_of([&] { driver->submit(batch(10)); }),
             contains("task 0 of kernel 'k'") && contains("701"));
  CHECK(counted() == 10);
  driver->submit(batch(10));
  CHECK(counted() == 20);
}
