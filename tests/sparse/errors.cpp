// What has no meaning on a tree is refused with the user's line.
#include <quern/sparse.h>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

#define CHECK_REFUSED(text, ...)                                       \
  do {                                                                 \
    int line = 0;                                                      \
    const int here = __LINE__;                                         \
    CHECK_THAT(error_of([&] { __VA_ARGS__; }, &line), Contains(text)); \
    CHECK(line == here);                                               \
  } while (false)

TEST_CASE("trees that cannot be are refused") {
  qn::Device device("interpreter");
  CHECK_REFUSED("a tree without levels", qn::Tree<2>(device, {}));
  CHECK_REFUSED("pointer is given 3 extents, on a tree of 2 axes",
                qn::Tree<2>(device, {qn::pointer(2, 2, 2)}));
  CHECK_REFUSED("dense has the extent 0 along axis 1", qn::Tree<2>(device, {qn::dense(2, 0)}));
  CHECK_REFUSED("more than 2^24 children", qn::Tree<2>(device, {qn::dense(5000)}));
  CHECK_REFUSED("at most 2^24", qn::Tree<2>(device, {qn::dense(2000), qn::dense(2000)}));
  CHECK_REFUSED("more than 2^31 elements along axis 0",
                qn::Tree<1>(device, {qn::pointer(1 << 20), qn::pointer(1 << 20)}));
  CHECK_REFUSED("whose levels have room for 8 elements along axis 0",
                qn::Tree<1>(device, {qn::pointer(8)}, {.shape = {9}}));
  CHECK_REFUSED("is given 1 extents", qn::Tree<2>(device, {qn::pointer(8)}, {.shape = {8}}));
  CHECK_REFUSED("room for -1 cells", qn::Tree<1>(device, {qn::pointer(8)}, {.cells = -1}));
}

TEST_CASE("what a field on a tree cannot do is refused") {
  qn::Device device("interpreter");
  qn::Tree<2> tree{device, {qn::pointer(8), qn::bitmasked(4)}}, another = tree;
  auto u = tree.field<float>();
  CHECK_REFUSED("its axes are the tree's", u.transposed());
  CHECK_REFUSED("its axes are the tree's", u.flipped(0));
  CHECK_REFUSED("it has all of the tree's axes", u.select(0, 1));
  CHECK_REFUSED("takes every index", u.slice(0, 0, 8, 2));
  CHECK_REFUSED("every element active", u.fill(1.0f));
  CHECK_REFUSED("would not keep which elements are active", u.snapshot());
  CHECK_REFUSED("lie as the tree's levels say", tree.field<float>(0, qn::blocked(4, 4)));
  qn::Tree<2> other{device, {qn::pointer(8), qn::bitmasked(4)}};
  auto v = other.field<float>();
  CHECK_REFUSED("different trees", u.swap(v));
}

TEST_CASE("elements of a field on no tree are not deactivated") {
  qn::Device device("interpreter");
  qn::Field<float> x{device, {4}};
  qn::Kernel k = [&](qn::Field<float> y) {
    for (auto i : y) {
      If(!is_active(y, i)) { y[i] = 1.0f; }
      activate(y, i);
      deactivate(y, i);
    }
  };
  int line = 0;
  CHECK_THAT(error_of([&] { k(x); }, &line), Contains("the field is on no tree"));
  CHECK(line == __LINE__ - 5);
}

TEST_CASE("checked mode names field, index and line of an access outside of a tree") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(8), qn::bitmasked(4)}, {.offset = {2, 0}}};
    auto u = tree.field<float>();
    const int made = __LINE__ - 1;
    qn::Kernel write = {[&](I32 n) {
                          for (auto i : range(n)) u(i + 2, 3) = 1.0f;
                        },
                        {.checked = true}};
    const int line_of_write = __LINE__ - 3;
    write(32);
    device.synchronize();
    write(33);
    int line = 0;
    const std::string text = error_of([&] { device.synchronize(); }, &line);
    CHECK_THAT(text, Contains("index 34 on axis 0"));
    CHECK_THAT(text, Contains("errors.cpp:" + std::to_string(made)));
    CHECK(line == line_of_write);
    CHECK(u.at(33, 3) == 1.0f);
  });
}

TEST_CASE("a check that fails in a loop over a tree names the element's number in the loop") {
  on_every_device([](const qn::Device& device) {
    // Of the second cell there is, each of 2 × 8 elements.
    qn::Tree<2> tree{device, {qn::pointer(8), qn::bitmasked(2, 8)}};
    auto u = tree.field<int>();
    u.set(0, 3, 1);
    u.set(5, 20, 1);
    qn::Field<int> small{device, {22}};
    int here = 0;
    qn::Kernel fails = {[&] {
                          for (auto [i, j] : u) {
                            here = __LINE__ + 1;
                            check(i + j < 25, "element {}, {}", i, j);
                          }
                        },
                        {.checked = true}};
    fails();
    int line = 0;
    const std::string text = error_of([&] { device.synchronize(); }, &line);
    CHECK_THAT(text, Contains("element 5, 20 (iteration 28 of"));
    CHECK(line == here);
    qn::Kernel misses = {[&] {
                           for (auto [i, j] : u) small[i + j - 3] = 1;
                         },
                         {.checked = true}};
    misses();
    CHECK_THAT(error_of([&] { device.synchronize(); }), Contains("(iteration 28 of"));
  });
}
