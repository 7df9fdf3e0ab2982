#pragma once
// Pictures of distance fields by marching along rays.
#include <quern/quern.h>

namespace examples {

/// Sphere tracing of a signed distance field (Hart, "Sphere Tracing", The Visual Computer 1996):
/// two balls and, if wanted, a torus on a plane; with soft shadows and ambient occlusion by samples
/// of the distance (Evans, "Fast Approximations for Global Illumination on Dynamic Scenes",
/// SIGGRAPH course 2006). The eye looks along -z at a screen `focal` away that is 2 high.
class Raymarch {
 public:
  using Image = quern::Field<quern::lang::vec3, 2>;  ///< {height, width}, rows from the top

  struct Setup {
    quern::lang::vec3 eye = {0, 1.2f, 5};
    float focal = 2.2f;
    quern::lang::vec3 sun = {0.48f, 0.6f, 0.64f};  ///< direction to it, of length 1
    bool torus = true;
    float precision = 1e-4f;  ///< a ray has met what is nearer than that
    float horizon = 40;       ///< and nothing beyond
    int marches = 512;        ///< steps at most
  };
  static constexpr quern::lang::vec3 ball{-0.9f, 1, 0}, small_ball{1.1f, 0.5f, 1.2f};
  static constexpr float radius = 1, small_radius = 0.5f;  ///< both stand on the plane y = 0

  Raymarch(const quern::Device& device, int height, int width, const Setup& setup);

  /// Marches a ray through each pixel; asynchronous.
  void trace() { trace_(); }
  /// Fills `image` from what was traced; asynchronous.
  void shade() { shade_(); }

  quern::Field<float, 2> distance;  ///< along the ray, or -1 where it meets nothing
  Image normal;                     ///< of length 1 where it does
  Image image;                      ///< colours from 0 to 1

 private:
  Setup setup_;
  quern::Kernel<void()> trace_, shade_;
};

}  // namespace examples
