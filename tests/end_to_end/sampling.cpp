// Reading beyond borders and between elements (quern/sample.h), against plain C++.
#include <quern/sample.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/philox.h"

using namespace qn::lang;

namespace {

enum class Mode { clamp, wrap, mirror, constant };
constexpr Mode modes[] = {Mode::clamp, Mode::wrap, Mode::mirror, Mode::constant};

/// The index of the element that stands for i, of n counted from 0, found by walking; -1: none.
int stands_for(Mode mode, int64_t i, int n) {
  if (i >= 0 && i < n) return int(i);
  switch (mode) {
    case Mode::clamp: return i < 0 ? 0 : n - 1;
    case Mode::wrap:
      while (i < 0) i += n;
      while (i >= n) i -= n;
      return int(i);
    case Mode::mirror:
      while (i < 0 || i >= n) i = i < 0 ? -i - 1 : 2 * int64_t(n) - 1 - i;
      return int(i);
    case Mode::constant: return -1;
  }
  return -1;
}

/// Calls f with the border of the language; constants are 7.
template <class F>
void with_border(Mode mode, F f) {
  switch (mode) {
    case Mode::clamp: return f(border::clamp);
    case Mode::wrap: return f(border::wrap);
    case Mode::mirror: return f(border::mirror);
    case Mode::constant: return f(border::constant(7));
  }
}

/// Shapes of up to three axes with the indices that they start at.
struct Box {
  int n[3], first[3];
  int size() const { return n[0] * n[1] * n[2]; }
};

/// The host's field: what stands at an index, out of range included.
struct Host {
  Box box;
  std::vector<double> v;
  double at(Mode mode, int64_t i, int64_t j, int64_t k) const {
    int64_t index[] = {i, j, k};
    int place = 0;
    for (int a = 0; a < 3; a++) {
      int p = stands_for(mode, index[a] - box.first[a], box.n[a]);
      if (p < 0) return 7;
      place = place * box.n[a] + p;
    }
    return v[size_t(place)];
  }
  /// By the products of weights; what has none does not count.
  double between(Mode mode, double x, double y, double z) const {
    double c[] = {x, y, z}, sum = 0;
    int64_t low[3];
    for (int a = 0; a < 3; a++) low[a] = int64_t(std::floor(c[a]));
    for (int corner = 0; corner < 8; corner++) {
      double weight = 1;
      int64_t at_[3];
      for (int a = 0; a < 3; a++) {
        int up = corner >> a & 1;
        double t = c[a] - double(low[a]);
        weight *= up ? t : 1 - t;
        at_[a] = low[a] + up;
      }
      if (weight != 0) sum += weight * at(mode, at_[0], at_[1], at_[2]);
    }
    return sum;
  }
};

Host numbers(const Box& box, unsigned seed) {
  Host h{box, {}};
  std::mt19937 random(seed);
  for (int k = 0; k < box.size(); k++) h.v.push_back(double(random() % 200));
  return h;
}

template <class T>
std::vector<T> converted(const std::vector<double>& v) {
  std::vector<T> out;
  for (double x : v) out.push_back(T(float(x)));
  return out;
}

}  // namespace

TEST_CASE("borders: every index around fields of one to three axes") {
  on_every_device([](const qn::Device& device) {
    for (Mode mode : modes)
      for (bool checked : {true, false}) {
        Host one = numbers({{5, 1, 1}, {0, 0, 0}}, 1), two = numbers({{3, 4, 1}, {-2, 5, 0}}, 2),
             three = numbers({{2, 1, 3}, {0, 0, 0}}, 3);
        qn::Field<float> a{device, {5}};
        qn::Field<int, 2> b{device, {3, 4}, qn::offset(-2, 5)};
        qn::Field<double, 3> c{device, {2, 1, 3}};
        a.copy_from(converted<float>(one.v));
        b.copy_from(converted<int>(two.v));
        c.copy_from(converted<double>(three.v));
        constexpr int span = 17, low = -8;
        qn::Field<float> x{device, {span}};
        qn::Field<int, 2> y{device, {span, span}};
        qn::Field<double, 3> z{device, {span, span, span}};
        with_border(mode, [&](const auto& beyond) {
          qn::Kernel k{[&] {
                         auto p = bordered(a, beyond);
                         auto q = bordered(b, beyond);
                         auto r = bordered(c, beyond);
                         for (auto i : x) x[i] = p(i + low);
                         for (auto [i, j] : y) y(i, j) = q(i + low, cast<int64_t>(j + low));
                         for (auto [i, j, m] : z) z(i, j, m) = r(i + low, j + low, m + low);
                       },
                       {.checked = checked}};
          k();
        });
        device.synchronize();
        INFO(int(mode));
        for (int i = 0; i < span; i++) {
          REQUIRE(x.at(i) == one.at(mode, i + low, 0, 0));
          for (int j = 0; j < span; j++) {
            REQUIRE(y.at(i, j) == two.at(mode, i + low, j + low, 0));
            for (int m = 0; m < span; m++)
              REQUIRE(z.at(i, j, m) == three.at(mode, i + low, j + low, m + low));
          }
        }
      }
  });
}

TEST_CASE("borders: indices far away, views, structures and device constants") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 6;
    qn::Field<vec2, 2> u{device, {n, 4}};
    std::vector<vec2> host;
    for (int i = 0; i < 4 * n; i++) host.push_back(vec2(float(i), float(-i)));
    u.copy_from(host);
    auto column = u.select(1, 2);
    const std::vector<int> far = {1 << 30, -(1 << 30), 123456789, -123456789, n, -1};
    qn::Field<int> at{device, {far.size()}};
    at.copy_from(far);
    for (Mode mode : modes) {
      qn::Field<vec2> out{device, {far.size()}};
      with_border(mode, [&](const auto& beyond) {
        qn::Kernel k = [&](F32 other) {
          if constexpr (std::is_same_v<decltype(border::constant(7)),
                                       std::decay_t<decltype(beyond)>>) {
            auto p = bordered(column, border::constant(vec(other, -other)));
            for (auto i : at) out[i] = p(at[i]);
          } else {
            auto p = bordered(column, beyond);
            for (auto i : at) out[i] = p(at[i]);
          }
        };
        k(9.5f);
      });
      for (size_t k = 0; k < far.size(); k++) {
        // Periods are taken off first, which the walk on the host would take long for.
        int64_t i = far[k] % (2 * n);
        if (mode == Mode::clamp || mode == Mode::constant) i = far[k];
        int p = stands_for(mode, i, n);
        INFO(int(mode) << " " << far[k]);
        REQUIRE(out.at(k) == (p < 0 ? vec2(9.5f, -9.5f) : host[size_t(4 * p + 2)]));
      }
    }
  });
}

TEST_CASE("samples: random places inside and around, every element type") {
  on_every_device([](const qn::Device& device) {
    std::mt19937 random(11);
    constexpr int count = 300;
    std::vector<vec3> places;
    for (int k = 0; k < count; k++) {
      auto coordinate = [&] {
        float v = float(random() % 20001) / 20001 * 18 - 6;
        return random() % 4 ? v : std::floor(v);  // some at elements
      };
      float x = coordinate(), y = coordinate(), z = coordinate();
      places.push_back(vec3(x, y, z));
    }
    qn::Field<vec3> at{device, {count}};
    at.copy_from(places);
    Host one = numbers({{5, 1, 1}, {0, 0, 0}}, 4), two = numbers({{4, 6, 1}, {0, 0, 0}}, 5),
         three = numbers({{3, 2, 5}, {1, -1, 0}}, 6);
    qn::Field<uint8_t> a{device, {5}};
    qn::Field<vec2, 2> b{device, {4, 6}};
    qn::Field<double, 3> c{device, {3, 2, 5}, qn::offset(1, -1, 0)};
    qn::Field<qn::half> d{device, {5}};
    a.copy_from(converted<uint8_t>(one.v));
    d.copy_from(converted<qn::half>(one.v));
    std::vector<vec2> pairs;
    for (double v : two.v) pairs.push_back(vec2(float(v), float(-2 * v)));
    b.copy_from(pairs);
    c.copy_from(three.v);
    for (Mode mode : modes) {
      qn::Field<float> x{device, {count}}, h{device, {count}};
      qn::Field<vec2> y{device, {count}};
      qn::Field<double> z{device, {count}}, w{device, {count}};
      bool constant = mode == Mode::constant;
      with_border(mode, [&](const auto& beyond) {
        qn::Kernel k{[&] {
                       for (auto i : at) {
                         auto p = at[i];
                         x[i] = sample(a, p.x, beyond);
                         h[i] = sample(d, p.x, beyond);
                         z[i] = sample(c, p, beyond);
                         w[i] = sample(a, cast<double>(p.x), beyond);
                         if (!constant) y[i] = sample(b, p.x, p.y, beyond);
                       }
                     },
                     {.checked = true}};
        k();
      });
      device.synchronize();
      for (int k = 0; k < count; k++) {
        vec3 p = places[size_t(k)];
        INFO(int(mode) << " at " << p.x << " " << p.y << " " << p.z);
        double e1 = one.between(mode, p.x, 0, 0), e2 = two.between(mode, p.x, p.y, 0),
               e3 = three.between(mode, p.x, p.y, p.z);
        // A few roundings of numbers up to 400.
        REQUIRE(std::abs(x.at(k) - e1) < 1e-4);
        REQUIRE(std::abs(h.at(k) - e1) < 1e-4);
        REQUIRE(std::abs(w.at(k) - e1) < 1e-12);
        REQUIRE(std::abs(z.at(k) - e3) < 1e-12);
        if (!constant) REQUIRE(std::abs(y.at(k).x - e2) < 1e-4);
        if (!constant) REQUIRE(std::abs(y.at(k).y + 2 * e2) < 2e-4);
        if (p.x == std::floor(p.x)) REQUIRE(x.at(k) == float(e1));
      }
    }
  });
}

TEST_CASE("samples: exactly the element at an element, whatever its neighbours") {
  on_every_device([](const qn::Device& device) {
    const float inf = std::numeric_limits<float>::infinity(), nan = NAN;
    const std::vector<float> v = {-0.0f, inf, nan, 1e-40f, -inf, 3.4e38f, -3.4e38f, 0.1f};
    qn::Field<float> u{device, {v.size()}}, out{device, {v.size()}};
    u.copy_from(v);
    qn::Kernel k{[&] {
                   for (auto i : u) out[i] = sample(u, cast<float>(i));
                 },
                 {.strict = true}};
    try {
      k();
      device.synchronize();
    } catch (const qn::Error& e) {  // a device that cannot be strict says so
      INFO(e.what());
      REQUIRE(std::string(e.what()).find("strict") != std::string::npos);
      return;
    }
    for (size_t i = 0; i < v.size(); i++) {
      float found = out.at(i);
      INFO(i << ": " << found);
      if (std::isnan(v[i]))
        REQUIRE(std::isnan(found));
      else
        REQUIRE(std::memcmp(&found, &v[i], sizeof found) == 0);
    }
  });
}

TEST_CASE("samples: coordinates that are no numbers, infinite and huge") {
  on_every_device([](const qn::Device& device) {
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> at = {NAN,    inf,     -inf,           0x1p30f,    -0x1p30f, 1e30f,
                                   -1e30f, 3.4e38f, 0x1.fffffep31f, -0x1.8p31f, 2.5f};
    qn::Field<float> x{device, {at.size()}}, u{device, {5}};
    x.copy_from(at);
    u.copy_from(std::vector<float>{10, 11, 12, 13, 14});
    for (Mode mode : modes) {
      qn::Field<float> out{device, {at.size()}}, both{device, {at.size()}};
      with_border(mode, [&](const auto& beyond) {
        qn::Kernel k{[&] {
                       for (auto i : x) {
                         out[i] = sample(u, x[i], beyond);
                         both[i] = cast<float>(sample(u, cast<double>(x[i]), beyond));
                       }
                     },
                     {.checked = true}};
        k();
      });
      device.synchronize();  // no failed check
      for (size_t k = 0; k < at.size(); k++) {
        INFO(int(mode) << " " << at[k]);
        if (!std::isfinite(at[k])) {
          REQUIRE(std::isnan(out.at(k)));
          REQUIRE(std::isnan(both.at(k)));
        } else if (at[k] == 2.5f) {
          REQUIRE(out.at(k) == 12.5f);
        } else {
          int64_t i = at[k] < 0 ? -(1 << 30) : 1 << 30;
          if (mode == Mode::wrap || mode == Mode::mirror) i %= 10;
          int p = stands_for(mode, i, 5);
          REQUIRE(out.at(k) == (p < 0 ? 7.0f : 10.0f + float(p)));
          REQUIRE(both.at(k) == out.at(k));
        }
      }
    }
  });
}

TEST_CASE("samples: draws in the coordinates are numbered from the left") {
  on_every_device([](const qn::Device& device) {
    qn::Field<float, 2> u{device, {8, 8}};
    qn::Field<float> out{device, {50}};
    qn::Field<uint32_t> word{device, {50}};
    qn::Kernel k = [&] {
      for (auto [i, j] : u) u(i, j) = cast<float>(10 * i + j);
      for (auto i : out) {
        out[i] = sample(u, 7 * random<float>(), 7 * random<float>());
        word[i] = random<uint32_t>();
      }
    };
    device.seed(7);  // its launches are counted from 0
    k();
    auto draw = [&](uint32_t i, uint32_t call) {
      return double(philox(7, 0, i, 0, call, 1) >> 8) * 0x1p-24;
    };
    CHECK(word.at(3) == philox(7, 0, 3, 0, 2, 1));
    for (uint32_t i = 0; i < 50; i++)
      REQUIRE(std::abs(out.at(i) - (70 * draw(i, 0) + 7 * draw(i, 1))) < 1e-4);
  });
}
