// Random sequences of what programs do to a tree, against a map of the host's.
#include <quern/sparse.h>

#include <map>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

using Model = std::map<int, int>;  // by the index, what is active

constexpr int extent = 5 * 3 * 4, background = -7;

/// A tree of one axis, and kernels that take a batch of indices.
struct Subject {
  explicit Subject(const qn::Device& device, bool masked, int cells)
      : tree(device, {qn::pointer(5), qn::pointer(3), masked ? qn::bitmasked(4) : qn::dense(4)},
             {.offset = {-10}, .cells = cells}),
        u(tree.field<int>(background)),
        other(tree.field<float>(0.25f)),
        batch(device, {64}),
        values(device, {extent}),
        active(device, {extent}) {}

  qn::Tree<1> tree;
  qn::Field<int> u;
  qn::Field<float> other;
  qn::Field<int> batch, values, active;

  qn::Kernel<void(I32)> write = [&](I32 n) {
    for (auto k : range(n)) u[batch[k]] = batch[k] * 3;
  };
  qn::Kernel<void(I32)> add = [&](I32 n) {
    for (auto k : range(n)) u[batch[k]] += 1;
  };
  qn::Kernel<void(I32)> wake = [&](I32 n) {
    for (auto k : range(n)) activate(other, batch[k]);
  };
  qn::Kernel<void(I32)> end = [&](I32 n) {
    for (auto k : range(n)) deactivate(u, batch[k]);
  };
  qn::Kernel<void(I32, I32)> end_some = [&](I32 by, I32 rest) {
    for (auto i : u) {
      If(abs(i) % by == rest) { deactivate(u, i); }
    }
  };
  qn::Kernel<void()> grow = [&] {
    for (auto i : u) {
      u[i] = u[i] + 1;
      If(i + 1 < extent - 10) { activate(other, i + 1); }
    }
  };
  qn::Kernel<void()> list = [&] {
    for (auto i : values) {
      values[i] = 0;
      active[i] = 0;
    }
    for (auto i : other) {
      values[i + 10] = u[i];
      active[i + 10] += 1;
    }
  };
};

/// The first index of the unit that is active or not as one.
int unit_of(int index, bool masked) { return masked ? index : index - (index + 10) % 4; }

void make_active(Model& model, int index, bool masked) {
  const int first = unit_of(index, masked);
  for (int i = first; i < first + (masked ? 1 : 4); i++) model.try_emplace(i, background);
}
void end(Model& model, int index, bool masked) {
  const int first = unit_of(index, masked);
  for (int i = first; i < first + (masked ? 1 : 4); i++) model.erase(i);
}

void compare(Subject& s, const Model& model) {
  s.list();
  const std::vector<int> values = qn::to_vector(s.values), active = qn::to_vector(s.active);
  std::vector<int> all(extent);
  s.u.copy_to(all);
  int wrong = 0;
  for (int k = 0; k < extent; k++) {
    const auto found = model.find(k - 10);
    const bool is_there = found != model.end();
    wrong += active[size_t(k)] != int(is_there);
    wrong += is_there && values[size_t(k)] != found->second;
    wrong += all[size_t(k)] != (is_there ? found->second : background);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("random operations on a tree do what they do to a map") {
  on_every_device([](const qn::Device& device) {
    const bool fast = device.name() != std::string("cuda");
    for (uint32_t seed = 0; seed < (fast ? 8 : 2); seed++) {
      std::mt19937 random(seed);
      const auto below = [&](int n) { return int(random() % unsigned(n)); };
      const bool masked = seed % 2 == 0;
      Subject s(device, masked, 1 + below(20));
      Model model;
      for (int round = 0; round < 60; round++) {
        const int n = below(12);
        std::vector<int> batch(64, 0);
        std::vector<int> order(extent);
        for (int k = 0; k < extent; k++) order[size_t(k)] = k - 10;
        std::shuffle(order.begin(), order.end(), random);
        for (int k = 0; k < n; k++) batch[size_t(k)] = order[size_t(k)];
        s.batch.copy_from(batch);
        switch (below(6)) {
          case 0:
            s.write(n);
            for (int k = 0; k < n; k++) {
              make_active(model, batch[size_t(k)], masked);
              model[batch[size_t(k)]] = batch[size_t(k)] * 3;
            }
            break;
          case 1:
            s.add(n);
            for (int k = 0; k < n; k++) {
              make_active(model, batch[size_t(k)], masked);
              model[batch[size_t(k)]]++;
            }
            break;
          case 2:
            s.wake(n);
            for (int k = 0; k < n; k++) make_active(model, batch[size_t(k)], masked);
            break;
          case 3:
            s.end(n);
            for (int k = 0; k < n; k++) end(model, batch[size_t(k)], masked);
            break;
          case 4: {
            const int by = 2 + below(3), rest = below(by);
            s.end_some(by, rest);
            const Model before = model;
            for (const auto& [i, v] : before)
              if (std::abs(i) % by == rest) end(model, i, masked);
            break;
          }
          default: {
            s.grow();
            const Model before = model;
            for (const auto& [i, v] : before) model[i]++;
            for (const auto& [i, v] : before)
              if (i + 1 < extent - 10) make_active(model, i + 1, masked);
          }
        }
        compare(s, model);
      }
    }
  });
}
