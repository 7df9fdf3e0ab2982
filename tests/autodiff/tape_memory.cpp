// What a tape says that it keeps: counted by hand, and by what the device has allocated.
#include <quern/autodiff.h>

#include "dsl/objects.h"
#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

using namespace qn::lang;
using qn::test::message_of;

TEST_CASE("a tape tells the bytes of what launches have overwritten") {
  on_every_device([](const qn::Device& device) {
    constexpr int64_t size = 1000, bytes = 8 * size;
    constexpr int n = 7;
    qn::Field<double> x{device, {size}}, scale{device, {size}}, loss{device, {1}};
    x.fill(0.5);
    scale.fill(0.75);
    qn::Kernel step = [&] {
      for (auto i : x) x[i] = scale[i] * x[i] * x[i];
    };
    qn::Kernel look = [&] {
      for (auto i : x) atomic_add(loss[0], x[i] * x[i]);
    };
    const auto& on = device.object()->device;
    const auto run = [&](auto&& check_at_rest) {
      const auto check = [&](const qn::Tape& tape, int versions) {
        on->synchronize();  // so that one argument block a kernel is enough
        check_at_rest(tape, versions);
      };
      x.fill(0.5);
      loss.fill(0);
      x.grad().fill(0);
      scale.grad().fill(0);
      loss.grad().fill(1);
      qn::Tape tape;
      check(tape, 0);
      for (int t = 0; t < n; t++) {
        step();
        check(tape, t + 1);
      }
      look();
      check(tape, n);
      look();  // what both read is still x
      check(tape, n);
      x.fill(0);  // once for both
      check(tape, n + 1);
      tape.backward();
      check(tape, 0);
    };
    run([](const qn::Tape&, int) {});  // compiles, and allocates what stays
    const uint64_t before = on->allocated();
    run([&](const qn::Tape& tape, int versions) {
      CHECK(tape.memory() == uint64_t(versions) * bytes);
      // Where the host gets further ahead than in the first run, some more argument blocks are kept.
      const auto more = int64_t(on->allocated()) - int64_t(before) - versions * bytes;
      CHECK((more >= 0 && more < bytes / 2));
    });
  });
}

TEST_CASE("a tape that ends gives back what it kept") {
  on_every_device([](const qn::Device& device) {
    qn::Field<float, 2> x{device, {40, 25}};
    x.fill(0.5f);
    qn::Kernel step = [&] {
      for (auto I : x) x[I] = x[I] * x[I];
    };
    step();
    x.grad().fill(0);
    const auto& on = device.object()->device;
    on->synchronize();
    const uint64_t before = on->allocated();
    {
      qn::Tape tape;
      step();
      on->synchronize();
      step();
      on->synchronize();
      CHECK(tape.memory() == 2 * 4 * 40 * 25);
      CHECK(on->allocated() - before == tape.memory());
    }
    CHECK(on->allocated() == before);
    CHECK(qn::state(x).bytes() == 4 * 40 * 25);
  });
}

TEST_CASE("a tape that was moved from has no memory to tell of") {
  qn::Tape tape;
  const qn::Tape moved = std::move(tape);
  CHECK(moved.memory() == 0);
  CHECK_THAT(message_of([&] { tape.memory(); }), contains("this Tape is none"));
}
