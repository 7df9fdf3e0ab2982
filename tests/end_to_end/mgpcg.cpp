// Conjugate gradients with a multigrid cycle, in regions on trees: what the solution is by mathematics, the
// residual in plain C++, and that iterations hardly grow with the resolution.
#include "examples/mgpcg.h"

#include <cmath>
#include <functional>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using examples::Mgpcg;

namespace {

bool is_fast(const qn::Device& device) { return device.name() == std::string("cpu"); }

using Region = std::function<B1(const IVec3&)>;

/// Elements below (n, n, n).
qn::Tree<3> tree_of(const qn::Device& device, int n, int levels, const Region& is_in) {
  qn::Tree<3> tree = Mgpcg::box(device, n, levels);
  auto region = tree.field<bool>();
  qn::Kernel fill = [&] {
    for (auto [i, j, k] : grid(n, n, n)) {
      If(is_in(vec(i, j, k))) { activate(region, i, j, k); }
    }
  };
  fill();
  return tree;
}

/// The square of the distance from the middle of n³ elements.
F32 from_middle(const IVec3& at, int n) {
  Vec3 x = cast<float>(at) - 0.5f * float(n - 1);
  return dot(x, x);
}
double from_middle(int i, int j, int k, int n) {
  const double m = 0.5 * (n - 1);
  return (i - m) * (i - m) + (j - m) * (j - m) + (k - m) * (k - m);
}

void fill_with_one(Mgpcg& poisson) {
  qn::Kernel fill = [&] {
    for (auto I : poisson.f) poisson.f[I] = 1.0;
  };
  fill();
}

/// Elements 0 ≤ i, j, k < n of a field, 0 where they are not active; and 0 beside them.
class Host {
 public:
  Host(const qn::Field<double, 3>& u, int n) : n_(n) {
    const qn::Field<double, 3> dense = qn::to_dense(u);
    first_ = dense.offset(0);
    side_ = dense.shape(0);
    values_ = qn::to_vector(dense);
  }
  double at(int i, int j, int k) const {
    if (i < 0 || j < 0 || k < 0 || i >= n_ || j >= n_ || k >= n_) return 0;
    return values_[size_t(((i - first_) * side_ + j - first_) * side_ + k - first_)];
  }

 private:
  int n_;
  int64_t first_ = 0, side_ = 0;
  std::vector<double> values_;
};

}  // namespace

TEST_CASE("multigrid in a box: a Fourier mode, with the error the stencil has") {
  on_every_device([](const qn::Device& device) {
    double error[2];
    for (int refined = 0; refined < 2; refined++) {
      // u is 0 at elements -1 and n.
      const int n = (is_fast(device) ? 16 : 6) * (refined + 1) - 1;
      const double h = 1.0 / (n + 1);
      const qn::Tree<3> tree = tree_of(device, n, 2, [](const IVec3& at) { return at.x == at.x; });
      Mgpcg poisson(tree, h, {.levels = 2});
      const double pi = 3.14159265358979324;
      auto exact = [&](const IVec3& at) {
        F64 product = 1.0;
        Var<double> value = product;
        for (int axis = 0; axis < 3; axis++)
          value = value * sin(pi * h * cast<double>(at[axis] + 1));
        return F64(value);
      };
      qn::Kernel start = [&] {
        for (auto I : poisson.f) poisson.f[I] = 3 * pi * pi * exact(I);
      };
      start();
      const Mgpcg::Outcome outcome = poisson.solve(1e-12);
      CHECK(outcome.residual <= 1e-12);
      CHECK(outcome.iterations <= 20);
      const Host u(poisson.u, n);
      // The mode is one of the stencil too, with the eigenvalue 12 / h² sin²(πh / 2) for 3π².
      const double sine = std::sin(M_PI * h / 2),
                   ratio = 3 * M_PI * M_PI * h * h / (12 * sine * sine);
      double worst = 0;
      error[refined] = 0;
      for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
          for (int k = 0; k < n; k++) {
            const double value = std::sin(M_PI * h * (i + 1)) * std::sin(M_PI * h * (j + 1)) *
                                 std::sin(M_PI * h * (k + 1));
            worst = std::max(worst, std::abs(u.at(i, j, k) - ratio * value));
            error[refined] = std::max(error[refined], std::abs(u.at(i, j, k) - value));
          }
      CHECK(worst < 1e-9);
    }
    CHECK(error[0] / error[1] == Approx(4).epsilon(0.06));
  });
}

TEST_CASE("multigrid in a ball: the torsion function, the residual, and few iterations") {
  on_every_device([](const qn::Device& device) {
    int iterations[2];
    for (int refined = 0; refined < 2; refined++) {
      const int n = (is_fast(device) ? 16 : 6) * (refined + 1), levels = 3;
      const double h = 1.0 / n, radius = 0.45 * n;
      const qn::Tree<3> tree = tree_of(device, n, levels, [&](const IVec3& at) {
        return from_middle(at, n) < float(radius * radius);
      });
      Mgpcg poisson(tree, h, {.levels = levels});
      fill_with_one(poisson);
      const Mgpcg::Outcome outcome = poisson.solve(1e-12);
      CHECK(outcome.residual <= 1e-12);
      CHECK(outcome.iterations <= 20);
      iterations[refined] = outcome.iterations;
      const Host u(poisson.u, n), f(poisson.f, n);
      // The stencil is exact for (R² - r²) / 6, so what u has beyond it is harmonic for the stencil too,
      // and nowhere greater than at the elements beside the ball, where it is (r² - R²) / 6 with
      // R ≤ r ≤ R + h.
      const double bound = (2 * radius + 1) / 6 * h * h;
      double left = 0, first = 0, above = 0, below = 0, elements = 0;
      for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
          for (int k = 0; k < n; k++) {
            const double square = from_middle(i, j, k, n);
            if (square >= radius * radius) {
              REQUIRE(u.at(i, j, k) == 0);
              continue;
            }
            const double around = u.at(i - 1, j, k) + u.at(i + 1, j, k) + u.at(i, j - 1, k) +
                                  u.at(i, j + 1, k) + u.at(i, j, k - 1) + u.at(i, j, k + 1);
            left += std::pow(f.at(i, j, k) - (6 * u.at(i, j, k) - around) / (h * h), 2);
            first += std::pow(f.at(i, j, k), 2);
            const double beyond = u.at(i, j, k) - (radius * radius - square) * h * h / 6;
            above = std::max(above, beyond);
            below = std::min(below, beyond);
            elements++;
          }
      CHECK(elements == double(tree.active_count()));
      CHECK(first == elements);
      // The residual that is carried along and the true one differ by rounding, |A| |u| 2^-53 / |f|.
      CHECK(std::sqrt(left / first) < 2e-12);
      CHECK(below > -1e-10);
      CHECK(above <= bound);
      CHECK(above > bound / 10);
    }
    CHECK(iterations[1] <= iterations[0] + 4);
  });
}

TEST_CASE("multigrid in parts that do not touch, from a guess, twice") {
  on_every_device([](const qn::Device& device) {
    const int n = 12;
    const qn::Tree<3> tree = tree_of(device, n, 2, [](const IVec3& at) {
      return (at.x < 4) | ((at.x > 6) & ((at.y + at.z) % 3 != 0)) | ((at.x == 5) & (at.y == at.z));
    });
    Mgpcg poisson(tree, 0.5, {.levels = 2});
    // The stencil of a guess is the right side, so the guess is the solution.
    qn::Kernel guess = [&] {
      for (auto [i, j, k] : poisson.u)
        poisson.u(i, j, k) = cast<double>((i * 7 + j * 5 + k * 3) % 11) - 4;
    };
    qn::Kernel apply = [&] {
      const qn::Field<double, 3>& u = poisson.u;
      for (auto [i, j, k] : poisson.f)
        poisson.f(i, j, k) =
            4.0 * (6.0 * u(i, j, k) - u(i - 1, j, k) - u(i + 1, j, k) - u(i, j - 1, k) -
                   u(i, j + 1, k) - u(i, j, k - 1) - u(i, j, k + 1));
    };
    guess();
    apply();
    const Host expected(poisson.u, n);
    CHECK(poisson.solve(1e-12).iterations == 0);
    qn::Kernel forget = [&] {
      for (auto I : poisson.u) poisson.u[I] = 0.0;
    };
    forget();
    CHECK(poisson.solve(1e-12, 2).iterations == 2);
    const Mgpcg::Outcome outcome = poisson.solve(1e-12, 40);
    CHECK(outcome.iterations > 2);
    CHECK(outcome.residual <= 1e-12);
    const Host u(poisson.u, n);
    double worst = 0;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++)
          worst = std::max(worst, std::abs(u.at(i, j, k) - expected.at(i, j, k)));
    CHECK(worst < 1e-10);
  });
}

TEST_CASE("multigrid refuses regions without a margin, and setups without work") {
  const qn::Device device("interpreter");
  qn::Tree<3> tree{device, {qn::pointer(2), qn::bitmasked(8)}};
  tree.build_from({qn::IndexBox<3>{{4, 4, 1}, {8, 8, 8}}});
  CHECK(error_of([&] { Mgpcg(tree, 1, {.levels = 1}); }) == "");
  CHECK_THAT(error_of([&] { Mgpcg(tree, 1, {.levels = 2}); }),
             contains("the region reaches the end of the tree on level 1"));
  CHECK_THAT(error_of([&] { Mgpcg(tree, 1, {.levels = 0}); }), contains("not 0, 2, 20"));
  CHECK_THAT(error_of([&] { Mgpcg::box(device, 0, 3); }), contains("a box of 0 elements a side"));
}
