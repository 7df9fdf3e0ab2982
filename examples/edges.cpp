#include "examples/edges.h"

#include <cmath>
#include <string>
#include <vector>

#include "examples/borders.h"

namespace examples {

namespace qn = quern;
using namespace qn::lang;

namespace {

/// A picture that continues as its last row or column beyond the border.
template <class T>
auto continued(const qn::Field<T, 2>& picture) {
  return [=](I32 i, I32 j) -> qn::Val<T> {
    return picture(clamp(i, 0, picture.dim(0) - 1), clamp(j, 0, picture.dim(1) - 1));
  };
}

/// Sobel's two derivatives: to the right and downwards.
template <class Pixel>
auto gradient(const Pixel& at, I32 i, I32 j) {
  struct {
    decltype(at(i, j) + 0) right, down;
  } g{(at(i - 1, j + 1) + 2 * at(i, j + 1) + at(i + 1, j + 1)) -
          (at(i - 1, j - 1) + 2 * at(i, j - 1) + at(i + 1, j - 1)),
      (at(i + 1, j - 1) + 2 * at(i + 1, j) + at(i + 1, j + 1)) -
          (at(i - 1, j - 1) + 2 * at(i - 1, j) + at(i - 1, j + 1))};
  return g;
}

std::vector<float> gaussian(float sigma) {
  const int radius = int(std::ceil(3 * sigma));
  std::vector<float> w;
  float total = 0;
  for (int k = -radius; k <= radius; k++) {
    w.push_back(std::exp(-float(k * k) / (2 * sigma * sigma)));
    total += w.back();
  }
  for (float& v : w) v /= total;
  return w;
}

}  // namespace

qn::Kernel<void(Grey, Grey)> sobel() {
  return [](Grey picture, Grey result) {
    windows(picture, result, 1, [&](I32 i, I32 j, const auto& at) {
      auto [right, down] = gradient(at, i, j);
      auto x = cast<float>(right), y = cast<float>(down);  // squares and their sum are exact
      result(i, j) = cast<uint8_t>(min(round(sqrt(x * x + y * y)), 255.0f));
    });
  };
}

Canny::Canny(const Grid<2>& pixels, Parameters parameters, qn::Loc loc)
    : rows_(pixels.field<float>()),
      smooth_(pixels.field<float>()),
      length_(pixels.field<float>()),
      sector_(pixels.field<uint8_t>()),
      mark_(pixels.field<uint8_t>()),
      grown_(pixels.field<uint8_t>()),
      detect_{[&](Grey picture, Grey edges) {
        const auto [sigma, low, high] = parameters;
        if (!(sigma > 0 && low >= 0 && high >= low))
          throw qn::Error(loc, "Canny takes sigma > 0 and 0 <= low <= high");
        const std::vector<float> weights = gaussian(sigma);
        const int radius = int(weights.size()) / 2;
        constexpr uint8_t weak = 1, strong = 2;
        auto inner = [&] { return grid(mark_.dim(0) - 2, mark_.dim(1) - 2); };  // less (1, 1)

        for (auto [i, j] : rows_) {
          Var<float> sum = 0;
          for (int k = -radius; k <= radius; k++)
            sum += weights[size_t(k + radius)] * cast<float>(continued(picture)(i, j + k));
          rows_(i, j) = sum;
        }
        for (auto [i, j] : smooth_) {
          Var<float> sum = 0;
          for (int k = -radius; k <= radius; k++)
            sum += weights[size_t(k + radius)] * continued(rows_)(i + k, j);
          smooth_(i, j) = sum;
        }
        for (auto [i, j] : length_) {
          auto [right, down] = gradient(continued(smooth_), i, j);
          length_(i, j) = sqrt(right * right + down * down);
          // Which neighbours lie along the gradient: beside, above and below, or on a diagonal?
          const float tangent = 0.41421356f;  // of 22.5 degrees
          auto x = abs(right), y = abs(down);
          sector_(i, j) = cast<uint8_t>(select(
              y < tangent * x, 0, select(x < tangent * y, 1, select(right * down > 0, 2, 3))));
        }
        for (auto I : mark_) mark_[I] = 0;
        for (auto I : grown_) grown_[I] = 0;
        for (auto [r, c] : inner()) {  // only maxima along the gradient stay
          auto i = r + 1, j = c + 1;
          auto length = length_(i, j);
          auto sector = cast<int>(sector_(i, j));
          auto di = select(sector == 0, 0, 1);
          auto dj = select(sector == 1, 0, select(sector == 3, -1, 1));
          If(length > length_(i - di, j - dj) && length >= length_(i + di, j + dj)) {
            mark_(i, j) = cast<uint8_t>(
                select(length >= high, int(strong), select(length >= low, int(weak), 0)));
          }
        }
        // A weak edge beside a strong one is strong: until nothing changes.
        Var<int> rounds = 0, changed = 1;
        auto grow = [&](const Grey& from, const Grey& to) {
          for (auto [r, c] : inner()) {
            auto i = r + 1, j = c + 1;
            Var<uint8_t> mark = from(i, j);
            If(mark == weak) {
              Var<uint8_t> most = 0;
              for (int di = -1; di <= 1; di++)
                for (int dj = -1; dj <= 1; dj++)
                  if (di || dj) most = max(most, from(i + di, j + dj));
              If(most == strong) {
                mark = strong;
                changed += 1;
              }
            }
            to(i, j) = mark;
          }
        };
        While(changed > 0) {
          changed = 0;
          rounds += 1;
          grow(mark_, grown_);
          grow(grown_, mark_);
        }
        for (auto I : edges) edges[I] = cast<uint8_t>(select(mark_[I] == strong, 255, 0));
        return rounds;
      }} {}

}  // namespace examples
