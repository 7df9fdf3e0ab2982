// Level sets: what a band encloses.
#include <quern/sparse.h>

#include <cmath>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

/// Distance to a torus around the last axis but one, in double precision: from its hole rows go in and
/// out twice.
double torus(double x, double y, double z) {
  const double around = std::hypot(x, z) - 7.0;
  return std::hypot(around, y) - 3.2;
}

}  // namespace

TEST_CASE("a flood fill makes what a band encloses active") {
  on_every_device([](const qn::Device& device) {
    for (const bool endless : {false, true}) {
      const qn::TreeLevel root = endless ? qn::hash() : qn::pointer(8);
      qn::Tree<3> tree{
          device, {root, qn::bitmasked(4)}, {.shape = {32, 32, 32}, .offset = {-16, -16, -16}}};
      const float band = 1.5f;
      auto phi = tree.field<float>(band);
      auto mark = tree.field<int>(4);
      qn::Field<float, 3> dense{device, {32, 32, 32}, qn::offset(-16, -16, -16)};
      std::vector<float> distances;
      int inside = 0, in_band = 0;
      for (int i = -16; i < 16; i++)
        for (int j = -16; j < 16; j++)
          for (int k = -16; k < 16; k++) {
            const double d = torus(i, j, k);
            distances.push_back(std::abs(d) < band ? float(d) : band);
            in_band += std::abs(d) < band;
            inside += d <= -band;
          }
      dense.copy_from(distances);
      tree.from_dense(phi, dense);
      REQUIRE(inside > 0);
      CHECK(tree.active_count() == in_band);
      tree.signed_flood_fill(phi);
      CHECK(tree.active_count() == in_band + inside);
      size_t wrong = 0;
      const auto filled = qn::to_dense(phi);
      for (int i = -16; i < 16; i++)
        for (int j = -16; j < 16; j++)
          for (int k = -16; k < 16; k++) {
            const double d = torus(i, j, k);
            const float expected = d <= -band ? -band : d < band ? float(d) : band;
            wrong += filled.at(i, j, k) != expected;
          }
      CHECK(wrong == 0);
      CHECK(mark.at(7, 0, 0) == 4);
      tree.signed_flood_fill(phi);
      CHECK(tree.active_count() == in_band + inside);
    }
  });
}

TEST_CASE("a flood fill goes as far out as a tree does") {
  on_every_device([](const qn::Device& device) {
    const int64_t far = int64_t(1) << 40;
    qn::Tree<1> tree{
        device, {qn::hash(), qn::bitmasked(8)}, {.shape = {2 * far}, .offset = {-far}}};
    auto u = tree.field<double>(2.0);
    for (const int64_t from : {-far + 3, far - 100}) {
      u.set(from, 1.0);
      u.set(from + 1, -1.0);
      u.set(from + 40, -0.5);
      u.set(from + 41, 0.5);
    }
    tree.signed_flood_fill(u);
    CHECK(tree.active_count() == 2 * 42);
    for (const int64_t from : {-far + 3, far - 100}) {
      CHECK(u.at(from + 1) == -1.0);
      for (int64_t k : {2, 20, 39}) CHECK(u.at(from + k) == -2.0);
      CHECK(u.at(from + 40) == -0.5);
      CHECK(u.at(from - 1) == 2.0);
    }
    CHECK(u.at(0) == 2.0);
  });
}

TEST_CASE("a flood fill of a band that is not closed is refused") {
  qn::Device device("interpreter");
  qn::Tree<1> tree{device, {qn::hash(), qn::bitmasked(8)}};
  auto u = tree.field<double>(2.0), zero = tree.field<double>();
  u.set(3, 1.0);
  tree.signed_flood_fill(u);
  CHECK(tree.active_count() == 1);
  u.set(4, -1.0);
  int line = 0;
  CHECK_THAT(error_of([&] { tree.signed_flood_fill(u); }, &line),
             Contains("behind 1 elements below 0 nothing active below 0 follows"));
  CHECK(line == __LINE__ - 2);
  CHECK(tree.active_count() == 2);
  u.set(9, 1.0);
  CHECK_THAT(error_of([&] { tree.signed_flood_fill(u); }), Contains("has a closed band"));
  u.set(8, -0.5);
  tree.signed_flood_fill(u);
  CHECK(tree.active_count() == 7);
  for (int i : {5, 6, 7}) CHECK(u.at(i) == -2.0);
  CHECK(u.at(8) == -0.5);
  CHECK(u.at(2) == 2.0);
  CHECK_THAT(error_of([&] { tree.signed_flood_fill(zero); }),
             Contains("background is not above 0"));
  qn::Tree<1> other{device, {qn::pointer(8)}};
  CHECK_THAT(error_of([&] { other.signed_flood_fill(u); }),
             Contains("a field that is not on this tree"));
}
