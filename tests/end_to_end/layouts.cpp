// Layouts are chosen at the field: the same kernels give the same on fields of every layout, on
// views, on offset indices and on wrapped memory.
#include <array>
#include <cstring>
#include <random>
#include <span>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

template <class W = qn::HostW>
struct Material {
  qn::In<W, float> stiffness;
  qn::In<W, uint8_t> kind;
};
template <class W = qn::HostW>
struct Body {
  qn::In<W, vec2> x, v;
  qn::In<W, Material<>> material;
  qn::In<W, double> mass;
};

struct Named {
  const char* name;
  qn::Layout layout;
};
const Named layouts2[] = {
    {"soa", qn::soa},
    {"aos", qn::aos},
    {"column-major", qn::order(1, 0)},
    {"column-major aos", qn::aos.order(1, 0)},
    {"blocked", qn::blocked(4, 8)},
    {"blocked, no powers of two", qn::blocked(3, 5)},
    {"blocked aos", qn::blocked(8, 8).aos()},
    {"aosoa", qn::aosoa(2, 4)},
    {"nested", qn::blocked(2, 2).of(4, 4)},
    {"Morton", qn::blocked(8, 8).morton()},
    {"offset", qn::offset(-1, 7)},
    {"offset, blocked", qn::blocked(4, 4).offset(-3, -5)},
};

std::string message(auto f) {
  try {
    f();
  } catch (const qn::Error& e) {
    return e.what();
  }
  return "no error";
}

/// A diffusion step, a gather with a data-dependent index and a histogram, over the fields' own
/// indices.
std::vector<float> diffuse(qn::Device& device, const qn::Layout& a, const qn::Layout& b, int n,
                           int m) {
  qn::Field<float, 2> u{device, {n, m}, a}, w{device, {n, m}, b};
  qn::Field<int, 2> counts{device, {4, 5}, b};
  std::vector<float> start(size_t(n) * size_t(m));
  for (size_t k = 0; k < start.size(); k++) start[k] = float(k * 7919 % 101);
  u.copy_from(start);
  qn::Kernel step = [&] {
    for (auto [i, j] : u) {
      auto di = i - u.first(0), dj = j - u.first(1);
      auto p = di + w.first(0), q = dj + w.first(1);
      Var<float> s = 4 * u(i, j);
      If(di > 0) { s += u(i - 1, j); }
      If(di + 1 < u.dim(0)) { s += u(i + 1, j); }
      If(dj > 0) { s += u(i, j - 1); }
      If(dj + 1 < u.dim(1)) { s += u(i, j + 1); }
      w(p, q) = s * 0.125f;
      auto k = cast<int>(u(i, j));
      counts(k % 4 + counts.first(0), k % 5 + counts.first(1)) += 1;
    }
    for (auto I : w) w[I] = w[I] + 1;
  };
  step();
  std::vector<float> out = to_vector(w);
  for (int c : to_vector(counts)) out.push_back(float(c));
  return out;
}

/// The same in plain C++.
std::vector<float> diffused(int n, int m) {
  auto at = [&](int i, int j) { return float((size_t(i) * size_t(m) + size_t(j)) * 7919 % 101); };
  std::vector<float> out;
  std::vector<float> counts(20);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      float s = 4 * at(i, j);
      if (i > 0) s += at(i - 1, j);
      if (i + 1 < n) s += at(i + 1, j);
      if (j > 0) s += at(i, j - 1);
      if (j + 1 < m) s += at(i, j + 1);
      out.push_back(s * 0.125f + 1);
      int k = int(at(i, j));
      counts[size_t(k % 4 * 5 + k % 5)] += 1;
    }
  out.insert(out.end(), counts.begin(), counts.end());
  return out;
}

Body<> body(int k) {
  return {{float(k), float(-k)}, {0.5f * float(k), 1}, {float(k % 7), uint8_t(k % 3)}, 0.25 * k};
}
bool same(const Body<>& a, const Body<>& b) {
  return a.x == b.x && a.v == b.v && a.material.stiffness == b.material.stiffness &&
         a.material.kind == b.material.kind && a.mass == b.mass;
}

}  // namespace

TEST_CASE("a kernel on fields of any layout gives what plain C++ gives") {
  on_every_device([](qn::Device& device) {
    std::mt19937 random(3);
    for (auto [n, m] : {std::pair(13, 21), std::pair(16, 32), std::pair(1, 5)}) {
      const std::vector<float> expected = diffused(n, m);
      for (const Named& a : layouts2) {
        const Named& b = layouts2[random() % std::size(layouts2)];
        INFO(a.name << ", " << b.name << ", " << n << " x " << m);
        CHECK(diffuse(device, a.layout, b.layout, n, m) == expected);
      }
    }
  });
}

TEST_CASE("structs in every layout: kernels, atomics, members, host copies") {
  on_every_device([](qn::Device& device) {
    const int n = 37;
    std::vector<Body<>> start;
    for (int k = 0; k < n; k++) start.push_back(body(k));
    for (const qn::Layout& layout : {qn::soa, qn::aos, qn::aosoa(8), qn::blocked(4).aos(),
                                     qn::aos.offset(-5), qn::aosoa(3).offset(11)}) {
      qn::Field<Body<>> bodies{device, {n}, layout};
      bodies.copy_from(start);
      qn::Kernel move = [&](F32 dt) {
        for (auto i : bodies) {
          auto b = bodies[i];
          bodies[i].x = b.x + dt * b.v;
          bodies[i].mass += 1.0;
          bodies[i].material.stiffness = b.material.stiffness * 2.0f;
        }
      };
      move(0.5f);
      std::vector<Body<>> found(static_cast<size_t>(n));
      bodies.copy_to(found);
      for (int k = 0; k < n; k++) {
        Body<> b = body(k);
        b.x = {b.x.x + 0.5f * b.v.x, b.x.y + 0.5f * b.v.y};
        b.mass += 1;
        b.material.stiffness *= 2;
        REQUIRE(same(found[size_t(k)], b));
        REQUIRE(same(bodies.at(k + bodies.offset(0)), b));
      }
      auto mass = bodies.member(&Body<>::mass);
      auto kinds = bodies.member(&Body<>::material).member(&Material<>::kind);
      auto height = bodies.member(&Body<>::x).component(1);
      qn::Kernel sum = [&] {
        Var<double> total = 0;
        for (auto i : mass) total += mass[i];
        for (auto i : kinds) kinds[i] = cast<uint8_t>(9);
        for (auto i : height) height[i] = bodies[i].v.x;
        return total;
      };
      CHECK(double(sum()) == n + 0.25 * (n - 1) * n / 2);
      bodies.copy_to(std::span(found));
      for (int k = 0; k < n; k++) {
        REQUIRE(found[size_t(k)].material.kind == 9);
        REQUIRE(found[size_t(k)].material.stiffness == 2 * float(k % 7));
        REQUIRE(found[size_t(k)].x.y == 0.5f * float(k));
      }
    }
  });
}

TEST_CASE("an aos field is an array of the C++ struct; wrapped memory is used in place",
          "[cpu][vulkan]") {
  for (const char* name : {"cpu", "interpreter"}) {
    qn::Device device(name);
    std::vector<Body<>> memory;
    for (int k = 0; k < 50; k++) memory.push_back(body(k));
    auto bodies = qn::Field<Body<>>::wrap(device, memory.data(), {50});
    qn::Kernel rest = [&] {
      for (auto i : bodies) {
        bodies[i].v.x = 7;
        bodies[i].v.y = bodies[i].x.x;
      }
    };
    rest();
    device.synchronize();
    for (int k = 0; k < 50; k++) {
      REQUIRE(memory[size_t(k)].v == qn::Vec<float, 2>(7, float(k)));
      REQUIRE(memory[size_t(k)].mass == 0.25 * k);
    }
    // The same program for a part of it that overlaps: y is x shifted by one.
    std::array<int, 9> cells = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    auto whole = qn::Field<int>::wrap(device, cells.data(), {9}, qn::offset(-4));
    auto grid = qn::Field<int, 2>::wrap(device, cells.data(), {3, 3}, qn::order(1, 0));
    qn::Kernel both = [&] {
      for (auto i : range(-4, 5)) {
        whole[i] = whole[i] * 2;
        auto k = i + 4;
        auto seen = grid(k % 3, k / 3);  // column-major: the same cell
        whole[i] = seen + 1;
      }
    };
    both();
    CHECK(to_vector(whole) == std::vector<int>{1, 3, 5, 7, 9, 11, 13, 15, 17});
    CHECK(cells[8] == 17);
    whole.release();
    CHECK(grid.at(1, 2) == 15);
    CHECK_THAT(message([&] { both(); }), contains("was released"));
    const std::string null = message([&] { qn::Field<float>::wrap(device, nullptr, {5}); });
    CHECK_THAT(null, contains("layouts.cpp:"));
    CHECK_THAT(null, contains("null pointer"));
  }
  if (const std::string absent = message([] { qn::Device("vulkan"); }); absent != "no error") {
    NOT_RUN(absent);
    return;
  }
  float value[4] = {};
  CHECK_THAT(message([&] { qn::Field<float>::wrap(qn::Device("vulkan"), value, {4}); }),
             contains("does not see the host's memory"));
}

TEST_CASE("memory may lie anywhere: what runs on aligned elements runs on others too", "[cpu]") {
  using Four = qn::Vec<float, 4>;
  static_assert(alignof(Four) == alignof(float));
  for (const char* name : {"cpu", "interpreter"}) {
    qn::Device device(name);
    alignas(64) float memory[2][4 * 40 + 1];
    for (auto& m : memory)
      for (int k = 0; k < 4 * 40 + 1; k++) m[k] = float(k);
    qn::Kernel reverse = [](qn::Field<vec4> x) {
      for (auto i : x) x[i] = x[i].wzyx();
    };
    auto aligned = qn::Field<vec4>::wrap(device, reinterpret_cast<Four*>(memory[0]), {40});
    auto shifted = qn::Field<vec4>::wrap(device, reinterpret_cast<Four*>(memory[1] + 1), {40});
    reverse(aligned);
    reverse(shifted);
    for (int k = 0; k < 40; k++) {
      REQUIRE(aligned.at(k) == Four(4 * k + 3.0f, 4 * k + 2.0f, 4 * k + 1.0f, 4 * k + 0.0f));
      REQUIRE(shifted.at(k) == Four(4 * k + 4.0f, 4 * k + 3.0f, 4 * k + 2.0f, 4 * k + 1.0f));
    }
    aligned.swap(shifted);
    reverse(aligned);
    for (int k = 0; k < 40; k++)
      REQUIRE(aligned.at(k) == Four(4 * k + 1.0f, 4 * k + 2.0f, 4 * k + 3.0f, 4 * k + 4.0f));
    CHECK(memory[1][0] == 0);
  }
}

TEST_CASE("views: rows, columns, slices, transposed and flipped fields alias their field") {
  on_every_device([](qn::Device& device) {
    for (const Named& n : layouts2) {
      INFO(n.name);
      qn::Field<int, 2> u{device, {6, 8}, n.layout};
      auto f0 = u.offset(0), f1 = u.offset(1);
      auto fill = [&] {
        qn::Kernel set = [&] {
          for (auto [i, j] : u) u(i, j) = 10 * (i - u.first(0)) + j - u.first(1);
        };
        set();
      };
      fill();
      CHECK(to_vector(u.row(f0 + 2)) == std::vector<int>{20, 21, 22, 23, 24, 25, 26, 27});
      CHECK(to_vector(u.select(1, f1 + 7)) == std::vector<int>{7, 17, 27, 37, 47, 57});
      CHECK(u.row(f0 + 5).at(f1 + 3) == 53);
      auto corner = u.slice(0, f0 + 4, f0 + 6).slice(1, f1 + 1, f1 + 4);
      CHECK(to_vector(corner) == std::vector<int>{41, 42, 43, 51, 52, 53});
      CHECK(to_vector(corner.transposed()) == std::vector<int>{41, 51, 42, 52, 43, 53});
      CHECK(to_vector(corner.rebased({-1, 3}).row(-1)) == std::vector<int>{41, 42, 43});
      // A kernel sees through both names: the view is written, then read through the field.
      auto inner = u.slice(0, f0 + 1, f0 + 5).slice(1, f1 + 1, f1 + 7);
      qn::Field<int, 2> out{device, {4, 6}};
      qn::Kernel both = [&] {
        for (auto [i, j] : inner) {
          inner(i, j) = inner(i, j) + 1000;
          out(i, j) = u(i + u.first(0) + 1, j + u.first(1) + 1);
          inner(i, j) += 1;
          out(i, j) = out(i, j) * 10 + u(i + u.first(0) + 1, j + u.first(1) + 1) % 10;
        }
      };
      both();
      std::vector<int> expected, seen = to_vector(out);
      for (int i = 1; i < 5; i++)
        for (int j = 1; j < 7; j++) expected.push_back((1000 + 10 * i + j) * 10 + (j + 1) % 10);
      CHECK(seen == expected);
      CHECK(u.at(f0 + 1, f1 + 1) == 1012);
      CHECK(u.at(f0, f1) == 0);
      if (n.layout.level_count > 0) continue;
      fill();
      auto even = u.slice(1, f1, f1 + 8, 2);
      CHECK(to_vector(even.row(f0 + 3)) == std::vector<int>{30, 32, 34, 36});
      auto back = u.flipped(1);
      CHECK(to_vector(back.row(f0 + 1)) == std::vector<int>{17, 16, 15, 14, 13, 12, 11, 10});
      qn::Kernel mirror = [&] {
        for (auto [i, j] : even) even(i, j) = back(i, j * 2 + back.first(1)) + even(i, j);
      };
      if (n.layout.firsts.count == 0) {
        mirror();
        CHECK(u.at(2, 0) == 27 + 20);
      }
    }
  });
}

TEST_CASE("loops over a field with an offset run through its indices; checks know them") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {12}, qn::offset(-1)}, y{device, {10}};
    qn::Kernel number = [&] {
      for (auto i : x) x[i] = i;
      for (auto i : x.wide()) x[i] = x[i] + 100 * cast<int>(i);
      for (auto i : y) y[i] = x[i - 1] + x[i + 1];
    };
    number();
    for (int i = -1; i <= 10; i++) REQUIRE(x.at(i) == 101 * i);
    for (int i = 0; i < 10; i++) REQUIRE(y.at(i) == 202 * i);
    x.set(-1, 5);
    CHECK(x.at(-1) == 5);
    CHECK(to_vector(x)[0] == 5);
    CHECK_THAT(message([&] { x.at(11); }), contains("indices start at -1"));
    qn::Kernel wrong(
        [](qn::Field<int> f) {
          for (auto i : f) f[i - 1] = 0;
        },
        qn::Options{.checked = true});
    const std::string text = message([&] {
      wrong(x);
      device.synchronize();
    });
    CHECK_THAT(text, contains("layouts.cpp:"));
    CHECK_THAT(text, contains("index -2 on axis 0"));
    CHECK_THAT(text, contains("the extent is 12, the first index -1"));
    CHECK_THAT(message([&] {
                 wrong(y);
                 device.synchronize();
               }),
               contains("index -1 on axis 0"));
    // swap exchanges what is stored, each keeps its indices.
    qn::Field<int> z{device, {12}};
    x.set(-1, 5);
    x.swap(z);
    CHECK(z.at(0) == 5);
    CHECK(x.at(-1) == 0);
  });
}

TEST_CASE("indices past 2^31 want wide loops, offsets included", "[cpu]") {
  qn::Device device("cpu");
  uint8_t never_touched = 0;
  auto x = qn::Field<uint8_t>::wrap(device, &never_touched, {INT32_MAX - 3}, qn::offset(5));
  const int line = __LINE__ + 2;
  qn::Kernel clear = [&] {
    for (auto i : x) x[i] = 0;
  };
  const std::string text = message([&] { clear(); });
  CHECK_THAT(text, contains("layouts.cpp:" + std::to_string(line)));
  CHECK_THAT(text, contains("go from 5 to 2147483648"));
  CHECK_THAT(text, contains("loop over x.wide()"));
}

TEST_CASE("host copies refuse another number of elements, and layouts their field's line",
          "[cpu]") {
  qn::Device device("cpu");
  qn::Field<qn::Vec<float, 3>, 2> u{device, {3, 4}, qn::aos};
  std::vector<qn::Vec<float, 3>> eleven(11), twelve(12);
  CHECK_THAT(message([&] { u.copy_from(eleven); }), contains("11 elements are copied"));
  CHECK_THAT(message([&] { u.copy_to(eleven); }), contains("layouts.cpp:"));
  u.fill({1, 2, 3});
  u.copy_to(std::span(twelve));
  CHECK(twelve[11] == qn::Vec<float, 3>(1, 2, 3));
  u.set(2, 1, {4, 5, 6});
  CHECK(u.component(2).at(2, 1) == 6);
  CHECK_THAT(message([&] { u.component(3); }), contains("component 3 of vectors of 3"));
  const int line = __LINE__ + 1;
  const std::string text = message([&] { qn::Field<int, 2>(device, {4, 4}, qn::blocked(8)); });
  CHECK_THAT(text, contains("layouts.cpp:" + std::to_string(line)));
  CHECK_THAT(text, contains("blocks for 1 axis, of a field with 2"));
  CHECK_THAT(message([&] { u.slice(0, 0, 4); }), contains("slice 0 … 4 of axis 0"));
  CHECK_THAT(message([&] { u.row(3); }), contains("index 3 of axis 0"));
  CHECK_THAT(message([&] { u.slice(2, 0, 1); }), contains("axis 2 of a field with 2"));
  CHECK_THAT(message([&] { u.row(0).swap(u.row(1)); }), contains("view"));
  CHECK_THAT(message([&] { u.row(0).release(); }), contains("view"));
  auto row = u.row(0);
  u.release();
  CHECK_THAT(message([&] { row.at(0); }), contains("released"));
  CHECK_THAT(message([&] { u.row(0); }), contains("released"));
}

TEST_CASE("views of more than 2^31 elements are addressed in 64 bits",
          "[cpu][.long][large-fields]") {
  qn::Device device("cpu");
  for (const qn::Layout& layout : {qn::soa, qn::order(1, 0), qn::blocked(64, 64)}) {
    qn::Field<uint8_t, 2> u{device, {70'000, 40'000}, layout};
    auto column = u.select(1, 39'999), row = u.row(69'999);
    auto tail = u.slice(0, 69'000, 70'000);
    qn::Kernel mark = [&] {
      for (auto i : column) column[i] = cast<uint8_t>(i % 251);
      for (auto j : row) row[j] = cast<uint8_t>(j % 241);
      for (auto i : range(1000)) tail(i, 5) = cast<uint8_t>(i % 239);
    };
    mark();
    CHECK(u.at(69'998, 39'999) == 69'998 % 251);
    CHECK(u.at(69'999, 12'345) == 12'345 % 241);
    CHECK(u.at(69'500, 5) == 500 % 239);
    CHECK(u.at(40'000, 20'000) == 0);
  }
}
