// Random numbers are numbered in the order of the statements and, within an expression, from the
// left, whatever order the compiler evaluates operands in.
#include <array>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/philox.h"

using namespace qn::lang;

namespace {

using Words = std::array<uint32_t, 6>;

/// `device_value()` of each iteration is `host_value(words)` of the words it draws, in order.
template <class D, class H>
void draws(D device_value, H host_value) {
  constexpr int n = 40;
  on_every_device([&](qn::Device& device) {
    qn::Field<uint32_t> mark{device, {n}}, out{device, {n}};
    qn::Kernel k = [&] {
      for (auto i : mark) mark[i] = random<uint32_t>();
      for (auto i : out) out[i] = device_value();
    };
    k();
    auto marks = qn::to_vector(mark), values = qn::to_vector(out);
    uint32_t launch = 0;
    while (launch < 1'000'000 && marks[0] != philox(0, launch, 0, 0, 0, 0)) launch++;
    for (uint32_t i = 0; i < n; i++) {
      Words w;
      for (uint32_t call = 0; call < w.size(); call++) w[call] = philox(0, launch, i, 0, call, 1);
      REQUIRE(values[i] == host_value(w));
    }
  });
}

auto rnd = [] { return random<uint32_t>(); };

}  // namespace

TEST_CASE("draws of a helper in statements are in the order of the statements") {
  draws(
      [] {
        auto x = rnd();
        auto y = rnd();
        auto z = rnd();
        return 5u * z - 3u * y + x;
      },
      [](const Words& w) { return 5 * w[2] - 3 * w[1] + w[0]; });
  draws(
      [] {
        auto x = rnd();
        return rnd() - x * x;
      },
      [](const Words& w) { return w[1] - w[0] * w[0]; });
  draws(
      [] {
        U32 table[] = {rnd(), rnd(), rnd()};
        Var<uint32_t> sum = table[2] - table[0];
        sum += table[1] * 7u;
        return sum;
      },
      [](const Words& w) { return w[2] - w[0] + 7 * w[1]; });
  draws(
      [] {
        auto x = rnd(), y = rnd();
        return y / 3u + (x - y * rnd());
      },
      [](const Words& w) { return w[1] / 3 + (w[0] - w[1] * w[2]); });
}

TEST_CASE("draws of one expression are numbered from the left") {
  draws([] { return rnd() - 2u * rnd(); }, [](const Words& w) { return w[0] - 2 * w[1]; });
  draws([] { return random<uint32_t>() - 2u * random<uint32_t>(); },
        [](const Words& w) { return w[0] - 2 * w[1]; });
  draws([] { return (rnd() - 2u * rnd()) * (rnd() - 3u * (rnd() ^ rnd())); },
        [](const Words& w) { return (w[0] - 2 * w[1]) * (w[2] - 3 * (w[3] ^ w[4])); });
  draws(
      [] {
        auto v = vec(rnd(), rnd(), rnd(), rnd());
        return v.x - 3u * v.y + 5u * v.z - 7u * v.w;
      },
      [](const Words& w) { return w[0] - 3 * w[1] + 5 * w[2] - 7 * w[3]; });
  draws(
      [] {
        auto v = vec(rnd(), rnd()) * UVec2(rnd(), rnd()) - uvec2(1, 2) * vec(rnd(), 1u);
        return v.x - 3u * v.y;
      },
      [](const Words& w) { return w[0] * w[2] - w[4] - 3 * (w[1] * w[3] - 2); });
  draws([] { return max(rnd(), 2u * rnd()) - min(rnd() >> 1, rnd()); },
        [](const Words& w) { return std::max(w[0], 2 * w[1]) - std::min(w[2] >> 1, w[3]); });
  draws([] { return select(rnd() < rnd(), rnd(), rnd() * rnd()); },
        [](const Words& w) { return w[0] < w[1] ? w[2] : w[3] * w[4]; });
  draws([] { return clamp(rnd(), rnd() >> 2, ~0u - (rnd() >> 2)); },
        [](const Words& w) { return std::min(std::max(w[0], w[1] >> 2), ~0u - (w[2] >> 2)); });
  draws([] { return cast<uint32_t>(random<uint64_t>() * random<uint64_t>() >> 32); },
        [](const Words& w) {
          auto both = [](uint32_t high, uint32_t low) { return uint64_t(high) << 32 | low; };
          return uint32_t(both(w[0], w[1]) * both(w[2], w[3]) >> 32);
        });
  draws([] { return rnd() - 3u * dot(vec(rnd(), rnd()), vec(rnd(), 5u)) * rnd(); },
        [](const Words& w) { return w[0] - 3 * (w[1] * w[3] + w[2] * 5) * w[4]; });
  // Beside draws with names, which come first.
  draws(
      [] {
        auto x = rnd(), y = rnd();
        return x * rnd() - rnd() * y;
      },
      [](const Words& w) { return w[0] * w[2] - w[3] * w[1]; });
}

TEST_CASE("draws of a helper's own variables stay before those right of its call") {
  auto difference = [] {
    auto x = rnd();
    auto y = rnd();
    return y - 3u * x;
  };
  draws([&] { return difference() * rnd(); },
        [](const Words& w) { return (w[1] - 3 * w[0]) * w[2]; });
}

TEST_CASE("a helper's own variables right of a fresh draw: from the left, or refused") {
  auto difference = [] {
    auto x = rnd();
    auto y = rnd();
    return y - 3u * x;
  };
  try {
    draws([&] { return rnd() - difference(); },
          [](const Words& w) { return w[0] - (w[2] - 3 * w[1]); });
  } catch (const qn::Error& e) {
    REQUIRE_THAT(e.message(), Catch::Matchers::Contains("two operations with effects"));
  }
}

TEST_CASE("arguments of a Func are numbered from the left") {
  qn::Func first = [](U32 a, U32 b) { return a - 5u * b; };
  draws([&] { return first(rnd(), rnd()); }, [](const Words& w) { return w[0] - 5 * w[1]; });
}

TEST_CASE("a random index") {
  on_every_device([](qn::Device& device) {
    qn::Field<uint32_t> x{device, {16}}, out{device, {100}}, expected{device, {100}};
    qn::Kernel k = [&] {
      for (auto i : x) x[i] = cast<uint32_t>(i * i + 3);
      for (auto i : out) out[i] = x[rnd() % 16u] - 2u * x[rnd() % 16u];
    };
    k();
    for (uint32_t v : qn::to_vector(out)) {
      bool found = false;
      for (uint32_t a = 0; a < 16; a++)
        for (uint32_t b = 0; b < 16; b++) found |= v == (a * a + 3) - 2 * (b * b + 3);
      REQUIRE(found);
    }
  });
}
