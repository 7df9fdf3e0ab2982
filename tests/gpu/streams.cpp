// Queues of a driver are streams of the vendor's that wait for each other by events, where a ticket
// says so and nowhere else.
#include <algorithm>

#include "backends/llvm/sanitizer.h"
#include "quern/runtime/device.h"
#include "quern/runtime/storage.h"
#include "tests/gpu/support.h"

using namespace quern;
using namespace quern::test;
using runtime::Address;
using runtime::Command;
using runtime::Copy;
using runtime::Device;
using runtime::Fill;
using runtime::Storage;
using runtime::Stream;
using runtime::Ticket;

namespace {

/// How many launches of the kernel have run.
long ran(const recording::Recorder& recorder, const std::string& kernel) {
  return std::ranges::count_if(recorder.launches, [&](const recording::Launch& l) {
    return l.module.starts_with("module of " + kernel + " ");
  });
}

/// Launches of one task each, told apart by their kernels' names.
struct Named {
  Named(gpu::Driver& on, const std::string& name)
      : driver(on), code({serial()}, name), executable(on.load(code.on(on))) {}
  Ticket in(uint32_t queue, std::initializer_list<Ticket> after = {}) {
    const Command command = launch(*executable, 0, runtime::Serial{});
    return driver.submit({&command, 1}, {queue, {after.begin(), after.size()}});
  }
  gpu::Driver& driver;
  Code code;
  std::unique_ptr<runtime::Executable> executable;
};

std::shared_ptr<Storage> words(const std::shared_ptr<Device>& device) {
  return std::make_shared<Storage>(device, std::vector<ir::Storage>{{ir::Type::u32, ir::Type::u32}},
                                   std::vector<int64_t>{16}, Loc{"field.cpp", 3});
}

uint32_t first_word(const Storage& field) {
  uint32_t word = 0;
  field.read(&word, 0, 1);
  return word;
}

}  // namespace

TEST_CASE_METHOD(OnEachVendor,
                 "a queue waits for a submission of another, and for nothing behind it") {
  auto driver = open();
  Named before(*driver, "before"), behind(*driver, "behind"), follower(*driver, "follower");
  const uint32_t a = driver->make_queue(), b = driver->make_queue();
  CHECK(a != 0);
  CHECK(b != a);
  const Ticket t = before.in(a);
  behind.in(a);
  const Ticket last = follower.in(b, {t});
  CHECK(recorder.calls["stream_wait_event"] == 1);
  driver->wait(last);
  CHECK(ran(recorder, "before") == 1);
  CHECK(ran(recorder, "follower") == 1);
  CHECK(ran(recorder, "behind") == 0);
  driver->wait(driver->submit({}, {a, {}}));
  CHECK(ran(recorder, "behind") == 1);
}

TEST_CASE_METHOD(OnEachVendor, "queues that wait for nobody run alone, and each keeps its order") {
  auto driver = open();
  Named one(*driver, "one"), two(*driver, "two"), three(*driver, "three");
  const uint32_t a = driver->make_queue();
  one.in(0);
  const Ticket t = two.in(a);
  const Ticket u = three.in(a, {t});  // of its own queue: in order anyway
  driver->wait(u);
  CHECK(recorder.calls["stream_wait_event"] == 0);
  CHECK(ran(recorder, "one") == 0);
  CHECK(ran(recorder, "two") == 1);
  CHECK(ran(recorder, "three") == 1);
  CHECK(driver->done(t));
}

TEST_CASE_METHOD(OnEachVendor, "a driver with one queue puts no event behind each submission") {
  auto driver = open();
  Named k(*driver, "k");
  for (int n = 0; n < 10; n++) k.in(0);
  CHECK(recorder.calls["event_record"] == 0);
  const uint32_t a = driver->make_queue();
  const Ticket before = driver->submit({});
  k.in(a, {before});
  CHECK(recorder.calls["event_record"] == 2);  // where queue 0 ends, and behind the launch
  driver->wait(driver->submit({}, {a, {}}));
  k.in(0, {driver->submit({}, {a, {}})});  // which is done
  CHECK(recorder.calls["stream_wait_event"] == 1);
}

TEST_CASE_METHOD(OnEachVendor,
                 "memory given back in a queue is there for what is submitted to it") {
  recorder.pools = GENERATE(true, false);
  auto driver = open();
  Named k(*driver, "k");
  const uint32_t a = driver->make_queue();
  const Address x = driver->allocate(4, a), out = driver->allocate(4);
  const Command fill = Fill{x, 4, 23}, copy = Copy{out, x, 4};
  const Ticket allocated = driver->submit({});
  driver->submit({&fill, 1}, {a, {}});
  driver->submit({&copy, 1}, {a, {&allocated, 1}});
  driver->release(x, a);
  driver->wait(k.in(0));  // however far the other queue is
  CHECK(recorder.live["allocations"] == 2);
  uint32_t word = 0;
  driver->download(std::as_writable_bytes(std::span(&word, 1)), out, a);
  CHECK(word == 23);
  driver->wait(driver->submit({}, {a, {}}));
  driver->release(driver->allocate(4, a), a);  // looks for what can go
  driver->release(out);
  driver.reset();
}

TEST_CASE_METHOD(OnEachVendor, "graphs belong to one queue each") {
  auto driver = open();
  Code code{serial()};
  auto executable = driver->load(code.on(*driver));
  const uint32_t a = driver->make_queue();
  const Address x = driver->allocate(4);
  std::vector<Command> batch(10, launch(*executable, 0, runtime::Serial{}, x));
  const Command zero = Fill{x, 4, 0};
  Ticket t = driver->submit({&zero, 1});
  for (int k = 0; k < 4; k++) {
    t = driver->submit(batch, {a, {&t, 1}});
    t = driver->submit(batch, {0, {&t, 1}});
  }
  CHECK(read_word(*driver, x) == 80);
  CHECK(recorder.calls["graph_instantiate"] == 2);
  driver->release(x);
}

TEST_CASE_METHOD(OnEachVendor, "other code's stream and all queues wait for each other") {
  auto driver = open();
  Named own(*driver, "own");
  const uint32_t a = driver->make_queue();
  gpu::StreamHandle theirs = nullptr;
  REQUIRE(api()->stream_create(&theirs, gpu::flag::stream_non_blocking) == 0);
  own.in(a);
  driver->run_before(theirs);
  REQUIRE(api()->stream_synchronize(theirs) == 0);
  CHECK(ran(recorder, "own") == 1);
  const Address x = driver->allocate(4);
  driver->wait(driver->submit({}));
  REQUIRE(api()->fill(x, 9, 1, theirs) == 0);
  driver->run_after(theirs);
  uint32_t word = 0;
  driver->download(std::as_writable_bytes(std::span(&word, 1)), x, a);
  CHECK(word == 9);
  driver->release(x);
  driver->wait(driver->submit({}));
  REQUIRE(api()->stream_destroy(theirs) == 0);
}

TEST_CASE_METHOD(OnEachVendor, "a broken device names the kernels of all queues") {
  auto driver = open();
  Named one(*driver, "one"), two(*driver, "two");
  const uint32_t a = driver->make_queue();
  recorder.faulty_launch = 1;
  one.in(0);
  const Ticket t = two.in(a);
  const std::string text = message_of([&] { driver->wait(t); });
  CHECK_THAT(text, contains("one of the kernels 'one', 'two'"));
  CHECK_THAT(message_of([&] { one.in(0); }), contains("'two'"));
}

// ---- what fields make streams wait for

TEST_CASE_METHOD(OnEachVendor,
                 "a dependence between streams costs one wait for an event, independence none") {
  auto device = std::make_shared<Device>(vendor.name, open());
  auto x = words(device), y = words(device), z = words(device);
  auto a = Stream::make(device), b = Stream::make(device);
  int& waits = recorder.calls["stream_wait_event"];
  auto waited = [&, before = waits]() mutable { return waits - std::exchange(before, waits); };
  auto in = [&](const std::shared_ptr<Stream>& stream, auto&& f) {
    Stream::Current current(stream);
    f();
  };
  const uint32_t one = 1, two = 2;
  waited();
  // Fields of their own.
  in(a, [&] { x->fill(&one); });
  in(b, [&] { y->fill(&two); });
  CHECK(waited() == 0);
  // Read after write: a copy in b of what a wrote. The second stands behind it already.
  auto copy = [](Storage& to, const Storage& from) { to.restore(*from.snapshot({}), {}); };
  in(b, [&] { copy(*y, *x); });
  CHECK(waited() == 1);
  in(b, [&] { copy(*z, *x); });
  CHECK(waited() == 0);
  // Two readers in two streams do not wait for each other.
  in(a, [&] { copy(*words(device), *x); });
  waited();
  // Write after read: by a of what b has read.
  in(a, [&] { x->fill(&two); });
  CHECK(waited() == 1);
  // Write after write.
  in(b, [&] { x->fill(&one); });
  CHECK(waited() == 1);
  in(a, [&] { x->fill(&two); });
  CHECK(waited() == 1);
  in(a, [&] { x->fill(&one); });
  CHECK(waited() == 0);
  // Views share memory.
  in(b, [&] { x->slice(0, 0, 4, 1, {})->fill(&two); });
  CHECK(waited() == 1);
  // The host reads in the stream of the last writer; what it has waited for is done.
  CHECK(first_word(*x) == 2);
  CHECK(first_word(*z) == 1);
  in(a, [&] { x->fill(&one); });
  CHECK(waited() == 0);
}

TEST_CASE_METHOD(OnEachVendor, "exchanged memory takes its uses along") {
  auto device = std::make_shared<Device>(vendor.name, open());
  auto x = words(device), y = words(device);
  auto a = Stream::make(device), b = Stream::make(device);
  const uint32_t one = 1, two = 2;
  {
    Stream::Current current(a);
    x->fill(&one);
  }
  x->swap(*y, {});
  const int before = recorder.calls["stream_wait_event"];
  {
    Stream::Current current(b);
    x->fill(&two);
    CHECK(recorder.calls["stream_wait_event"] == before);
    y->fill(&two);
    CHECK(recorder.calls["stream_wait_event"] == before + 1);
  }
  CHECK(first_word(*x) == 2);
  CHECK(first_word(*y) == 2);
}

TEST_CASE_METHOD(OnEachVendor,
                 "memory that two streams use is given back behind both, and neither waits") {
  recorder.pools = GENERATE(true, false);
  auto device = std::make_shared<Device>(vendor.name, open());
  auto out = words(device), x = words(device);
  auto a = Stream::make(device), b = Stream::make(device);
  const uint32_t one = 1, two = 2;
  {
    Stream::Current current(a);
    x->fill(&one);
  }
  {
    Stream::Current current(b);
    out->restore(*x->snapshot({}), {});
  }
  const auto streams = recorder.live["streams"];
  x.reset();
  CHECK(recorder.live["streams"] == streams + 1);  // which waits for both
  const int before = recorder.calls["stream_wait_event"];
  auto y = words(device);
  for (const auto& stream : {a, b}) {
    Stream::Current current(stream);
    words(device)->fill(&two);
  }
  CHECK(recorder.calls["stream_wait_event"] == before);
  CHECK(first_word(*out) == 1);
  device->synchronize();
  CHECK(recorder.calls["stream_wait_event"] == before);
}

TEST_CASE_METHOD(OnEachVendor,
                 "a version of a field of several components is one allocation and one copy") {
  auto device = std::make_shared<Device>(vendor.name, open());
  const ir::Storage single = {ir::Type::f32, ir::Type::f32}, wide = {ir::Type::f64, ir::Type::f64};
  const struct {
    int64_t count;
    int pieces;  // 64-byte lines are whole, it is small, or neither
  } cases[] = {{1600, 1}, {5, 1}, {1001, 3}, {0, 0}};
  for (auto [count, pieces] : cases) {
    INFO(count);
    // The address sanitizer watches the ends of each component.
    if (codegen::own_sanitizer == codegen::Sanitizer::address && count > 0) pieces = 3;
    const std::vector<ir::Storage> components = {single, wide, single};
    runtime::Element element;
    element.bytes = 16;
    element.offsets = {0, 4, 12};
    auto x = std::make_shared<Storage>(device, components, std::vector<int64_t>{count}, Loc{},
                                       Layout{}, element);
    std::vector<std::byte> in = numbers(uint64_t(count) * 16), out(in.size()), old(in.size());
    x->write(in.data(), 0, count, {});
    x->read(out.data(), 0, count);
    CHECK((out == in));
    const auto snapshot = x->snapshot({});
    const int copies = recorder.calls["copy"], launches = recorder.calls["launch"];
    const int held = recorder.live["allocations"];
    const uint64_t allocated = device->allocated();
    std::vector<std::byte> zeros(16);
    x->fill(zeros.data(), {});
    const bool together =
        std::string(vendor.name) == "CUDA" && pieces > 1;  // by the kernel for that
    CHECK(recorder.calls["copy"] - copies == (together ? 0 : pieces));
    CHECK(recorder.calls["launch"] - launches == (together ? 1 : 0));
    CHECK(device->allocated() - allocated == snapshot->bytes());
    if (count > 0) CHECK(recorder.live["allocations"] - held == pieces);
    snapshot->read(old.data(), 0, count);
    CHECK((old == in));
    x->read(out.data(), 0, count);
    CHECK((out == std::vector<std::byte>(out.size())));
    x->restore(*snapshot, {});
    x->read(out.data(), 0, count);
    CHECK((out == in));
  }
}

TEST_CASE_METHOD(OnEachVendor, "what was launched before there were streams comes before them") {
  auto device = std::make_shared<Device>(vendor.name, open());
  auto x = words(device), y = words(device);
  const uint32_t one = 1, two = 2;
  x->fill(&one);
  auto a = Stream::make(device);
  {
    Stream::Current current(a);
    y->restore(*x->snapshot({}), {});
    x->fill(&two);
  }
  CHECK(first_word(*y) == 1);
  CHECK(first_word(*x) == 2);
  auto b = Stream::make(device);  // behind nothing but that
  const int before = recorder.calls["stream_wait_event"];
  {
    Stream::Current current(b);
    words(device)->fill(&two);
  }
  CHECK(recorder.calls["stream_wait_event"] == before);
}

TEST_CASE_METHOD(OnEachVendor, "the stand-ins refuse events and streams that have gone") {
  auto driver = open();
  gpu::StreamHandle stream = nullptr, gone = nullptr;
  gpu::EventHandle event = nullptr;
  REQUIRE(api()->stream_create(&stream, gpu::flag::stream_non_blocking) == 0);
  REQUIRE(api()->stream_create(&gone, gpu::flag::stream_non_blocking) == 0);
  REQUIRE(api()->event_create(&event, gpu::flag::event_without_timing) == 0);
  REQUIRE(api()->event_record(event, gone) == 0);
  REQUIRE(api()->stream_destroy(gone) == 0);
  CHECK(api()->stream_wait_event(stream, event, 0) == 0);  // what it stands for has happened
  CHECK(api()->stream_synchronize(stream) == 0);
  CHECK(recorder.misuse.empty());
  CHECK(api()->event_record(event, gone) != 0);
  CHECK(api()->stream_wait_event(gone, event, 0) != 0);
  REQUIRE(api()->event_destroy(event) == 0);
  CHECK(api()->stream_wait_event(stream, event, 0) != 0);
  CHECK(recorder.misuse.size() == 3);
  recorder.misuse.clear();
  REQUIRE(api()->stream_destroy(stream) == 0);
}
