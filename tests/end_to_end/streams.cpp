// Streams: launches in order of the memory that they use, and in no other.
#include <quern/algorithms.h>
#include <quern/quern.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "quern/runtime/device.h"
#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/output.h"

using namespace qn::lang;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

using Numbers = std::vector<uint32_t>;
using Field = qn::Field<uint32_t>;

/// Kernels for programs of launches, and the same on the host.
struct Kernels {
  qn::Kernel<void(Field, U32)> set{[](Field x, U32 a) {
    for (auto i : x) x[i] = a + i;
  }};
  qn::Kernel<void(Field, Field, U32)> add{[](Field to, Field from, U32 a) {
    for (auto i : to) to[i] = to[i] + from[i] * a;
  }};
  qn::Kernel<void(Field, Field)> turn{[](Field to, Field from) {
    for (auto i : to) to[i] = from[to.dim(0) - 1 - i] + 1u;
  }};
};

/// A program of random launches, copies and host accesses over fields, each in a stream that is
/// chosen at random, beside the same on the host, one after another.
class RandomProgram {
 public:
  RandomProgram(const qn::Device& device, uint32_t seed, Kernels& kernels)
      : device_(device), random_(seed), k_(kernels) {
    for (int f = 0; f < 6; f++) {
      fields_.push_back(std::make_unique<Field>(Field{device, {n}}));
      expected_.push_back(Numbers(n, 0));
    }
    for (int s = 0; s < 4; s++) streams_.emplace_back(device);
  }

  /// How many of the host's reads saw something else.
  int run(int steps) {
    for (int k = 0; k < steps; k++) step();
    for (size_t f = 0; f < fields_.size(); f++)
      wrong_ += qn::to_vector(*fields_[f]) != expected_[f];
    return wrong_;
  }

 private:
  static constexpr int n = 64;
  uint32_t any(uint32_t below) { return uint32_t(random_() % below); }

  void step() {
    const size_t stream = any(uint32_t(streams_.size()) + 1);  // the last: the device's own
    std::optional<qn::Stream::Use> use;
    if (stream < streams_.size()) use.emplace(streams_[stream]);
    const size_t a = any(6), b = (a + 1 + any(5)) % 6;
    const uint32_t v = any(1000);
    Field &x = *fields_[a], &y = *fields_[b];
    Numbers &hx = expected_[a], &hy = expected_[b];
    switch (any(14)) {
      case 0:
      case 1:
        k_.set(x, v);
        std::iota(hx.begin(), hx.end(), v);
        break;
      case 2:
      case 3:
      case 4:
      case 5:
        k_.add(x, y, v);
        for (size_t i = 0; i < n; i++) hx[i] += hy[i] * v;
        break;
      case 6:
      case 7: {
        k_.turn(x, y);
        const Numbers old = hy;
        for (size_t i = 0; i < n; i++) hx[i] = old[n - 1 - i] + 1;
        break;
      }
      case 8:
        x.fill(v);
        hx.assign(n, v);
        break;
      case 9: wrong_ += qn::to_vector(x) != hx; break;
      case 10:
        std::iota(hx.begin(), hx.end(), v * 3);
        x.copy_from(hx);
        break;
      case 11:
        x.swap(y);
        hx.swap(hy);
        break;
      case 12: {  // a snapshot that outlives a write of what it was taken from
        const Field old = x.snapshot();
        k_.set(x, v);
        k_.add(y, old, 3);
        for (size_t i = 0; i < n; i++) hy[i] += hx[i] * 3;
        std::iota(hx.begin(), hx.end(), v);
        break;
      }
      case 13:  // memory given back and taken, and a view
        fields_[a] = std::make_unique<Field>(Field{device_, {n}});
        hx.assign(n, 0);
        k_.set(fields_[a]->slice(0, 8, 24), v);
        std::iota(hx.begin() + 8, hx.begin() + 24, v);
        break;
    }
    if (any(20) == 0) streams_[any(4)] = qn::Stream(device_);  // the old one's work goes on
  }

  qn::Device device_;
  std::mt19937 random_;
  Kernels& k_;
  std::vector<std::unique_ptr<Field>> fields_;
  std::vector<Numbers> expected_;
  std::vector<qn::Stream> streams_;
  int wrong_ = 0;
};

}  // namespace

TEST_CASE("what is launched in two streams on fields of their own is all done") {
  on_every_device([](qn::Device& device) {
    Kernels k;
    qn::Stream a(device), b(device);
    Field x{device, {1000}}, y{device, {1000}};
    for (uint32_t r = 0; r < 20; r++) {
      {
        auto in_a = a.use();
        k.set(x, r);
        k.add(x, x, 1);
      }
      auto in_b = b.use();
      k.set(y, 2 * r);
    }
    Numbers hx(1000), hy(1000);
    for (uint32_t i = 0; i < 1000; i++) {
      hx[i] = 2 * (19 + i);
      hy[i] = 38 + i;
    }
    CHECK(qn::to_vector(x) == hx);
    CHECK(qn::to_vector(y) == hy);
  });
}

TEST_CASE("programs of launches over fields and streams do what they do one after another") {
  on_every_device([](qn::Device& device) {
    Kernels kernels;
    const bool slow = std::string(device.name()) != "cpu";
    for (uint32_t seed = 1; seed <= (slow ? 5 : 40); seed++) {
      INFO("seed " << seed);
      CHECK(RandomProgram(device, seed, kernels).run(200) == 0);
    }
  });
}

TEST_CASE("algorithms run in the stream in use, with their temporary fields") {
  on_every_device([](qn::Device& device) {
    constexpr int64_t n = 20000;
    qn::Stream a(device), b(device);
    qn::Field<int> x{device, {n}}, sums{device, {n}}, keys{device, {n}};
    qn::Kernel ones = [&] {
      for (auto i : x) x[i] = 1;
    };
    qn::Kernel back = [&] {
      for (auto i : keys) keys[i] = int(n) - sums[i];
    };
    {
      auto in_a = a.use();
      ones();
      qn::inclusive_scan(x, sums);
    }
    {
      auto in_b = b.use();
      back();  // n-1 … 0
      qn::sort(keys);
      CHECK(int(qn::max(sums)) == n);
    }
    std::vector<int> expected(n);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(qn::to_vector(keys) == expected);
  });
}

TEST_CASE(
    "a failed check ends later launches of its stream, and is told where that is waited for") {
  on_every_device([](qn::Device& device) {
    Kernels k;
    qn::Stream a(device), b(device);
    Field x{device, {10}}, y{device, {10}}, z{device, {10}};
    int line = 0;
    qn::Kernel fail{[&](U32 v) {
                      line = __LINE__ + 1;
                      for (auto i : x) check(v + i < 5u, "too many: {}", v);
                    },
                    {.checked = true}};
    k.set(z, 7);
    {
      auto in_a = a.use();
      fail(100);
      k.set(z, 8);  // does nothing
    }
    {
      auto in_b = b.use();
      k.set(y, 1);
    }
    b.synchronize();
    CHECK(y.at(9) == 10);  // of b alone
    int at = 0;
    const std::string text = error_of([&] { a.synchronize(); }, &at);
    CHECK(has(text, "too many: 100"));
    CHECK(at == line);
    CHECK(z.at(0) == 7);
    {
      auto in_a = a.use();
      k.set(z, 9);
    }
    CHECK(z.at(0) == 9);
    CHECK(error_of([&] { device.synchronize(); }) == "");
    {
      auto in_a = a.use();
      fail(200);
    }
    CHECK(has(error_of([&] { device.synchronize(); }), "too many: 200"));
    {
      auto in_a = a.use();
      fail(300);
      k.set(z, 10);
    }
    CHECK(has(error_of([&] { z.at(0); }), "too many: 300"));
    CHECK(z.at(0) == 9);
  });
}

TEST_CASE("who reads what was made of a failed launch's field is told, through other streams too") {
  on_every_device([](qn::Device& device) {
    qn::Stream a(device), b(device), c(device);
    Field x{device, {4}}, y{device, {4}}, z{device, {4}}, apart{device, {4}};
    qn::Kernel fail{[](Field to) {
                      for (auto i : to) {
                        check(i < 2u, "no more");
                        to[i] = 5u;
                      }
                    },
                    {.checked = true}};
    qn::Kernel copy = [](Field from, Field to) {
      for (auto i : to) to[i] = from[i];
    };
    x.fill(1);
    apart.fill(3);
    {
      auto in_a = a.use();
      fail(x);
    }
    {
      auto in_b = b.use();
      copy(x, y);  // runs, on what is there
    }
    {
      auto in_c = c.use();
      copy(y, z);
    }
    CHECK(qn::to_vector(apart) == Numbers(4, 3));
    CHECK(has(error_of([&] { qn::to_vector(z); }), "no more"));
    CHECK(qn::to_vector(z) == qn::to_vector(x));
    CHECK(error_of([&] { device.synchronize(); }) == "");
  });
}

TEST_CASE("a failure behind what a stream has waited for is none of its concern") {
  on_every_device([](qn::Device& device) {
    Kernels k;
    qn::Stream a(device), b(device);
    Field x{device, {4}}, y{device, {4}}, z{device, {4}};
    qn::Kernel fail{[&] {
                      for (auto i : z) check(i < 1u, "later");
                    },
                    {.checked = true}};
    {
      auto in_a = a.use();
      k.set(x, 1);
    }
    {
      auto in_b = b.use();
      k.add(y, x, 1);
    }
    {
      auto in_a = a.use();
      fail();
    }
    CHECK(error_of([&] { b.synchronize(); }) == "");
    CHECK(y.at(3) == 4);
    CHECK(has(error_of([&] { a.synchronize(); }), "later"));
  });
}

TEST_CASE("results of launches in streams wait for them and throw what ended them") {
  on_every_device([](qn::Device& device) {
    qn::Stream a(device), b(device);
    Field x{device, {100}};
    qn::Kernel total{[&](U32 most) {
                       Var<uint32_t> sum = 0u;
                       for (auto i : x) {
                         check(x[i] <= most, "more than {}", most);
                         sum += x[i];
                       }
                       return sum;
                     },
                     {.checked = true}};
    x.fill(2);
    auto first = [&] {
      auto in_a = a.use();
      return total(1);
    }();
    auto second = [&] {
      auto in_b = b.use();
      return total(2);
    }();
    CHECK(uint32_t(second) == 200);
    for (int k = 0; k < 2; k++) CHECK(has(error_of([&] { first.value(); }), "more than 1"));
    CHECK(uint32_t(second) == 200);
  });
}

TEST_CASE("a stream prints what its kernels print when it is waited for") {
  on_every_device([](qn::Device& device) {
    qn::Stream a(device), b(device);
    qn::Kernel say = [](I32 v) { print("line {}", v); };
    Field x{device, {1}};
    auto say_in = [&](qn::Stream& s, int v) {
      auto use = s.use();
      qn::Kernel touch = [&](I32 w) {
        print("line {}", w);
        x[0] = 1u;
      };
      touch(v);
    };
    CHECK(output_of([&] {
            say_in(a, 1);
            say_in(b, 2);
            a.synchronize();
          }) == "line 1\n");
    CHECK(output_of([&] { b.synchronize(); }) == "line 2\n");
    CHECK(output_of([&] {
            say_in(a, 3);
            device.synchronize();
          }) == "line 3\n");
  });
}

TEST_CASE("the stream in use is the last one chosen by the thread, on its device") {
  on_every_device([](qn::Device& device) {
    using quern::runtime::Stream;
    const std::shared_ptr<quern::runtime::Device> opened =
        quern::runtime::Device::open(device.name());
    Stream& own = opened->stream();
    qn::Stream a(device), b(device);
    CHECK(&Stream::current(*opened) == &own);
    {
      auto in_a = a.use();
      Stream& of_a = Stream::current(*opened);
      CHECK(&of_a != &own);
      {
        auto in_b = b.use();
        CHECK(&Stream::current(*opened) != &of_a);
        CHECK(&Stream::current(*opened) != &own);
        bool elsewhere = true;
        std::thread([&] { elsewhere = &Stream::current(*opened) == &own; }).join();
        CHECK(elsewhere);
        auto in_a_again = a.use();
        CHECK(&Stream::current(*opened) == &of_a);
      }
      CHECK(&Stream::current(*opened) == &of_a);
      const auto other = quern::runtime::Device::open(
          std::string(device.name()) == "interpreter" ? "cpu" : "interpreter");
      CHECK(&Stream::current(*other) == &other->stream());
    }
    CHECK(&Stream::current(*opened) == &own);
    std::optional<qn::Stream::Use> first(a), second(b);
    Stream& of_b = Stream::current(*opened);
    first.reset();
    CHECK(&Stream::current(*opened) == &of_b);
    second.reset();
    CHECK(&Stream::current(*opened) == &own);
  });
}

TEST_CASE("fields of a device without a stream in use run where they always did") {
  on_every_device([](qn::Device& device) {
    qn::Device other(std::string(device.name()) == "interpreter" ? "cpu" : "interpreter");
    Kernels k;
    qn::Stream a(device);
    Field x{other, {10}};
    auto use = a.use();
    k.set(x, 4);
    CHECK(x.at(9) == 13);
  });
}

TEST_CASE("a stream may go while its work runs; who reads the fields is told what became of it") {
  on_every_device([](qn::Device& device) {
    Kernels k;
    Field x{device, {50000}}, y{device, {4}};
    qn::Kernel fail{[&] {
                      for (auto i : y) check(i < 1u, "gone");
                    },
                    {.checked = true}};
    {
      qn::Stream a(device);
      auto use = a.use();
      for (uint32_t r = 0; r < 10; r++) k.add(x, x, r);
      k.set(x, 5);
    }
    CHECK(x.at(7) == 12);
    {
      qn::Stream a(device);
      auto use = a.use();
      fail();
      y.fill(2);
    }
    for (int r = 0; r < 3; r++) qn::Stream unused(device);  // none gets the record of the one gone
    CHECK(has(error_of([&] { device.synchronize(); }), "gone"));
    CHECK(error_of([&] { device.synchronize(); }) == "");
  });
}

TEST_CASE("a thousand streams, at once and one after another") {
  on_every_device([](qn::Device& device) {
    Kernels k;
    std::vector<qn::Stream> streams;
    std::vector<Field> fields;
    Field sum{device, {8}};
    for (int s = 0; s < 1000; s++) {
      streams.emplace_back(device);
      fields.push_back(Field{device, {8}});
    }
    for (uint32_t s = 0; s < 1000; s++) {
      auto use = streams[s].use();
      k.set(fields[s], s);
    }
    for (uint32_t s = 0; s < 1000; s++) {
      auto use = streams[999 - s].use();
      k.add(sum, fields[s], 1);
    }
    Numbers expected(8);
    for (uint32_t i = 0; i < 8; i++) expected[i] = 999 * 1000 / 2 + 1000 * i;
    CHECK(qn::to_vector(sum) == expected);
    streams.clear();
    for (uint32_t s = 0; s < 1000; s++) {
      qn::Stream one(device);
      auto use = one.use();
      k.add(sum, fields[0], 1);
    }
    for (uint32_t i = 0; i < 8; i++) expected[i] += 1000 * i;
    CHECK(qn::to_vector(sum) == expected);
  });
}

TEST_CASE("streams that nobody has are used again, and memory does not grow") {
  on_every_device([](qn::Device& device) {
    const auto opened = quern::runtime::Device::open(device.name());
    auto stream_of = [&](const qn::Stream& s) {
      auto use = s.use();
      return &quern::runtime::Stream::current(*opened);
    };
    device.synchronize();
    auto first = std::make_unique<qn::Stream>(device);
    const auto* known = stream_of(*first);
    CHECK(stream_of(qn::Stream(device)) != known);
    first.reset();
    device.synchronize();  // one with work to do is nobody's yet
    qn::Stream second(device), third(device);
    CHECK(stream_of(second) == known);
    CHECK(stream_of(third) != known);
  });
}

TEST_CASE("random numbers count the launches of all streams") {
  on_every_device([](qn::Device& device) {
    Field x{device, {4}}, y{device, {4}};
    qn::Kernel roll = [](Field to) {
      for (auto i : to) to[i] = random<uint32_t>();
    };
    device.seed(3);
    roll(x);
    roll(y);
    const Numbers first = qn::to_vector(x), second = qn::to_vector(y);
    qn::Stream a(device), b(device);
    device.seed(3);
    {
      auto in_a = a.use();
      roll(x);
    }
    {
      auto in_b = b.use();
      roll(y);
    }
    CHECK(qn::to_vector(x) == first);
    CHECK(qn::to_vector(y) == second);
    CHECK(first != second);
  });
}

TEST_CASE("a stream is refused while a kernel is recorded, and when it was moved from") {
  on_every_device([](qn::Device& device) {
    qn::Stream a(device), b(device);
    Field x{device, {4}};
    int line = 0, at = 0;
    std::string text = error_of(
        [&] {
          qn::Kernel k = [&] {
            line = __LINE__ + 1;
            auto use = a.use();
            x[0] = 1u;
          };
        },
        &at);
    CHECK(has(text, "choosing a stream"));
    CHECK(at == line);
    CHECK(has(error_of([&] { qn::Kernel k = [&] { qn::Stream c(device); }; }), "making a stream"));
    qn::Stream taken = std::move(b);
    line = __LINE__ + 1;
    text = error_of([&] { b.synchronize(); }, &at);
    CHECK(has(text, "moved from"));
    CHECK(at == line);
    CHECK(has(error_of([&] { auto use = b.use(); }), "moved from"));
  });
}

// ---- memory that is wrapped

TEST_CASE("fields on the same memory of the caller's come one after another in all streams") {
  on_every_device([](qn::Device& device) {
    const std::string name = device.name();
    if (name != "cpu" && name != "interpreter")
      return report_not_run(name, "the host's memory is not wrapped");
    Kernels k;
    Numbers memory(96, 0), expected(96, 0);
    {
      qn::Stream a(device), b(device), c(device);
      Field low = Field::wrap(device, memory.data(), {64});
      Field high = Field::wrap(device, memory.data() + 32, {64});
      Field middle = Field::wrap(device, memory.data() + 40, {8});
      for (uint32_t r = 0; r < 30; r++) {
        {
          auto use = a.use();
          k.set(low, r);
        }
        {
          auto use = b.use();
          k.turn(high, high.snapshot());
        }
        {
          auto use = c.use();
          k.add(middle, middle, r);
        }
        std::iota(expected.begin(), expected.begin() + 64, r);
        const Numbers old(expected.begin() + 32, expected.end());
        for (size_t i = 0; i < 64; i++) expected[32 + i] = old[63 - i] + 1;
        for (size_t i = 40; i < 48; i++) expected[i] += expected[i] * r;
      }
      CHECK(qn::to_vector(low) == Numbers(expected.begin(), expected.begin() + 64));
    }
    CHECK(memory == expected);
  });
}

// ---- several threads

TEST_CASE("two threads launch in streams of their own, on fields of their own and on common ones") {
  on_every_device([](qn::Device& device) {
    Kernels k;
    Field common{device, {32}}, constant{device, {32}};
    constant.fill(1);
    std::atomic<int> wrong = 0;
    auto work = [&](uint32_t t) {
      try {
        qn::Stream mine(device);
        Field own{device, {32}};
        for (uint32_t r = 0; r < 60; r++) {
          auto use = mine.use();
          k.set(own, t * 1000 + r);
          k.add(common, constant, 1);
          if (r % 8 == 0) {
            Numbers expected(32);
            std::iota(expected.begin(), expected.end(), t * 1000 + r);
            wrong += qn::to_vector(own) != expected;
          }
          if (r % 16 == 0) qn::Stream brief(device);
        }
      } catch (const std::exception& e) {
        std::fprintf(stderr, "thread %u threw: %s\n", t, e.what());
        wrong += 1000;
      }
    };
    std::thread other([&] { work(1); });
    work(0);
    other.join();
    CHECK(wrong == 0);
    CHECK(qn::to_vector(common) == Numbers(32, 120));
  });
}

TEST_CASE("one stream is used by two threads") {
  on_every_device([](qn::Device& device) {
    Kernels k;
    qn::Stream both(device);
    Field common{device, {32}}, constant{device, {32}};
    constant.fill(2);
    std::atomic<int> wrong = 0;
    auto work = [&] {
      try {
        auto use = both.use();
        for (int r = 0; r < 50; r++) k.add(common, constant, 1);
        both.synchronize();
      } catch (const std::exception&) {
        wrong++;
      }
    };
    std::thread other(work);
    work();
    other.join();
    CHECK(wrong == 0);
    CHECK(qn::to_vector(common) == Numbers(32, 200));
  });
}

// ---- ending launches

TEST_CASE("a time limit and an interrupt end launches in streams, too") {
  on_every_device([](qn::Device& device) {
    const std::string name = device.name();
    if (name != "cpu" && name != "interpreter")
      return report_not_run(name, "launches cannot be ended");
    Kernels k;
    qn::Stream a(device), b(device);
    Field x{device, {4}}, y{device, {4}};
    qn::Kernel endless = [&](U32 on) {
      for (auto i : x) {
        Var<uint32_t> v = 0u;
        While(v < on) v = (v + 1u) % 1000u;
        x[i] = v;
      }
    };
    device.time_limit(0.05);
    {
      auto use = a.use();
      endless(2000);
    }
    {
      auto use = b.use();
      k.set(y, 3);
    }
    b.synchronize();
    CHECK(has(error_of([&] { a.synchronize(); }), "time limit of 0.05 s"));
    device.time_limit(0);
    CHECK(y.at(0) == 3);

    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      device.interrupt();
    });
    {
      auto use = a.use();
      endless(2000);
    }
    later.join();
    CHECK(has(error_of([&] { a.synchronize(); }), "interrupted"));
    // It has been told: nobody else is ended for it.
    {
      auto use = b.use();
      k.set(y, 4);
    }
    CHECK(y.at(0) == 4);
    CHECK(error_of([&] { device.synchronize(); }) == "");
    device.interrupt();
    CHECK(has(error_of([&] { b.synchronize(); }), "nothing ran"));
    CHECK(error_of([&] { device.synchronize(); }) == "");
  });
}
