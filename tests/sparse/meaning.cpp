// A kernel means the same whether its fields are dense or on trees.
#include <quern/sparse.h>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

TEST_CASE("random numbers of a loop over a field are those of a dense field") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(4), qn::bitmasked(4)}, {.shape = {16, 13}}};
    auto sparse = tree.field<float>();
    qn::Field<float, 2> dense{device, {16, 13}};
    qn::Kernel all = [](qn::Field<float, 2> u) {
      for (auto [i, j] : u) u(i, j) = random<float>();
    };
    qn::Kernel some = [&] {
      for (auto k : range(8)) activate(sparse, k, k + 2);
    };
    some();
    device.seed(7);
    all(sparse);
    device.seed(7);
    all(dense);
    for (int k = 0; k < 8; k++) CHECK(sparse.at(k, k + 2) == dense.at(k, k + 2));
    CHECK(sparse.at(3, 3) == 0);
  });
}

TEST_CASE("sums over a tree in a fixed order are the same bits whatever has happened to it") {
  std::vector<float> sums;
  on_every_device([&](const qn::Device& device) {
    for (bool detour : {false, true}) {
      qn::Tree<2> tree{device, {qn::pointer(8), qn::pointer(3, 5), qn::bitmasked(2)}, {.cells = 2}};
      auto u = tree.field<float>();
      qn::Kernel other = [&] {
        for (auto k : range(200)) u(k * 11 % 48, k * 7 % 80) = 1.0f;
      };
      qn::Kernel end = [&] {
        for (auto [i, j] : u) deactivate(u, i, j);
      };
      if (detour) {
        other();
        end();
      }
      qn::Kernel write = {[&] {
                            for (auto k : range(500)) {
                              I32 p = k * 37 % 3840;
                              u(p / 80, p % 80) = 1.0f / cast<float>(p + 1);
                            }
                          },
                          {.strict = true}};
      write();
      qn::Kernel sum = {[&]() -> F32 {
                          Var<float> s = 0.0f;
                          for (auto [i, j] : deterministic(u.indices())) s += u(i, j);
                          return s;
                        },
                        {.strict = true}};
      sums.push_back(float(sum()));
    }
  });
  for (float s : sums) CHECK(s == sums[0]);
}

TEST_CASE("one kernel text runs on dense fields and on trees") {
  on_every_device([](const qn::Device& device) {
    qn::Kernel blur = [](qn::Field<float, 2> from, qn::Field<float, 2> to, I32 n) {
      for (auto [i, j] : from) {
        If(i > 0 && i < n - 1 && j > 0 && j < n - 1) {
          to(i, j) = (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1)) * 0.25f;
        }
      }
    };
    const int n = 24;
    qn::Field<float, 2> a{device, {n, n}}, b{device, {n, n}};
    qn::Tree<2> tree{device, {qn::pointer(3), qn::dense(8)}};
    auto c = tree.field<float>(), d = tree.field<float>();
    std::vector<float> values(size_t(n * n));
    for (size_t k = 0; k < values.size(); k++) values[k] = float(k % 17) - 3;
    a.copy_from(values);
    c.copy_from(values);
    blur(a, b, n);
    blur(c, d, n);
    CHECK(qn::to_vector(b) == qn::to_vector(d));
    blur(c, b, n);  // from one to the other
    CHECK(qn::to_vector(b) == qn::to_vector(d));
  });
}
