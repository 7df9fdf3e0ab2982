// The path tracer of voxels against intersections computed one voxel after another, and against
// light that is known.
#include "examples/voxels.h"

#include <cmath>

#include "tests/end_to_end/devices.h"

using examples::Albedo;
using examples::VoxelTracer;
using namespace quern::lang;

namespace {

using Boxes = std::vector<qn::IndexBox<3>>;

Albedo scene(const qn::Device& device, const Boxes& boxes, vec3 colour) {
  qn::Tree<3> tree{
      device, {qn::pointer(8), qn::pointer(8), qn::bitmasked(8)}, {.offset = {-256, -256, -256}}};
  tree.build_from(boxes);
  Albedo albedo = tree.field<vec3>();
  qn::Kernel paint = [&] {
    for (auto [i, j, k] : albedo) albedo(i, j, k) = colour;
  };
  paint();
  return albedo;
}

bool is_fast(const qn::Device& device) { return device.name() == std::string("cpu"); }

struct Hit {
  double t = -1;
  ivec3 voxel{0};
  vec3 normal{0.0f};
  bool clear = true;  ///< a little aside the same is met
};
/// With the unit cubes at these places.
Hit first_hit(const std::vector<ivec3>& voxels, dvec3 eye, dvec3 direction) {
  Hit hit;
  double next = 1e30;
  for (const ivec3& v : voxels) {
    double from = -1e30, to = 1e30, before = -1e30;
    int axis = 0;
    for (int k = 0; k < 3; k++) {
      const double a = (v[k] - eye[k]) / direction[k], b = (v[k] + 1 - eye[k]) / direction[k];
      if (std::min(a, b) > from) {
        before = from;
        from = std::min(a, b);
        axis = k;
      } else {
        before = std::max(before, std::min(a, b));
      }
      to = std::min(to, std::max(a, b));
    }
    // Past the cube's edges closely, or in through one of them.
    if (std::abs(to - from) < 2e-3 && from < next) hit.clear = false;
    if (from > to || from < 0) continue;
    if (hit.t >= 0 && from > hit.t) continue;
    hit.t = from;
    hit.voxel = v;
    hit.normal = vec3(0);
    hit.normal[axis] = direction[axis] > 0 ? -1.0f : 1.0f;
    if (from - before < 2e-3) hit.clear = false;
  }
  return hit;
}

}  // namespace

TEST_CASE("what rays meet first is what all intersections with voxels say") {
  on_every_device([](qn::Device& device) {
    const int size = is_fast(device) ? 48 : 24, height = is_fast(device) ? 48 : 16, width = height;
    const Albedo albedo = examples::knot_on_floor(device, size);
    std::vector<ivec3> voxels;
    const qn::Field<vec3, 3> dense = qn::to_dense(albedo);
    const std::vector<vec3> colours = qn::to_vector(dense);
    const int n = int(dense.shape(0));
    for (int k = 0; k < n * n * n; k++)
      if (colours[size_t(k)].y > 0)
        voxels.push_back(ivec3(k / (n * n), k / n % n, k % n) + int(dense.offset(0)));
    REQUIRE(int(voxels.size()) > size * size);
    VoxelTracer::Setup setup;
    setup.eye = 0.9f * float(size) * vec3(0.1f, 0.5f, 1);
    setup.target = {0, 0.14f * float(size), 0};
    VoxelTracer tracer(device, albedo, height, width, setup);
    tracer.look();
    const std::vector<float> t = qn::to_vector(tracer.distance);
    const std::vector<ivec3> voxel = qn::to_vector(tracer.voxel);
    const std::vector<vec3> normal = qn::to_vector(tracer.normal);
    const dvec3 forward =
        dvec3(setup.target - setup.eye) /
        std::sqrt(double(dot(setup.target - setup.eye, setup.target - setup.eye)));
    const double across = std::sqrt(forward.x * forward.x + forward.z * forward.z);
    const dvec3 right(-forward.z / across, 0, forward.x / across);
    const dvec3 up(right.y * forward.z - right.z * forward.y,
                   right.z * forward.x - right.x * forward.z,
                   right.x * forward.y - right.y * forward.x);
    int knot = 0, floor = 0, sky = 0, unclear = 0, wrong = 0;
    double worst = 0;
    for (int i = 0; i < height; i++)
      for (int j = 0; j < width; j++) {
        const size_t at = size_t(i * width + j);
        const double x = (j + 0.5 - 0.5 * width) / (0.5 * height);
        const double y = (0.5 * height - i - 0.5) / (0.5 * height);
        dvec3 d = double(setup.focal) * forward + x * right + y * up;
        d = d / std::sqrt(d.x * d.x + d.y * d.y + d.z * d.z);
        const Hit want = first_hit(voxels, dvec3(setup.eye), d);
        if (!want.clear) {
          unclear++;
          continue;
        }
        (want.t < 0 ? sky : want.voxel.y < 0 ? floor : knot)++;
        wrong += (t[at] < 0) != (want.t < 0);
        if (want.t < 0) continue;
        wrong += !(voxel[at] == want.voxel) || !(normal[at] == want.normal);
        worst = std::max(worst, std::abs(double(t[at]) - want.t));
      }
    CHECK(wrong == 0);
    CHECK(worst < 1e-3);
    CHECK(unclear < height * width / 5);
    CHECK(knot > height * width / 20);
    CHECK(floor > height * width / 10);
    CHECK(sky > height * width / 10);
  });
}

TEST_CASE("in a white furnace voxels look as bright as they reflect") {
  on_every_device([](qn::Device& device) {
    VoxelTracer::Setup setup;
    setup.sunlight = vec3(0);
    setup.zenith = setup.horizon = vec3(1);
    setup.eye = {30, 25, 35};
    // A block has no hollows: its light comes from the sky, by one reflection.
    const Albedo block = scene(device, {{{-8, -8, -8}, {8, 8, 8}}}, vec3(0.5f, 0.25f, 0));
    VoxelTracer convex(device, block, 12, 12, setup);
    convex.look();
    convex.trace(2);
    const auto seen = qn::to_vector(convex.mean());
    const auto t = qn::to_vector(convex.distance);
    int met = 0;
    for (size_t k = 0; k < seen.size(); k++) {
      CHECK((seen[k].y >= 0.25f && seen[k].y <= 1));
      const bool inside = k / 12 >= 4 && k / 12 < 8 && k % 12 >= 4 && k % 12 < 8;
      if (!inside) continue;
      met += t[k] > 0;
      CHECK(seen[k] == vec3(0.5f, 0.25f, 0));
    }
    CHECK(met == 16);
    // What reflects everything cannot be seen, whatever its hollows.
    setup.bounces = 200;
    const Albedo hollow = scene(
        device, {{{-8, -8, -8}, {8, 8, 0}}, {{-8, -8, 0}, {0, 8, 8}}, {{0, -8, 0}, {8, 0, 8}}},
        vec3(1));
    VoxelTracer white(device, hollow, 8, 8, setup);
    white.trace(2);
    for (const vec3& light : qn::to_vector(white.mean())) CHECK(std::abs(light.x - 1) < 1e-5f);
  });
}

TEST_CASE("a wall takes the light from the floor beside it that form factors say") {
  on_every_device([](qn::Device& device) {
    const int paths = is_fast(device) ? 1000 : 20, reach = 100, height = 16, pixels = 10;
    const Albedo albedo = scene(device,
                                {{{-1, -1, -reach}, {reach, 0, reach}},   // a floor
                                 {{-1, 0, -reach}, {0, height, reach}}},  // and a wall
                                vec3(1));
    for (const int x : {3, 12}) {
      VoxelTracer::Setup setup;
      setup.sunlight = vec3(0);
      setup.zenith = setup.horizon = vec3(1);
      setup.bounces = 1;  // what has met the wall is lost
      setup.eye = {float(x) + 0.5f, 40, 0.25f};
      setup.target = {float(x) + 0.5f, 0, 0.5f};
      setup.focal = 1e4f;  // all pixels look at one place
      VoxelTracer tracer(device, albedo, pixels, pixels, setup);
      tracer.trace(paths);
      double sum = 0;
      for (const vec3& light : qn::to_vector(tracer.mean())) sum += double(light.y);
      const double count = pixels * pixels;
      // Of the light from above a strip at a right angle, without ends, hides (1 - x / √(x² + h²))
      // / 2; the ends of this one matter less than 1e-3.
      const double from = x + 0.5, open = 0.5 + 0.5 * from / std::hypot(from, double(height));
      const double error = std::sqrt(open * (1 - open) / (count * paths));
      CHECK(std::abs(sum / count - open) < 4 * error + 1e-3);
    }
  });
}

TEST_CASE("path traced pictures are the same bits on every device") {
  const auto trace = [](const qn::Device& device) {
    VoxelTracer::Setup setup;
    setup.eye = 24.0f * vec3(0, 0.5f, 1);
    setup.target = {0, 3, 0};
    setup.strict = true;
    VoxelTracer tracer(device, examples::knot_on_floor(device, 24), 10, 12, setup);
    device.seed(7);
    tracer.trace(2);
    return qn::to_vector(tracer.mean());
  };
  const std::vector<vec3> expected = trace(qn::Device("interpreter"));
  on_every_device([&](qn::Device& device) {
    const std::vector<vec3> found = trace(device);
    int dark = 0, bright = 0, unlike = 0;
    for (size_t k = 0; k < found.size(); k++) {
      unlike += !(found[k] == expected[k]);
      dark += found[k].x < 0.3f;
      bright += found[k].x > 0.6f;
    }
    CHECK(unlike == 0);
    CHECK(dark > 3);
    CHECK(bright > 10);
  });
}
