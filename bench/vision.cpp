// Filters of 3840 × 2160 grey pixels, byte to byte: the photograph of the examples, tiled.
#include <quern/files.h>
#include <quern/host.h>

#include <vector>

#include "bench/harness.h"
#include "bench/pages.h"
#include "bench/vision_reference.h"
#include "examples/bilateral.h"
#include "examples/borders.h"
#include "examples/edges.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;
using examples::Grey;

namespace {

constexpr int height = 2160, width = 3840;

/// The photograph and its mirror images side by side.
Array<uint8_t> tiled(const qn::Device& device) {
  Grey photograph = qn::read_image(device, QUERN_EXAMPLE_DATA "/camera.png");
  const int h = int(photograph.shape(0)), w = int(photograph.shape(1));
  const std::vector<uint8_t> tile = qn::to_vector(photograph);
  auto mirrored = [](int i, int n) { return i / n % 2 ? n - 1 - i % n : i % n; };
  Array<uint8_t> all(size_t(height) * width);
  for (int i = 0; i < height; i++)
    for (int j = 0; j < width; j++)
      all[size_t(i) * width + size_t(j)] = tile[size_t(mirrored(i, h) * w + mirrored(j, w))];
  return all;
}

/// (1 4 6 4 1) / 16 down the columns, then along the rows.
qn::Kernel<void(Grey, qn::Field<uint16_t, 2>, Grey)> gaussian5() {
  return [](Grey from, qn::Field<uint16_t, 2> columns, Grey to) {
    auto weighted = [](auto at) { return at(-2) + at(2) + 4 * (at(-1) + at(1)) + 6 * at(0); };
    examples::windows(from, columns, 2, [&](I32 i, I32 j, const auto& at) {
      columns(i, j) = cast<uint16_t>(weighted([&](int k) { return at(i + k, j); }));
    });
    examples::windows(columns, to, 2, [&](I32 i, I32 j, const auto& at) {
      to(i, j) = cast<uint8_t>((weighted([&](int k) { return at(i, j + k); }) + 128) >> 8);
    });
  };
}

/// The median of 3 × 3 by sorting the rows (Smith 1996).
qn::Kernel<void(Grey, Grey)> median3() {
  return [](Grey from, Grey to) {
    examples::windows(from, to, 1, [&](I32 i, I32 j, const auto& at) {
      auto row = [&](int k) {
        auto a = at(i + k, j - 1), b = at(i + k, j), c = at(i + k, j + 1);
        struct {
          U8 low, middle, high;
        } s{min(min(a, b), c), max(min(a, b), min(max(a, b), c)), max(max(a, b), c)};
        return s;
      };
      auto median = [](U8 a, U8 b, U8 c) { return max(min(a, b), min(max(a, b), c)); };
      auto p = row(-1), q = row(0), r = row(1);
      to(i, j) = median(max(max(p.low, q.low), r.low), median(p.middle, q.middle, r.middle),
                        min(min(p.high, q.high), r.high));
    });
  };
}

}  // namespace

void vision(Report& report) {
  qn::Device& device = report.device();
  const Array<uint8_t> picture = tiled(device);
  Array<uint8_t> out(picture.size());
  Array<uint16_t> columns(picture.size());
  Grey from{device, {height, width}}, to{device, {height, width}};
  qn::Field<uint16_t, 2> sums{device, {height, width}};
  from.copy_from(picture);

  const double pixels = double(height) * width;
  auto add = [&](const char* name, double bytes, auto quern, auto hand_written) {
    report.run({name, "3840x2160", bytes * pixels, 0,
                [&] {
                  quern();
                  report.complete();
                },
                hand_written, report.bandwidth(bytes * pixels), pixels});
    // The two must do the same: a step of rounding apart at most.
    hand_written();
    const std::vector<uint8_t> mine = qn::to_vector(to);
    for (size_t k = 0; k < mine.size(); k++)
      if (mine[k] > out[k] + 1 || out[k] > mine[k] + 1)
        throw qn::Error(std::string(name) + " and its reference differ at pixel " +
                        std::to_string(k));
  };
  auto sobel = examples::sobel();
  add(
      "sobel", 2, [&] { sobel(from, to); },
      [&] { reference::sobel(picture.data(), out.data(), height, width); });
  auto gaussian = gaussian5();
  add(
      "gaussian5", 6, [&] { gaussian(from, sums, to); },
      [&] { reference::gaussian5(picture.data(), columns.data(), out.data(), height, width); });
  auto median = median3();
  add(
      "median3", 2, [&] { median(from, to); },
      [&] { reference::median3(picture.data(), out.data(), height, width); });
  auto bilateral = examples::bilateral(4, 3, 30);
  add(
      "bilateral9", 2, [&] { bilateral(from, to); },
      [&] { reference::bilateral(picture.data(), out.data(), height, width, 4, 3, 30); });
}

}  // namespace bench
