#include "examples/sph.h"

#include <cmath>

#include "examples/cell_list.h"
#include "examples/tree_lists.h"

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

template <class T>
T cube(const T& a) {
  return a * a * a;
}

/// The cubic spline W(r, h) in the plane.
template <class R>
auto cubic_spline(const R& r, float h) {
  auto q = r / h;
  return 10 / (28 * float(M_PI) * h * h) * (cube(max(2 - q, 0.0f)) - 4 * cube(max(1 - q, 0.0f)));
}
/// dW/dr.
F32 cubic_spline_slope(const F32& r, float h) {
  auto q = r / h;
  auto outer = max(2 - q, 0.0f), inner = max(1 - q, 0.0f);
  return 30 / (28 * float(M_PI) * h * h * h) * (4 * inner * inner - outer * outer);
}

/// The mass with which an endless lattice has the density.
float mass_in_lattice(float spacing, float h, float density) {
  const int reach = int(2 * h / spacing) + 1;
  float sum = 0;
  for (int i = -reach; i <= reach; i++)
    for (int j = -reach; j <= reach; j++)
      sum += cubic_spline(spacing * std::hypot(float(i), float(j)), h);
  return density / sum;
}

std::vector<vec2> particles_of(const Sph::Setup& s) {
  std::vector<vec2> all = s.fluid;
  all.insert(all.end(), s.walls.begin(), s.walls.end());
  return all;
}

std::unique_ptr<Neighbours> neighbours(const qn::Device& device, const qn::Field<vec2>& x,
                                       float radius, vec2 size, Sph::Search search) {
  if (search == Sph::Search::lists) return std::make_unique<TreeLists>(device, x, radius, size);
  return std::make_unique<CellList>(device, x, radius, size);
}

}  // namespace

Sph::Setup Sph::dam_break(float spacing) {
  constexpr int layers = 3;  // of walls: as far as the kernel reaches
  const int width = int(std::lround(4 / spacing)), height = int(std::lround(3 / spacing));
  const int column = int(std::lround(1 / spacing)), filled = int(std::lround(2 / spacing));
  Setup s;
  s.spacing = spacing;
  s.size = spacing * vec2(float(width + 2 * layers), float(height + layers));
  s.sound = 10 * std::sqrt(2 * s.gravity * 2);
  for (int i = 0; i < height + layers; i++)
    for (int j = 0; j < width + 2 * layers; j++) {
      vec2 at = spacing * vec2(float(j) + 0.5f, float(i) + 0.5f);
      const int row = i - layers, from_left = j - layers;
      if (row < 0 || from_left < 0 || from_left >= width)
        s.walls.push_back(at);
      else if (row < filled && from_left < column)
        s.fluid.push_back(at);
    }
  return s;
}

Sph::Sph(const qn::Device& device, const Setup& setup, Search search)
    : x{device, {setup.fluid.size() + setup.walls.size()}},
      v{device, {x.size()}},
      density{device, {x.size()}},
      pressure{device, {x.size()}},
      device_(device),
      setup_(setup),
      fluid_(int(setup.fluid.size())),
      h_(smoothing * setup.spacing),
      mass_(mass_in_lattice(setup.spacing, h_, rest_density)),
      dt_(0.2f * h_ / setup.sound),
      acceleration_{device, {x.size()}},
      cells_(neighbours(device, x, 2 * h_, setup.size, search)),
      densities_{[this] {
        // Tait's equation for water; a free surface does not pull.
        const float stiffness = rest_density * setup_.sound * setup_.sound / 7;
        for (auto i : x) {
          auto xi = x[i];
          Var<float> sum = 0;
          cells_->for_each_near(xi, [&](I32 j) { sum += cubic_spline(length(xi - x[j]), h_); });
          F32 rho = mass_ * sum;
          auto ratio = rho / rest_density;
          auto cubed = cube(ratio);
          density[i] = rho;
          pressure[i] = stiffness * max(cubed * cubed * ratio - 1, 0.0f);
        }
      }},
      forces_{[this] {
        for (auto i : range(fluid_)) {
          auto xi = x[i], vi = v[i];
          auto rho = density[i];
          auto own = pressure[i] / (rho * rho);
          Var<vec2> a = vec2(0, -setup_.gravity);
          cells_->for_each_near(xi, [&](I32 j) {
            auto apart = xi - x[j];
            auto r = length(apart);
            If(j != i && r < 2 * h_) {
              auto rho_j = density[j];
              // What comes closer is slowed: Monaghan's artificial viscosity.
              auto mu = h_ * min(dot(vi - v[j], apart), 0.0f) / (r * r + 0.01f * h_ * h_);
              auto viscous = -2 * setup_.viscosity * setup_.sound * mu / (rho + rho_j);
              auto push = own + pressure[j] / (rho_j * rho_j) + viscous;
              a -= mass_ * push * cubic_spline_slope(r, h_) / max(r, 1e-6f * h_) * apart;
            }
          });
          acceleration_[i] = a;
        }
      }},
      move_{[this] {
        for (auto i : range(fluid_)) {
          Vec2 faster = v[i] + dt_ * acceleration_[i];
          v[i] = faster;
          x[i] = x[i] + dt_ * faster;
        }
      }},
      draw_{[this](Picture picture) {
        const float pixels = 1 / setup_.size.x;
        for (auto [row, column] : picture) {
          auto scale = cast<float>(picture.dim(1)) * pixels;
          auto at = vec((cast<float>(column) + 0.5f) / scale,
                        (cast<float>(picture.dim(0) - row) - 0.5f) / scale);
          Var<float> nearest = 0.8f * setup_.spacing;
          Var<int> who = -1;
          cells_->for_each_near(at, [&](I32 j) {
            auto r = length(at - x[j]);
            If(r < nearest) {
              nearest = r;
              who = j;
            }
          });
          Var<vec3> colour = vec3(17, 24, 40);
          If(who >= fluid_) { colour = vec3(110, 100, 90); }
          else If(who >= 0) {
            auto fast = min(length(v[who]) / 6, 1.0f);
            colour = vec(30 + 200 * fast, 100 + 140 * fast, 255.0f);
          }
          picture(row, column) = cast<uint8_t>(colour);
        }
      }} {
  x.copy_from(particles_of(setup));
}

void Sph::measure() {
  cells_->build();
  densities_();
}

void Sph::advance(int count) {
  for (int k = 0; k < count; k++) {
    measure();
    forces_();
    move_();
  }
}

Sph::Picture Sph::draw(int width) const {
  const int height = int(std::lround(float(width) * setup_.size.y / setup_.size.x));
  Picture picture{device_, {height, width}};
  draw_(picture);
  return picture;
}

}  // namespace examples
