// Sobel, Canny and the bilateral filter against plain C++ in double precision, on a photograph and
// on shapes whose edges are known.
#include <quern/files.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "examples/bilateral.h"
#include "examples/edges.h"
#include "tests/end_to_end/devices.h"

using examples::Grey;

namespace {

/// A host picture that continues as its last row or column.
template <class T>
struct Plane {
  int height, width;
  std::vector<T> v;
  Plane(int h, int w) : height(h), width(w), v(size_t(h) * size_t(w)) {}
  T& at(int i, int j) { return v[size_t(i) * size_t(width) + size_t(j)]; }
  T operator()(int i, int j) const {
    i = std::clamp(i, 0, height - 1), j = std::clamp(j, 0, width - 1);
    return v[size_t(i) * size_t(width) + size_t(j)];
  }
};
using Bytes = Plane<uint8_t>;

/// A part of the photograph: all of it where the device is fast.
Bytes photograph(const qn::Device& device, int side) {
  Grey all = qn::read_image(device, QUERN_EXAMPLE_DATA "/camera.png");
  REQUIRE(all.shape(0) == 512);
  REQUIRE(all.shape(1) == 512);
  Bytes whole(512, 512);
  whole.v = qn::to_vector(all);
  if (device.name() == std::string("cpu")) return whole;
  Bytes part(side, side + 3);
  for (int i = 0; i < part.height; i++)
    for (int j = 0; j < part.width; j++) part.at(i, j) = whole(100 + i, 220 + j);
  return part;
}
Grey field_of(const qn::Device& device, const Bytes& p) {
  Grey f{device, {p.height, p.width}};
  f.copy_from(p.v);
  return f;
}

template <class P>
std::pair<double, double> gradient(const P& p, int i, int j) {
  double x = 0, y = 0;
  for (int k = -1; k <= 1; k++) {
    const double w = k == 0 ? 2 : 1;
    x += w * (double(p(i + k, j + 1)) - double(p(i + k, j - 1)));
    y += w * (double(p(i + 1, j + k)) - double(p(i - 1, j + k)));
  }
  return {x, y};
}

Bytes plain_canny(const Bytes& p, double sigma, double low, double high) {
  const int h = p.height, w = p.width, radius = int(std::ceil(3 * sigma));
  Plane<double> smooth(h, w), length(h, w);
  for (int i = 0; i < h; i++)  // the Gaussian in two dimensions at once
    for (int j = 0; j < w; j++) {
      double sum = 0, weights = 0;
      for (int di = -radius; di <= radius; di++)
        for (int dj = -radius; dj <= radius; dj++) {
          const double g = std::exp(-(di * di + dj * dj) / (2 * sigma * sigma));
          sum += g * p(i + di, j + dj);
          weights += g;
        }
      smooth.at(i, j) = sum / weights;
    }
  for (int i = 0; i < h; i++)
    for (int j = 0; j < w; j++) {
      auto [x, y] = gradient(smooth, i, j);
      length.at(i, j) = std::hypot(x, y);
    }
  Bytes edges(h, w);
  Plane<uint8_t> candidate(h, w);
  std::vector<std::pair<int, int>> open;
  for (int i = 1; i < h - 1; i++)
    for (int j = 1; j < w - 1; j++) {
      auto [x, y] = gradient(smooth, i, j);
      // The angle of the gradient in steps of 45 degrees, modulo 180: 0 is beside, 2 below.
      const int octant = int(std::lround(std::atan2(y, x) / (M_PI / 4)) + 4) % 4;
      const int di = octant == 0 ? 0 : 1, dj = octant == 2 ? 0 : octant == 3 ? -1 : 1;
      const double here = length(i, j);
      if (!(here > length(i - di, j - dj) && here >= length(i + di, j + dj))) continue;
      candidate.at(i, j) = here >= low;
      if (here >= high) open.push_back({i, j});
    }
  while (!open.empty()) {  // everything connected to a strong edge, by flooding
    auto [i, j] = open.back();
    open.pop_back();
    if (edges(i, j)) continue;
    edges.at(i, j) = 255;
    for (int di = -1; di <= 1; di++)
      for (int dj = -1; dj <= 1; dj++)
        if (candidate(i + di, j + dj) && !edges(i + di, j + dj)) open.push_back({i + di, j + dj});
  }
  return edges;
}

}  // namespace

TEST_CASE("Sobel equals plain C++, bit for bit") {
  on_every_device([](qn::Device& device) {
    auto sobel = examples::sobel();
    auto check = [&](const Bytes& p) {
      Grey result{device, {p.height, p.width}};
      sobel(field_of(device, p), result);
      Bytes expected(p.height, p.width);
      for (int i = 0; i < p.height; i++)
        for (int j = 0; j < p.width; j++) {
          auto [x, y] = gradient(p, i, j);
          expected.at(i, j) = uint8_t(std::min(255.0, std::round(std::hypot(x, y))));
        }
      CHECK(qn::to_vector(result) == expected.v);
    };
    check(photograph(device, 60));
    for (auto [h, w] : {std::pair{1, 1}, {1, 9}, {7, 1}, {2, 3}, {5, 17}}) {
      Bytes p(h, w);
      for (size_t k = 0; k < p.v.size(); k++) p.v[k] = uint8_t(k * 37 + k * k * 11);
      check(p);
    }
  });
}

TEST_CASE("Sobel of a ramp is eight times its slope") {
  on_every_device([](qn::Device& device) {
    Bytes p(12, 16);
    for (int i = 0; i < 12; i++)
      for (int j = 0; j < 16; j++) p.at(i, j) = uint8_t(3 * j + 4 * i);
    Grey result{device, {12, 16}};
    examples::sobel()(field_of(device, p), result);
    for (int i = 1; i < 11; i++)
      for (int j = 1; j < 15; j++) REQUIRE(int(result.at(i, j)) == 8 * 5);  // |(3, 4)| = 5
  });
}

TEST_CASE("Canny equals plain C++ that floods from the strong edges") {
  on_every_device([](qn::Device& device) {
    Bytes p = photograph(device, 48);
    Grey edges{device, {p.height, p.width}};
    int rounds =
        examples::Canny({device, {p.height, p.width}}, {.sigma = 1.4f, .low = 40, .high = 100})(
            field_of(device, p), edges);
    std::vector<uint8_t> found = qn::to_vector(edges);
    std::vector<uint8_t> expected = plain_canny(p, 1.4, 40, 100).v;
    int differ = 0, lit = 0;
    for (size_t k = 0; k < found.size(); k++) {
      REQUIRE((found[k] == 0 || found[k] == 255));
      differ += found[k] != expected[k];
      lit += expected[k] != 0;
    }
    CHECK(lit > int(found.size()) / 50);
    CHECK(differ <= int(found.size()) / 2000);  // ties that single precision decides otherwise
    CHECK(rounds >= 2);
  });
}

TEST_CASE("Canny finds the circle around a disc") {
  on_every_device([](qn::Device& device) {
    const int n = 64;
    const double centre = 31.3, radius = 20;
    Bytes p(n, n);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        double outside = std::hypot(i - centre, j - centre) - radius;
        p.at(i, j) = uint8_t(std::lround(200 * std::clamp(0.5 - outside, 0.0, 1.0)) + 20);
      }
    Grey edges{device, {n, n}};
    examples::Canny({device, {n, n}}, {})(field_of(device, p), edges);
    Bytes found(n, n);
    found.v = qn::to_vector(edges);
    double farthest = 0;
    std::vector<bool> seen(72);  // every 5 degrees there is an edge
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        if (!found(i, j)) continue;
        farthest = std::max(farthest, std::abs(std::hypot(i - centre, j - centre) - radius));
        seen[size_t((std::atan2(i - centre, j - centre) + M_PI) / (2 * M_PI) * 72) % 72] = true;
      }
    CHECK(farthest < 1.0);
    CHECK(std::count(seen.begin(), seen.end(), false) == 0);
  });
}

TEST_CASE("Canny refuses thresholds and sigmas that make no sense") {
  qn::Device device;
  auto make = [&](examples::Canny::Parameters p) { examples::Canny({device, {8, 8}}, p); };
  CHECK_THROWS_AS(make({.sigma = 0}), qn::Error);
  CHECK_THROWS_AS(make({.low = 5, .high = 4}), qn::Error);
  CHECK_THROWS_AS(make({.low = -1, .high = 4}), qn::Error);
}

TEST_CASE("the bilateral filter equals plain C++") {
  on_every_device([](qn::Device& device) {
    Bytes p = photograph(device, 24);
    const int radius = 4;
    const double sigma_distance = 3, sigma_grey = 30;
    Grey result{device, {p.height, p.width}};
    examples::bilateral(radius, float(sigma_distance), float(sigma_grey))(field_of(device, p),
                                                                          result);
    std::vector<uint8_t> found = qn::to_vector(result);
    double farthest = 0;
    for (int i = 0; i < p.height; i++)
      for (int j = 0; j < p.width; j++) {
        double sum = 0, weights = 0;
        for (int di = -radius; di <= radius; di++)
          for (int dj = -radius; dj <= radius; dj++) {
            const double v = p(i + di, j + dj), d = v - p(i, j);
            const double weight =
                std::exp(-(di * di + dj * dj) / (2 * sigma_distance * sigma_distance) -
                         d * d / (2 * sigma_grey * sigma_grey));
            sum += weight * v;
            weights += weight;
          }
        const double got = found[size_t(i) * size_t(p.width) + size_t(j)];
        farthest = std::max(farthest, std::abs(got - sum / weights));
      }
    CHECK(farthest < 0.501);  // half for rounding
  });
}

TEST_CASE("the bilateral filter keeps an edge and smooths noise beside it") {
  on_every_device([](qn::Device& device) {
    Bytes p(16, 24);
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 24; j++)
        p.at(i, j) = uint8_t((j < 12 ? 50 : 200) + ((i + j) % 2 ? 4 : -4));
    Grey result{device, {16, 24}};
    examples::bilateral(4, 3, 25)(field_of(device, p), result);
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 24; j++)
        REQUIRE(std::abs(int(result.at(i, j)) - (j < 12 ? 50 : 200)) <= 1);
  });
}
