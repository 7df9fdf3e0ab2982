// A ring of triangles becomes voxels, which two layers of sparse convolutions make features of: a slice
// of them as a picture.
#include "examples/sparse_convolution.h"

#include <quern/files.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "examples/command.h"

namespace {

namespace qn = quern;
using namespace qn::lang;
using examples::SparseConvolution;

/// A torus of 2 · 96 · 48 triangles in a cube of 1, which lies askew.
struct Ring {
  static constexpr int around = 96, across = 48;
  std::vector<vec3> vertices;
  std::vector<ivec3> triangles;
  Ring() {
    for (int i = 0; i < around; i++)
      for (int j = 0; j < across; j++) {
        const float a = 2 * std::numbers::pi_v<float> * float(i) / around,
                    b = 2 * std::numbers::pi_v<float> * float(j) / across;
        const float r = 0.3f + 0.12f * std::cos(b), x = r * std::cos(a), y = r * std::sin(a);
        vertices.push_back(vec3(0.5f + x, 0.5f + y, 0.5f + 0.12f * std::sin(b) + 0.3f * x));
        const auto number = [](int k, int l) { return k % around * across + l % across; };
        triangles.push_back({number(i, j), number(i + 1, j), number(i, j + 1)});
        triangles.push_back({number(i + 1, j), number(i + 1, j + 1), number(i, j + 1)});
      }
  }
};

/// Normal, with the variance that keeps that of features (He et al., ICCV 2015) where 9 voxels are there.
std::vector<float> random_weights(uint32_t seed) {
  constexpr int channels = SparseConvolution::channels;
  std::mt19937 random(seed);
  std::normal_distribution<float> number(0, std::sqrt(2.0f / (9 * channels)));
  std::vector<float> weights(size_t(SparseConvolution::taps * channels * channels));
  for (float& w : weights) w = number(random);
  return weights;
}

}  // namespace

int main(int argc, char** argv) {
  examples::Command command("sparse_convolution",
                            "Sparse convolutions of the voxels of a ring of triangles");
  int side = 128, width = 512;
  command.option("--side", side, "voxels along a side", 8, 1024);
  command.option("--width", width, "pixels of the picture's side", 16, 8192);
  return command.run(argc, argv, [&](const qn::Device& device) {
    const Ring ring;
    qn::Field<vec3> vertices{device, {ring.vertices.size()}};
    qn::Field<ivec3> triangles{device, {ring.triangles.size()}};
    vertices.copy_from(ring.vertices);
    triangles.copy_from(ring.triangles);
    const int cells = (side + 2 + 31) / 32;
    const qn::Tree<3> shell{device, {qn::pointer(cells), qn::pointer(8), qn::bitmasked(4)}};
    const float size = 1 / float(side);
    shell.build_from(vertices, triangles, {.size = size, .origin = {-size, -size, -size}}, 1);
    const auto is_voxel = shell.field<uint8_t>();

    const qn::Tree<4> tree = SparseConvolution::make_tree(device, side);
    const auto from = tree.field<float>(), to = tree.field<float>();
    qn::Kernel begin = [&] {  // with waves of every length in each direction
      for (auto [x, y, z] : is_voxel)
        for (int c = 0; c < SparseConvolution::channels; c++) {
          auto along = c % 3 == 0 ? x : c % 3 == 1 ? y : z;
          from(x, y, z, c) = sin(cast<float>(along) * (0.05f * float(1 + c)));
        }
    };
    begin();
    const SparseConvolution first(device, random_weights(1)), second(device, random_weights(2));
    first.apply(from, to);
    first.rectify(to);
    second.apply(to, from);
    second.rectify(from);

    qn::Field<qn::Vec<uint8_t, 3>, 2> picture{device, {width, width}};
    qn::Kernel draw = [&](I32 z) {  // three channels of a slice as colours
      for (auto [row, column] : picture) {
        auto x = 1 + column * side / width, y = 1 + (width - 1 - row) * side / width;
        Vec3 colour = vec(from(x, y, z, 0), from(x, y, z, 1), from(x, y, z, 2));
        Vec3 light = 255.0f * (colour / (colour + 1.0f));
        picture(row, column) = cast<uint8_t>(
            select(is_active(is_voxel, x, y, z), 40.0f + light * 0.84f, vec3(17, 24, 40)));
      }
    };
    draw(side / 2);
    quern::write_image(command.picture("features.png"), picture);
    command.say("%lld voxels of %lld on device %s; the picture is %s",
                static_cast<long long>(shell.active_count()),
                static_cast<long long>(side) * side * side, device.name(),
                command.picture("features.png").c_str());
    command.say("%s", tree.describe().c_str());
  });
}
