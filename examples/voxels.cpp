#include "examples/voxels.h"

#include <quern/rays.h>

#include <algorithm>
#include <cmath>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

Mesh torus_knot(int p, int q, float tube, int along, int around) {
  constexpr float turn = 6.2831853f;
  const auto centre = [&](int k) {
    const float s = turn * float(k) / float(along), ring = 2 + std::cos(float(q) * s);
    return vec3(ring * std::cos(float(p) * s), std::sin(float(q) * s),
                ring * std::sin(float(p) * s));
  };
  Mesh mesh;
  for (int k = 0; k < along; k++) {
    const vec3 at = centre(k), forward = normalize(centre(k + 1) - centre(k - 1));
    const vec3 side = normalize(cross(forward, vec3(at.x, 0, at.z))), up = cross(side, forward);
    for (int m = 0; m < around; m++) {
      const float angle = turn * float(m) / float(around);
      mesh.vertices.push_back(at + tube * (std::cos(angle) * side + std::sin(angle) * up));
      const auto vertex = [&](int a, int b) { return a % along * around + b % around; };
      const int a = vertex(k, m), b = vertex(k + 1, m), c = vertex(k, m + 1),
                d = vertex(k + 1, m + 1);
      mesh.triangles.push_back({a, b, c});
      mesh.triangles.push_back({c, b, d});
    }
  }
  return mesh;
}

Albedo knot_on_floor(const qn::Device& device, int size) {
  const int cells = (size + 63) / 64;
  const qn::TreeOptions options = {.offset = {-32 * cells, -32 * cells, -32 * cells}};
  const auto make = [&] {
    return qn::Tree<3>(device, {qn::pointer(cells), qn::pointer(8), qn::bitmasked(8)}, options);
  };
  const Mesh mesh = torus_knot(2, 3, 0.45f);
  qn::Field<vec3> vertices{device, {mesh.vertices.size()}};
  vertices.copy_from(mesh.vertices);
  qn::Field<ivec3> triangles{device, {mesh.triangles.size()}};
  triangles.copy_from(mesh.triangles);
  qn::Tree<3> tree = make(), floor = make();
  // The knot is 7 long and 3 high; it stands above the floor.
  const float unit = 9.0f / float(size);
  tree.build_from(vertices, triangles, {.size = unit, .origin = {0, -1.6f, 0}});
  floor.build_from(
      {qn::IndexBox<3>{{-size / 2, -1, -size / 2}, {size - size / 2, 0, size - size / 2}}});
  tree.merge(floor);
  Albedo albedo = tree.field<vec3>();
  qn::Kernel paint{
      [&] {
        for (auto [i, j, k] : albedo) {
          auto square = ((i + size) / 16 + (k + size) / 16) % 2 == 0;
          auto angle = atan2(cast<float>(k) + 0.5f, cast<float>(i) + 0.5f);
          auto hue = 0.5f + 0.4f * vec(cos(angle), cos(angle - 2.0944f), cos(angle + 2.0944f));
          albedo(i, j, k) = select(j < 0, select(square, vec3(0.75f), vec3(0.4f)), hue);
        }
      },
      {.strict = true}};
  paint();
  return albedo;
}

namespace {

using Setup = VoxelTracer::Setup;

/// The direction through a place on the screen, in pixels from its upper left corner.
Vec3 ray(const Setup& s, const F32& row, const F32& column, const VoxelTracer::Image& screen) {
  const vec3 forward = normalize(s.target - s.eye),
             right = normalize(cross(forward, vec3(0, 1, 0)));
  const vec3 up = cross(right, forward);
  auto half = 0.5f * cast<float>(screen.dim(0));
  auto x = (column - 0.5f * cast<float>(screen.dim(1))) / half;
  auto y = (half - row) / half;
  return normalize(s.focal * forward + x * right + y * up);
}

/// What a ray meets first.
struct Hit {
  Var<bool> found = false;
  Var<float> t = 0;
  Var<ivec3> voxel = 0;
  Var<vec3> normal = 0, point = 0;
};
void meet(const Albedo& albedo, const Vec3& origin, const Vec3& direction, Hit& hit) {
  hit.found = false;
  for (auto voxel : voxels_along_ray(albedo, origin, direction)) {
    hit.found = true;
    hit.t = voxel.t;
    hit.voxel = voxel.index;
    hit.normal = voxel.normal;
    Break();
  }
  // On the face exactly, and within it.
  for (int k = 0; k < 3; k++) {
    F32 low = cast<float>(hit.voxel[k]), face = low + select(hit.normal[k] > 0, 1.0f, 0.0f);
    F32 along = clamp(origin[k] + hit.t * direction[k], low, low + 1);
    hit.point[k] = select(hit.normal[k] == 0, along, face);
  }
}
B1 is_free(const Albedo& albedo, const Vec3& origin, const Vec3& direction) {
  Var<bool> free = true;
  for (auto voxel : voxels_along_ray(albedo, origin, direction)) {
    free = false;
    Break();
  }
  return free;
}

/// Around a normal along an axis, with the density cosine / π (Malley's method).
Vec3 cosine_direction(const Vec3& normal) {
  F32 square = random<float>();
  F32 angle = 6.2831853f * random<float>();
  auto r = sqrt(square);
  auto one = vec(normal.y, normal.z, normal.x), other = vec(normal.z, normal.x, normal.y);
  return r * cos(angle) * one + r * sin(angle) * other + sqrt(1 - square) * normal;
}

Vec3 sky(const Setup& s, const Vec3& direction) {
  return mix(s.horizon, s.zenith, sqrt(clamp(direction.y, 0.0f, 1.0f)));
}

/// The light that comes along a path.
Vec3 path(const Albedo& albedo, const Setup& s, const Vec3& start) {
  Var<vec3> light = 0, weight = 1, origin = s.eye, direction = start;
  Hit hit;
  for (auto bounce : range(s.bounces + 1)) {
    (void)bounce;
    meet(albedo, origin, direction, hit);
    If(!hit.found) {
      light += weight * sky(s, direction);
      Break();
    }
    weight *= albedo[hit.voxel];
    const vec3 one = normalize(cross(s.sun, vec3(0, 0, 1))), other = cross(s.sun, one);
    F32 r = s.sun_radius * sqrt(random<float>());
    F32 angle = 6.2831853f * random<float>();
    Vec3 to_sun = normalize(s.sun + r * cos(angle) * one + r * sin(angle) * other);
    auto cosine = dot(hit.normal, to_sun);
    If(cosine > 0 && is_free(albedo, hit.point, to_sun)) { light += weight * cosine * s.sunlight; }
    origin = hit.point;
    direction = cosine_direction(hit.normal);
  }
  return light;
}

}  // namespace

VoxelTracer::VoxelTracer(const qn::Device& device, const Albedo& albedo, int height, int width,
                         const Setup& setup)
    : distance{device, {height, width}},
      voxel{device, {height, width}},
      normal{device, {height, width}},
      device_(device),
      setup_(setup),
      albedo_(albedo),
      sum_{device, {height, width}},
      look_{[this] {
              for (auto [i, j] : distance) {
                Vec3 direction = ray(setup_, cast<float>(i) + 0.5f, cast<float>(j) + 0.5f, sum_);
                Hit hit;
                meet(albedo_, setup_.eye, direction, hit);
                distance(i, j) = select(hit.found, hit.t, -1.0f);
                voxel(i, j) = hit.voxel;
                normal(i, j) = hit.normal;
              }
            },
            {.strict = setup.strict}},
      trace_{[this](I32 paths) {
               for (auto [i, j] : sum_) {
                 Var<vec3> light = 0;
                 for (auto n : range(paths)) {
                   (void)n;
                   F32 row = cast<float>(i) + random<float>();
                   F32 column = cast<float>(j) + random<float>();
                   light += path(albedo_, setup_, ray(setup_, row, column, sum_));
                 }
                 sum_(i, j) = sum_(i, j) + light;
               }
             },
             {.strict = setup.strict}} {}

void VoxelTracer::trace(int paths) {
  trace_(paths);
  paths_ += paths;
}

VoxelTracer::Image VoxelTracer::mean() const {
  Image out{device_, {sum_.shape(0), sum_.shape(1)}};
  const float count = float(std::max(paths_, 1));
  qn::Kernel divide{[&] {
                      for (auto [i, j] : out) out(i, j) = sum_(i, j) / count;
                    },
                    {.strict = setup_.strict}};
  divide();
  return out;
}

VoxelTracer::Image VoxelTracer::picture() const {
  Image out = mean();
  qn::Kernel develop = [&] {
    for (auto [i, j] : out) {
      Vec3 light = out(i, j);
      out(i, j) = pow(1 - exp(-0.9f * light), 1 / 2.2f);
    }
  };
  develop();
  return out;
}

}  // namespace examples
