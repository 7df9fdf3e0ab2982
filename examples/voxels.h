#pragma once
// Pictures of voxels by path tracing.
#include <quern/sparse.h>

#include <vector>

namespace examples {

/// Triangles: three numbers of vertices each.
struct Mesh {
  std::vector<quern::lang::vec3> vertices;
  std::vector<quern::lang::ivec3> triangles;
};

/// A tube of this radius around the torus knot that winds `p` times around the axis y and `q` times
/// through the ring's middle; the ring has the radius 2, the knot stays within 1 of it, its centre
/// is 0.
Mesh torus_knot(int p, int q, float tube, int along = 512, int around = 24);

/// What is active is opaque and diffuse, and reflects this part of the light.
using Albedo = quern::Field<quern::lang::vec3, 3>;

/// A knot of triangles as voxels, coloured along its ring, above a chequered floor of size²
/// elements, centred on axis y; the floor's upper side is the plane y = 0.
Albedo knot_on_floor(const quern::Device& device, int size);

/// Path tracing (Kajiya, "The Rendering Equation", SIGGRAPH 1986): from each hit one ray on, in a
/// direction drawn in proportion to its cosine with the normal, and one towards the sun. A ray goes
/// from voxel to voxel by `voxels_along_ray`, and on from exactly the face that it met, so no bias
/// keeps it from meeting that again. Lengths in elements.
class VoxelTracer {
 public:
  using Image = quern::Field<quern::lang::vec3, 2>;  ///< {height, width}, rows from the top

  struct Setup {
    quern::lang::vec3 eye = {0, 100, 200}, target = {0, 0, 0};
    float focal = 2.2f;                            ///< of a screen 2 high
    quern::lang::vec3 sun = {0.48f, 0.64f, 0.6f};  ///< direction to it, of length 1
    float sun_radius = 0.03f;                      ///< seen from here, in radians
    quern::lang::vec3 sunlight = {2.2f, 2, 1.7f};  ///< what a white face towards it reflects
    quern::lang::vec3 zenith = {0.25f, 0.45f, 0.8f}, horizon = {0.8f, 0.88f, 0.95f};  ///< the sky's
    int bounces = 6;      ///< of a path at most
    bool strict = false;  ///< the same bits on every device
  };

  VoxelTracer(const quern::Device& device, const Albedo& albedo, int height, int width,
              const Setup& setup);

  /// The first hits of the rays through the middles of pixels; asynchronous.
  void look() { look_(); }
  /// Adds so many paths to each pixel; asynchronous.
  void trace(int paths);
  /// The mean of all paths so far: radiance.
  Image mean() const;
  /// That as colours from 0 to 1, for a screen.
  Image picture() const;

  quern::Field<float, 2> distance;            ///< along the ray, or -1 where it meets nothing
  quern::Field<quern::lang::ivec3, 2> voxel;  ///< that it meets
  Image normal;                               ///< of the face, 0 where there is none

 private:
  quern::Device device_;
  Setup setup_;
  Albedo albedo_;
  Image sum_;
  int paths_ = 0;
  quern::Kernel<void()> look_;
  quern::Kernel<void(quern::lang::I32)> trace_;
};

}  // namespace examples
