#include "examples/differentiable/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

namespace examples {

namespace qn = quern;

namespace {

constexpr int width = 480, height = 320, left = 64, right = 16, top = 16, bottom = 32;
using Colour = qn::Vec<uint8_t, 3>;

/// A picture in the host's memory; x to the right and y downwards, in pixels.
class Canvas {
 public:
  std::vector<Colour> pixels = std::vector<Colour>(width * height, Colour(255, 255, 255));

  void dot(int x, int y, const Colour& colour, double cover) {
    if (x < 0 || x >= width || y < 0 || y >= height) return;
    Colour& p = pixels[size_t(y * width + x)];
    const auto mix = [&](uint8_t a, uint8_t b) {
      return uint8_t(std::lround(a + cover * (b - a)));
    };
    p = {mix(p.x, colour.x), mix(p.y, colour.y), mix(p.z, colour.z)};
  }
  /// Two pixels wide, with soft edges. What an earlier line covered as well stays.
  void line(double ax, double ay, double bx, double by, const Colour& colour) {
    const double dx = bx - ax, dy = by - ay, squared = dx * dx + dy * dy;
    for (int y = int(std::min(ay, by)) - 2; y <= int(std::max(ay, by)) + 2; y++)
      for (int x = int(std::min(ax, bx)) - 2; x <= int(std::max(ax, bx)) + 2; x++) {
        const double t =
            squared > 0 ? std::clamp(((x - ax) * dx + (y - ay) * dy) / squared, 0.0, 1.0) : 0.0;
        const double far = std::hypot(x - ax - t * dx, y - ay - t * dy);
        dot(x, y, colour, std::clamp(1.5 - far, 0.0, 1.0));
      }
  }
  /// Letters of 3 × 5 dots of 2 × 2 pixels: digits and what else numbers are written with.
  void text(int x, int y, std::string_view letters) {
    static constexpr std::string_view known = "0123456789.-+e";
    static constexpr uint16_t dots[] = {075557, 026227, 071747, 071717, 055711, 074717, 074757,
                                        071111, 075757, 075717, 000002, 000700, 002720, 007747};
    for (char letter : letters) {
      const uint16_t rows = dots[known.find(letter)];
      for (int bit = 0; bit < 15; bit++)
        if (rows >> (14 - bit) & 1)
          for (int k = 0; k < 4; k++)
            dot(x + bit % 3 * 2 + k % 2, y + bit / 3 * 2 + k / 2, {90, 90, 90}, 1);
      x += 8;
    }
  }
};

std::string written(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

/// 1, 2 or 5 times a power of ten: the least with which `range` has at most `most` parts.
double tick(double range, int most) {
  const double power = std::pow(10, std::floor(std::log10(range / most)));
  for (double step : {1.0, 2.0, 5.0})
    if (range <= step * power * most) return step * power;
  return 10 * power;
}

}  // namespace

qn::Field<Colour, 2> loss_curve(const qn::Device& device, const std::vector<double>& losses,
                                qn::Loc loc) {
  if (losses.empty() ||
      !std::all_of(losses.begin(), losses.end(), [](double v) { return std::isfinite(v); }))
    throw qn::Error(loc, "a curve needs losses, all of them finite");
  const auto [least, greatest] = std::minmax_element(losses.begin(), losses.end());
  const bool logarithmic = *least > 0 && *greatest >= 10 * *least;
  const auto scale = [&](double v) { return logarithmic ? std::log10(v) : v; };
  double low = scale(*least), high = scale(*greatest);
  if (low == high) low -= 0.5, high += 0.5;
  const double last = std::max(1.0, double(losses.size() - 1));

  Canvas canvas;
  const auto x_of = [&](double iteration) {
    return left + (width - left - right) * iteration / last;
  };
  const auto y_of = [&](double v) {
    return height - bottom - (height - top - bottom) * (v - low) / (high - low);
  };
  const double up = logarithmic ? std::max(1.0, tick(high - low, 8)) : tick(high - low, 8);
  for (double k = std::ceil(low / up); k * up <= high; k++) {
    const int y = int(y_of(k * up));
    for (int x = left; x < width - right; x++) canvas.dot(x, y, {215, 215, 215}, 1);
    const std::string label = written(logarithmic ? std::pow(10, k * up) : k * up);
    canvas.text(left - 8 - 8 * int(label.size()), y - 5, label);
  }
  const double along = std::max(1.0, tick(last, 6));
  for (double k = 0; k * along <= last; k++) {
    const int x = int(x_of(k * along));
    for (int y = top; y < height - bottom; y++) canvas.dot(x, y, {215, 215, 215}, 1);
    const std::string label = written(k * along);
    canvas.text(x - 4 * int(label.size()), height - bottom + 10, label);
  }
  for (size_t k = 1; k < losses.size(); k++)
    canvas.line(x_of(double(k - 1)), y_of(scale(losses[k - 1])), x_of(double(k)),
                y_of(scale(losses[k])), {31, 90, 180});

  qn::Field<Colour, 2> picture{device, {height, width}};
  picture.copy_from(canvas.pixels);
  return picture;
}

}  // namespace examples
