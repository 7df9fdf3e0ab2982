// Loops over fields on trees that read around their own element, against what the host finds in a map.
#include <quern/sparse.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <thread>

#include "tests/end_to_end/output.h"

using namespace qn::lang;

namespace {

template <int N>
using At = std::array<int, N>;

constexpr int background = -7;

/// Row-major numbers of elements.
template <int N>
int number_of(const At<N>& at, const At<N>& extents) {
  int number = 0;
  for (int axis = 0; axis < N; axis++) number = number * extents[axis] + at[axis];
  return number;
}
template <int N>
std::array<I32, N> index_of(const I32& number, const At<N>& extents, const At<N>& firsts) {
  std::vector<I32> all;
  for (int axis = 0, below = 1; axis < N; axis++) {
    below = 1;
    for (int k = axis + 1; k < N; k++) below *= extents[k];
    all.push_back(number / below % extents[axis] + firsts[axis]);
  }
  if constexpr (N == 1) return {all[0]};
  if constexpr (N == 2) return {all[0], all[1]};
  if constexpr (N == 3) return {all[0], all[1], all[2]};
  if constexpr (N == 4) return {all[0], all[1], all[2], all[3]};
}

/// The field at an index and an offset.
template <class F, size_t N>
auto around(const F& u, const std::array<I32, N>& at, const At<int(N)>& o) {
  if constexpr (N == 1) return u[at[0] + o[0]];
  if constexpr (N == 2) return u(at[0] + o[0], at[1] + o[1]);
  if constexpr (N == 3) return u(at[0] + o[0], at[1] + o[1], at[2] + o[2]);
  if constexpr (N == 4) return u(at[0] + o[0], at[1] + o[1], at[2] + o[2], at[3] + o[3]);
}

/// A loop over the field.
template <class F, class Body>
void each(const F& u, Body body) {
  if constexpr (F::rank == 1)
    for (auto i : u) body(std::array<I32, 1>{i});
  if constexpr (F::rank == 2)
    for (auto [i, j] : u) body(std::array<I32, 2>{i, j});
  if constexpr (F::rank == 3)
    for (auto [i, j, k] : u) body(std::array<I32, 3>{i, j, k});
  if constexpr (F::rank == 4)
    for (auto [i, j, k, l] : u) body(std::array<I32, 4>{i, j, k, l});
}

/// Different elements in a field, some of them at its corners, from which every offset leads to one in it.
template <int N>
std::vector<At<N>> some_elements(const At<N>& extents, const std::vector<At<N>>& offsets,
                                 int count) {
  At<N> before = {}, behind = {};
  for (const At<N>& o : offsets)
    for (int axis = 0; axis < N; axis++) {
      before[axis] = std::max(before[axis], -o[axis]);
      behind[axis] = std::max(behind[axis], o[axis]);
    }
  std::mt19937 random(5);
  std::vector<At<N>> all;
  for (int k = 0; k < count; k++) {
    At<N> at = {};
    for (int axis = 0; axis < N; axis++) {
      const int room = extents[axis] - before[axis] - behind[axis];
      const int step = int(random() % uint32_t(k % 2 ? room : std::min(room, 3)));
      at[axis] = k % 4 == 0 ? before[axis] + room - 1 - step : before[axis] + step;
    }
    all.push_back(at);
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

constexpr int value_of(int number) { return number * 7 % 23 - 11; }

/// Sums of the elements around each active one, with checks and without, of a tree whose elements are
/// active one by one.
template <class T, int N>
void check_sums(const qn::Device& device, const qn::Tree<N>& tree, const At<N>& extents,
                const std::vector<At<N>>& offsets, const At<N>& firsts = {}, int count = 300) {
  const std::vector<At<N>> elements = some_elements<N>(extents, offsets, count);
  std::map<At<N>, int> model;
  std::vector<int> numbers;
  for (const At<N>& at : elements) {
    numbers.push_back(number_of<N>(at, extents));
    model[at] = value_of(numbers.back());
  }
  auto u = tree.template field<T>(T(background)), out = tree.template field<T>(T(99));
  qn::Field<int> chosen{device, {numbers.size()}};
  chosen.copy_from(numbers);
  qn::Field<T> got{device, {numbers.size()}};
  qn::Kernel write = [&] {
    for (auto k : chosen) {
      auto at = index_of<N>(chosen[k], extents, firsts);
      around(u, at, At<N>{}) = cast<T>(chosen[k] * 7 % 23 - 11);
    }
  };
  qn::Kernel read = [&] {
    for (auto k : chosen) got[k] = around(out, index_of<N>(chosen[k], extents, firsts), At<N>{});
  };
  write();
  for (const bool checked : {false, true}) {
    INFO("checked " << checked);
    qn::Kernel sum = {[&] {
                        each(out, [&](const std::array<I32, N>& at) {
                          Var<T> s = T(0);
                          for (size_t k = 0; k < offsets.size(); k++)
                            s = cast<T>(s + T(k + 1) * around(u, at, offsets[k]));
                          around(out, at, At<N>{}) = s;
                        });
                      },
                      {.checked = checked}};
    sum();
    read();
    const std::vector<T> result = qn::to_vector(got);
    for (size_t k = 0; k < elements.size(); k++) {
      int expected = 0;
      for (size_t o = 0; o < offsets.size(); o++) {
        At<N> at = elements[k];
        for (int axis = 0; axis < N; axis++) at[axis] += offsets[o][axis];
        const auto found = model.find(at);
        expected += int(o + 1) * (found == model.end() ? background : found->second);
      }
      INFO("element " << numbers[k]);
      REQUIRE(result[k] == T(expected));
    }
  }
}

}  // namespace

TEST_CASE("loops over trees read around their element, of one to four axes") {
  on_every_device([](const qn::Device& device) {
    check_sums<int, 1>(device, {device, {qn::pointer(6), qn::pointer(3), qn::bitmasked(8)}}, {144},
                       {{-1}, {0}, {1}, {8}, {-3}});
    check_sums<int, 2>(device, {device, {qn::pointer(5), qn::bitmasked(4)}}, {20, 20},
                       {{-1, 0}, {1, 0}, {0, -2}, {0, 1}, {0, 0}, {1, 1}});
    check_sums<int, 3>(device, {device, {qn::pointer(4), qn::pointer(2), qn::bitmasked(4)}},
                       {32, 32, 32},
                       {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}});
    check_sums<int, 4>(device, {device, {qn::pointer(4), qn::bitmasked(4, 2, 2, 4)}},
                       {16, 8, 8, 16},
                       {{-1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, -1, 0}, {0, 0, 0, 1}, {1, 0, 1, 0}});
  });
}

TEST_CASE("every one of the 27 elements around one is read, in each order of strides") {
  std::vector<At<3>> all;
  for (int k = 0; k < 27; k++) all.push_back({k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1});
  on_every_device([&](const qn::Device& device) {
    check_sums<int, 3>(device, {device, {qn::pointer(3), qn::bitmasked(4)}}, {12, 12, 12}, all);
    check_sums<int, 3>(device, {device, {qn::pointer(3), qn::bitmasked(2, 4, 8)}}, {6, 12, 24},
                       all);
  });
}

TEST_CASE("cells of any size: no powers of two, one element wide, large, of several levels") {
  const std::vector<At<2>> cross = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
  on_every_device([&](const qn::Device& device) {
    check_sums<int, 2>(device, {device, {qn::pointer(4), qn::bitmasked(3, 5)}}, {12, 20}, cross);
    check_sums<int, 2>(device, {device, {qn::pointer(4), qn::bitmasked(7, 10)}}, {28, 40}, cross);
    check_sums<int, 2>(device, {device, {qn::pointer(9), qn::bitmasked(1)}}, {9, 9}, cross);
    check_sums<int, 2>(device, {device, {qn::pointer(3, 9), qn::bitmasked(8, 1)}}, {24, 9}, cross);
    check_sums<int, 2>(device, {device, {qn::pointer(9, 3), qn::bitmasked(1, 8)}}, {9, 24}, cross);
    check_sums<int, 2>(device, {device, {qn::pointer(2), qn::bitmasked(96)}}, {192, 192}, cross);
    check_sums<int, 2>(device, {device, {qn::pointer(3), qn::bitmasked(4), qn::bitmasked(2)}},
                       {24, 24}, cross);
    check_sums<int, 2>(device, {device, {qn::pointer(3), qn::dense(3), qn::bitmasked(2, 3)}},
                       {18, 27}, cross);
    check_sums<int, 2>(device, {device, {qn::bitmasked(16)}}, {16, 16}, cross);
    check_sums<int, 1>(device, {device, {qn::pointer(3), qn::bitmasked(64)}}, {192}, {{-1}, {1}});
    check_sums<int, 1>(device, {device, {qn::pointer(3), qn::bitmasked(100)}}, {300}, {{-1}, {1}});
  });
}

TEST_CASE("offsets of a cell's extent and more") {
  on_every_device([](const qn::Device& device) {
    check_sums<int, 2>(device, {device, {qn::pointer(8), qn::bitmasked(4, 2)}}, {32, 16},
                       {{-4, 0}, {4, 0}, {0, 2}, {0, -2}, {3, -2}});
    check_sums<int, 2>(device, {device, {qn::pointer(8), qn::bitmasked(4, 2)}}, {32, 16},
                       {{-5, 0}, {9, 0}, {0, 3}, {1, 0}, {0, -6}});
  });
}

TEST_CASE("a tree cut to a shape, with first indices other than 0") {
  const std::vector<At<2>> cross = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}, {0, 0}};
  on_every_device([&](const qn::Device& device) {
    check_sums<int, 2>(device, {device, {qn::pointer(4), qn::bitmasked(4)}, {.shape = {14, 11}}},
                       {14, 11}, cross);
    check_sums<int, 2>(
        device,
        {device, {qn::pointer(4), qn::bitmasked(4)}, {.shape = {15, 13}, .offset = {-6, 100}}},
        {15, 13}, cross, {-6, 100});
  });
}

TEST_CASE("views of fields on trees are read around the elements of views") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(8), qn::bitmasked(4)}, {.offset = {-3, 5}}};
    auto u = tree.field<int>(background), out = tree.field<int>();
    qn::Kernel write = [&] {
      for (auto k : range(150)) u(k * 7 % 27 - 2, k * 11 % 29 + 6) = k;
    };
    write();
    std::map<At<2>, int> model;
    for (int k = 0; k < 150; k++) model[{k * 7 % 27 - 2, k * 11 % 29 + 6}] = k;
    auto value = [&](int i, int j) { return model.count({i, j}) ? model[{i, j}] : background; };
    using Plane = qn::Field<int, 2>;
    qn::Kernel<void(Plane, Plane)> over_from = [](Plane from, Plane to) {
      auto h = from.dim(0), w = from.dim(1);
      for (auto [i, j] : from) {
        If(i > 0 && i < h - 1 && j > 0 && j < w - 1) {
          to(i, j) = from(i - 1, j) + 3 * from(i, j + 1);
        }
      }
    };
    qn::Kernel<void(Plane, Plane)> over_to = [](Plane from, Plane to) {
      auto h = from.dim(0), w = from.dim(1);
      for (auto [i, j] : to) {
        If(i > 0 && i < h - 1 && j > 0 && j < w - 1) {
          to(i, j) = from(i - 1, j) + 3 * from(i, j + 1);
        }
      }
    };
    // Views of 20 × 21 elements, which begin at 0; `shift` of the one that is read lies further along.
    auto part = [](const Plane& f, int shift) {
      return f.slice(0, 0 + shift, 20 + shift).slice(1, 9, 30);
    };
    for (const int shift : {0, 1, 4})
      for (const bool loops_over_from : {true, false}) {
        INFO("shift " << shift << (loops_over_from ? " over from" : " over to"));
        (loops_over_from ? over_from : over_to)(part(u, shift), part(out, 0));
        for (int i = 1; i < 19; i++)
          for (int j = 10; j < 29; j++) {
            const bool runs = model.count({loops_over_from ? i + shift : i, j});
            if (runs) CHECK(out.at(i, j) == value(i + shift - 1, j) + 3 * value(i + shift, j + 1));
          }
      }
  });
}

TEST_CASE("fields of other types around their element") {
  const std::vector<At<3>> cross = {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0},
                                    {0, 1, 0},  {0, 0, 1}, {0, 0, -1}};
  on_every_device([&](const qn::Device& device) {
    const qn::Tree<3> tree{device, {qn::pointer(3), qn::bitmasked(8)}};
    check_sums<float, 3>(device, tree, {24, 24, 24}, cross);
    check_sums<double, 3>(device, tree, {24, 24, 24}, cross);
    check_sums<int8_t, 3>(device, tree, {24, 24, 24}, cross);
  });
}

TEST_CASE("cells that are active as a whole run all of their elements") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(4), qn::dense(3, 4)}};
    auto u = tree.field<int>(background), out = tree.field<int>();
    qn::Kernel write = [&] {
      for (auto k : range(3)) u(5 + k, 6) = k + 1;
    };
    qn::Kernel sum = [&] {
      for (auto [i, j] : out) out(i, j) = u(i, j - 1) + 10 * u(i + 1, j);
    };
    write();
    sum();
    // Of row 5 cell (1, 1) is there, of rows 6 and 7 cell (2, 1).
    auto value = [](int i, int j) {
      const bool active = i >= 3 && i < 9 && j >= 4 && j < 8;
      return active && j == 6 && i >= 5 && i < 8 ? i - 4 : background;
    };
    for (int i = 0; i < 12; i++)
      for (int j = 0; j < 16; j++) {
        const bool active = i >= 3 && i < 9 && j >= 4 && j < 8;
        CHECK(out.at(i, j) == (active ? value(i, j - 1) + 10 * value(i + 1, j) : 0));
      }
  });
}

TEST_CASE("components of elements that lie together: one is read around, another written") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(4), qn::bitmasked(4)}};
    auto u = tree.field<qn::Vec<float, 2>>({-1, 0}, qn::aos);
    qn::Kernel write = [&] {
      for (auto k : range(40)) {
        u(1 + k % 7 * 2, 1 + k * 5 % 11)[0] = cast<float>(k + 1);
      }
    };
    qn::Kernel sum = [&] {
      for (auto [i, j] : u) u(i, j)[1] = u(i - 1, j)[0] + u(i, j + 1)[0] * 100.0f;
    };
    std::map<At<2>, float> model;
    for (int k = 0; k < 40; k++) model[{1 + k % 7 * 2, 1 + k * 5 % 11}] = float(k + 1);
    write();
    sum();
    auto value = [&](int i, int j) { return model.count({i, j}) ? model[{i, j}] : -1.0f; };
    for (const auto& [at, v] : model)
      CHECK(u.at(at[0], at[1])[1] == value(at[0] - 1, at[1]) + value(at[0], at[1] + 1) * 100.0f);
  });
}

TEST_CASE("a field that the loop writes is read as it is at that moment") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<1> tree{device, {qn::pointer(4), qn::bitmasked(8)}};
    auto u = tree.field<int>();
    qn::Kernel write = [&] {
      for (auto i : range(31)) u[i] = i;
    };
    // Elements with an even index alone are written, and odd ones alone are read around them.
    qn::Kernel sum = [&] {
      for (auto i : u) {
        If(i % 2 == 0 && i > 0) { u[i] = u[i - 1] + u[i + 1] * 100; }
      }
    };
    write();
    sum();
    for (int i = 1; i < 31; i++)
      CHECK(u.at(i) == (i % 2 ? i : i == 30 ? 29 : i - 1 + (i + 1) * 100));
  });
}

TEST_CASE("a loop makes elements active elsewhere in the tree that it reads around its own") {
  on_every_device([](const qn::Device& device) {
    for (const bool written : {false, true}) {
      qn::Tree<2> tree{device, {qn::pointer(8), qn::pointer(2), qn::bitmasked(4)}, {.cells = 1}};
      auto u = tree.field<int>(background), v = tree.field<int>(5);
      qn::Kernel write = [&] {
        for (auto k : range(30)) u(k * 11 % 50 + 1, k * 7 % 40 + 1) = k;
      };
      qn::Kernel grow = [&] {
        for (auto [i, j] : u) {
          I32 sum = u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1);
          If(u(i, j) != background) {
            if (written)
              v(i + 9, j + 20) = sum;
            else
              activate(v, i + 9, j + 20);
          }
        }
      };
      qn::Field<int, 2> active{device, {64, 64}};
      qn::Kernel list = [&] {
        for (auto [i, j] : u) active(i, j) = 1;
      };
      std::map<At<2>, int> model;
      for (int k = 0; k < 30; k++) model[{k * 11 % 50 + 1, k * 7 % 40 + 1}] = k;
      auto value = [&](int i, int j) { return model.count({i, j}) ? model[{i, j}] : background; };
      write();
      grow();
      list();
      for (int i = 0; i < 64; i++)
        for (int j = 0; j < 64; j++) {
          const bool was = model.count({i, j}), grown = model.count({i - 9, j - 20});
          CHECK(active.at(i, j) == (was || grown));
          const int a = i - 9, b = j - 20;
          const int sum = value(a - 1, b) + value(a + 1, b) + value(a, b - 1) + value(a, b + 1);
          CHECK(v.at(i, j) == (grown && written ? sum : 5));
        }
    }
  });
}

TEST_CASE("sums over a tree of what lies around elements, in any order and in a fixed one") {
  std::vector<float> sums;
  on_every_device([&](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(6), qn::bitmasked(8)}},
        odd{device, {qn::pointer(6), qn::bitmasked(5, 7)}};
    std::map<At<2>, int> model;
    for (int k = 0; k < 700; k++) model[{1 + k * 37 % 27, 1 + k * 11 % 40}] = 0;
    for (const qn::Tree<2>& on : {tree, odd}) {
      auto u = on.field<float>();
      qn::Kernel write = {[&] {
                            for (auto k : range(700)) {
                              I32 i = 1 + k * 37 % 27, j = 1 + k * 11 % 40;
                              u(i, j) = 1.0f / cast<float>(i * 41 + j);
                            }
                          },
                          {.strict = true}};
      qn::Kernel count = [&]() -> I32 {
        Var<int> n = 0;
        for (auto [i, j] : u)
          n += cast<int>(u(i + 1, j) != 0.0f) + 100 * cast<int>(u(i, j) != 0.0f);
        return n;
      };
      qn::Kernel sum = {[&]() -> F32 {
                          Var<float> s = 0.0f;
                          for (auto [i, j] : deterministic(u.indices()))
                            s += u(i - 1, j) + 3.0f * u(i, j + 1);
                          return s;
                        },
                        {.strict = true}};
      write();
      int expected = 0;
      for (const auto& [at, v] : model) expected += 100 + int(model.count({at[0] + 1, at[1]}));
      CHECK(int(count()) == expected);
      sums.push_back(float(sum()));
      double near = 0;
      auto value = [&](int i, int j) { return model.count({i, j}) ? 1.0 / (i * 41 + j) : 0.0; };
      for (const auto& [at, v] : model)
        near += value(at[0] - 1, at[1]) + 3 * value(at[0], at[1] + 1);
      CHECK(near > 0);
      CHECK(std::abs(sums.back() - near) < 1e-6 * near);
    }
  });
  for (size_t k = 2; k < sums.size(); k++) CHECK(sums[k] == sums[k - 2]);
}

TEST_CASE("random numbers and lines of a loop over a tree that reads around its element") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(4), qn::bitmasked(4)}, {.shape = {16, 13}}};
    auto u = tree.field<float>(), noise = tree.field<float>();
    qn::Field<float, 2> dense{device, {16, 13}};
    qn::Kernel all = [](qn::Field<float, 2> x) {
      for (auto [i, j] : x) x(i, j) = random<float>();
    };
    qn::Kernel some = [&] {
      for (auto k : range(8)) u(k + 1, k + 2) = 2.0f;
    };
    qn::Kernel with_noise = [&] {
      for (auto [i, j] : noise) noise(i, j) = random<float>() + u(i - 1, j - 1);
    };
    qn::Kernel speak = [&] {
      for (auto [i, j] : u) print("{} {}", i, u(i + 1, j + 1));
    };
    some();
    device.seed(7);
    with_noise();
    device.seed(7);
    all(dense);
    for (int k = 0; k < 8; k++)
      CHECK(noise.at(k + 1, k + 2) == dense.at(k + 1, k + 2) + (k == 0 ? 0.0f : 2.0f));
    const std::string text = output_of([&] {
      speak();
      device.synchronize();
    });
    for (int k = 1; k <= 8; k++) {
      const std::string line = std::to_string(k) + (k == 8 ? " 0" : " 2");
      CHECK(("\n" + text).find("\n" + line + "\n") != std::string::npos);
    }
  });
}

TEST_CASE("checked mode finds a read around an element that leaves the field") {
  on_every_device([](const qn::Device& device) {
    const qn::Tree<2> whole{device, {qn::pointer(4), qn::bitmasked(4)}},
        cut{device, {qn::pointer(4), qn::bitmasked(4)}, {.shape = {16, 14}}};
    for (const qn::Tree<2>& tree : {whole, cut}) {
      auto u = tree.field<int>(), out = tree.field<int>();
      const int width = int(u.shape(1));
      qn::Kernel write = [&](I32 j) { u(3, j) = 1; };
      qn::Kernel sum = {[&] {
                          for (auto [i, j] : out) out(i, j) = u(i, j + 1);
                        },
                        {.checked = true}};
      write(5);
      sum();
      CHECK(error_of([&] { device.synchronize(); }) == "");
      write(width - 1);
      int line = 0;
      const std::string error = error_of(
          [&] {
            sum();
            device.synchronize();
          },
          &line);
      CHECK(error.find("index " + std::to_string(width) + " on axis 1") != std::string::npos);
      CHECK(line == __LINE__ - 15);
    }
  });
}

TEST_CASE("two threads read around elements of one tree at once") {
  on_every_device([](const qn::Device& device) {
    qn::Tree<2> tree{device, {qn::pointer(16), qn::bitmasked(8)}};
    auto u = tree.field<int>(-1);
    qn::Kernel fill = [&] {
      for (auto [i, j] : grid(40, 40)) u(i + 3, j + 5) = i * 100 + j;
    };
    fill();
    const auto around = [&](int side, int& wrong) {
      auto out = tree.field<int>();
      for (int round = 0; round < 20; round++) {
        qn::Kernel sum = [&] {
          for (auto [i, j] : u) out(i, j) = u(i + side, j) + u(i, j - side);
        };
        sum();
        const auto at = [](int i, int j) {
          return i < 3 || i >= 43 || j < 5 || j >= 45 ? -1 : (i - 3) * 100 + j - 5;
        };
        const auto got = qn::to_vector(qn::to_dense(out));
        for (int i = 3; i < 43; i++)
          for (int j = 5; j < 45; j++)
            wrong += got[size_t(i * 128 + j)] != at(i + side, j) + at(i, j - side);
      }
    };
    int wrong[2] = {};
    std::thread other([&] { around(1, wrong[0]); });
    around(-1, wrong[1]);
    other.join();
    CHECK(wrong[0] == 0);
    CHECK(wrong[1] == 0);
  });
}
