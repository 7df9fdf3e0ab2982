// Tangents and adjoints of structures, as the host has them.
#include <quern/autodiff.h>
#include <quern/host.h>

#include <cstddef>
#include <vector>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

template <class W = HostW>
struct Body {  // ends in four bytes of nothing
  In<W, double> x;
  In<W, float> y;
};
template <class W = HostW>
struct Chain {
  In<W, Body<>> body;
  In<W, float> weight;
  In<W, double> k;
};
template <class W = HostW>
struct Row {
  In<W, Array<Body<>, 2>> bodies;
  In<W, float> weight;
};
template <class W = HostW>
struct Halves {
  In<W, qn::half> small;
  In<W, float> weight;
};

struct Turned {  // declared in another order
  float a;
  double b;
  float c;
};
struct Partly {  // one member is not declared
  float a, other;
  float b;
  double c;
};
struct Packed {  // in the order that is declared it would take 24 bytes
  double b;
  float a, c;
};

}  // namespace

QUERN_STRUCT(Turned, c, b, a);
QUERN_STRUCT(Partly, a, b, c);
QUERN_STRUCT(Packed, a, b, c);

namespace {

const std::vector<qn::Layout> layouts = {qn::soa, qn::aos, qn::aosoa(4)};

/// The sum of `use(f[i])` gives each element these adjoints. `other`: what else the host may write.
template <class T, class Use, class Same>
void expect_derivatives(const qn::Device& device, const qn::Field<T>& f, Use use, const T& adjoint,
                        const T& other, Same same) {
  qn::Field<double, 0> sum{device};
  qn::Kernel add = [&] {
    for (auto i : f) sum() += use(f[i]);
  };
  sum.grad().fill(1);
  qn::vjp(add)()();
  for (const T& found : qn::to_vector(f.grad())) CHECK(same(found, adjoint));
  CHECK(same(f.grad().at(1), adjoint));
  CHECK(same(f.grad().snapshot().at(2), adjoint));

  f.grad().set(1, other);
  CHECK(same(f.grad().at(0), adjoint));
  CHECK(same(f.grad().at(1), other));
  f.grad().fill(other);
  CHECK(same(f.grad().at(2), other));
  f.grad().copy_from(std::vector<T>{adjoint, other, adjoint});
  CHECK(same(f.grad().at(0), adjoint));
  CHECK(same(f.grad().at(1), other));
}

template <class T>
qn::Field<T> three(const qn::Device& device, const qn::Layout& layout) {
  return qn::Field<T>{device, {3}, layout};
}

}  // namespace

TEST_CASE("adjoints of structures lie on the host as the structures do") {
  on_every_device([](const qn::Device& device) {
    for (const qn::Layout& layout : layouts) {
      expect_derivatives(
          device, three<Chain<>>(device, layout),
          [](auto&& e) {
            return 10.0 * e.body.x + 20.0 * cast<double>(e.body.y) + 30.0 * cast<double>(e.weight) +
                   40.0 * e.k;
          },
          Chain<>{{10, 20}, 30, 40}, Chain<>{{1, 2}, 3, 4},
          [](const Chain<>& a, const Chain<>& b) {
            return a.body.x == b.body.x && a.body.y == b.body.y && a.weight == b.weight &&
                   a.k == b.k;
          });
      expect_derivatives(
          device, three<Row<>>(device, layout),
          [](auto&& e) {
            return 10.0 * e.bodies[0].x + 20.0 * cast<double>(e.bodies[1].y) +
                   30.0 * cast<double>(e.weight);
          },
          Row<>{{{{10, 0}, {0, 20}}}, 30}, Row<>{{{{1, 2}, {3, 4}}}, 5},
          [](const Row<>& a, const Row<>& b) {
            return a.bodies[0].x == b.bodies[0].x && a.bodies[0].y == b.bodies[0].y &&
                   a.bodies[1].x == b.bodies[1].x && a.bodies[1].y == b.bodies[1].y &&
                   a.weight == b.weight;
          });
      expect_derivatives(
          device, three<Turned>(device, layout),
          [](auto&& e) { return 10.0 * cast<double>(e.a) + 20.0 * e.b + 30.0 * cast<double>(e.c); },
          Turned{10, 20, 30}, Turned{1, 2, 3},
          [](const Turned& a, const Turned& b) { return a.a == b.a && a.b == b.b && a.c == b.c; });
      expect_derivatives(
          device, three<Partly>(device, layout),
          [](auto&& e) { return 10.0 * cast<double>(e.a) + 20.0 * cast<double>(e.b) + 30.0 * e.c; },
          Partly{10, 0, 20, 30}, Partly{1, 0, 2, 3},
          [](const Partly& a, const Partly& b) { return a.a == b.a && a.b == b.b && a.c == b.c; });
      expect_derivatives(
          device, three<Packed>(device, layout),
          [](auto&& e) { return 10.0 * cast<double>(e.a) + 20.0 * e.b + 30.0 * cast<double>(e.c); },
          Packed{20, 10, 30}, Packed{2, 1, 3},
          [](const Packed& a, const Packed& b) { return a.a == b.a && a.b == b.b && a.c == b.c; });
    }
  });
}

TEST_CASE("adjoints and tangents of a member that is a structure, and of one behind it") {
  on_every_device([](const qn::Device& device) {
    for (const qn::Layout& layout : layouts) {
      qn::Field<Chain<>> f = three<Chain<>>(device, layout);
      const auto body = f.member(&Chain<>::body);
      body.grad().copy_from(std::vector<Body<>>{{1, 2}, {3, 4}, {5, 6}});
      f.member(&Chain<>::weight).grad().fill(7);
      CHECK(body.grad().at(1).x == 3);
      CHECK(body.grad().at(1).y == 4);
      CHECK(f.grad().at(2).body.x == 5);
      CHECK(f.grad().at(2).body.y == 6);
      CHECK(f.grad().at(2).weight == 7);
      CHECK(f.grad().at(2).k == 0);

      qn::Field<double, 0> sum{device};
      qn::Kernel add = [&] {
        for (auto i : f) sum() += f[i].body.x * f[i].k + cast<double>(f[i].weight);
      };
      f.fill(Chain<>{{2, 0}, 0, 5});
      f.dual().copy_from(std::vector<Chain<>>{{{1, 0}, 0, 0}, {{0, 0}, 1, 0}, {{0, 9}, 0, 1}});
      qn::jvp(add)();
      CHECK(sum.dual().at({}) == 5 + 1 + 2);
    }
  });
}

TEST_CASE("a structure that holds a half may be a field's, and its members have derivatives") {
  on_every_device([](const qn::Device& device) {
    qn::Field<Halves<>> f{device, {2}};
    f.fill(Halves<>{qn::half(0.5f), 3});
    qn::Kernel scale = [&] {
      for (auto i : f) f[i].weight = f[i].weight * cast<float>(f[i].small);
    };
    const auto small = f.member(&Halves<>::small).grad();
    const auto weight = f.member(&Halves<>::weight).grad();
    weight.copy_from(std::vector<float>{1, 10});
    qn::vjp(scale)()();
    CHECK(f.at(1).weight == 1.5f);
    CHECK(qn::to_vector(small) == std::vector<float>{3, 30});
    CHECK(qn::to_vector(weight) == std::vector<float>{0.5f, 5});
  });
}
