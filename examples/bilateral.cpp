#include "examples/bilateral.h"

#include <string>

#include "examples/borders.h"

namespace examples {

namespace qn = quern;
using namespace qn::lang;

qn::Kernel<void(Grey, Grey)> bilateral(int radius, float sigma_distance, float sigma_grey,
                                       qn::Loc loc) {
  if (radius < 0 || !(sigma_distance > 0) || !(sigma_grey > 0))
    throw qn::Error(loc, "the bilateral filter takes a radius >= 0 and sigmas > 0");
  const float a = -1 / (2 * sigma_distance * sigma_distance),
              b = -1 / (2 * sigma_grey * sigma_grey);
  const int side = 2 * radius + 1;
  return [=](Grey picture, Grey result) {
    windows(picture, result, radius, [&](I32 i, I32 j, const auto& at) {
      auto centre = cast<float>(at(i, j));
      Var<float> sum = 0, weights = 0;
      for (auto k : range(side * side)) {  // one loop, so that it runs for many pixels at once
        auto di = k / side - radius, dj = k % side - radius;
        auto v = cast<float>(at(i + di, j + dj)), d = v - centre;
        auto weight = exp(a * cast<float>(di * di + dj * dj) + b * d * d);
        sum += weight * v;
        weights += weight;
      }
      result(i, j) = cast<uint8_t>(round(sum / weights));
    });
  };
}

}  // namespace examples
