// Distances from two balls are made of a function that has their surfaces and other slopes, then Zalesak's
// ball with its slot makes a turn; pictures of both are in out/levelset/.
#include "examples/levelset.h"

#include <quern/files.h>
#include <quern/sample.h>

#include <chrono>
#include <cmath>

#include "examples/command.h"

using namespace quern::lang;
using examples::LevelSet;

namespace {

using Picture = quern::Field<vec3, 2>;  ///< rows from the top

/// The plane z = n / 2 of phi with a line for each element of distance, `scale` pixels an element.
Picture slice(const quern::Device& device, const LevelSet& surface, int n, int scale) {
  Picture picture{device, {n * scale, n * scale}};
  quern::Kernel draw = [&] {
    for (auto [row, column] : picture) {
      auto x = column / scale, y = n - 1 - row / scale;
      F32 v = surface.phi(x, y, n / 2);
      F32 shade = 1 - 0.5f * abs(v - floor(v) - 0.5f);
      Vec3 colour = select(v < 0, vec(0.35f, 0.55f, 0.95f), vec(0.98f, 0.7f, 0.35f)) * shade;
      Vec3 near = select(abs(v) < 0.5f, vec(0.1f, 0.1f, 0.1f), colour);
      picture(row, column) = select(v == LevelSet::unknown, vec(0.93f, 0.93f, 0.93f), near);
    }
  };
  draw();
  return picture;
}

/// The surface seen from the side and a little from above, by marching along rays (sphere tracing).
class View {
 public:
  View(const quern::Device& device, const LevelSet& surface, int n, int width)
      : picture{device, {width, width}}, draw_{[=, this, &surface] {
          const float tilt = 0.6f, up = std::sin(tilt), ahead = std::cos(tilt);
          auto value = [&](const Vec3& at) { return F32(sample(surface.phi, at.x, at.y, at.z)); };
          for (auto [row, column] : picture) {
            F32 across = (cast<float>(column) / float(width) - 0.5f) * float(n) * 1.1f;
            F32 height = (0.5f - cast<float>(row) / float(width)) * float(n) * 1.1f;
            Vec3 middle = vec(0.5f, 0.5f, 0.5f) * float(n);
            Vec3 ray = vec(0.0f, ahead, -up);
            Vec3 start = middle + vec(across, height * up, height * ahead) - ray * float(n);
            Var<float> way = 0, v = LevelSet::unknown;
            While(way < 2.0f * float(n) && abs(v) > 0.02f) {
              Vec3 at = start + ray * way;
              Vec3 inside = clamp(at, 0.0f, float(n - 1));
              v = select(all(inside == at), value(inside), LevelSet::unknown);
              // An unknown element is at least as far away as the band is wide, so 2 skips nothing.
              way += select(abs(v) < 10.0f, v, 2.0f);
            }
            Vec3 at = clamp(start + ray * way, 2.0f, float(n - 3));
            Vec3 x = vec(1.0f, 0.0f, 0.0f), y = vec(0.0f, 1.0f, 0.0f), z = vec(0.0f, 0.0f, 1.0f);
            Vec3 slope = vec(value(at + x) - value(at - x), value(at + y) - value(at - y),
                             value(at + z) - value(at - z));
            F32 light = dot(slope / max(length(slope), 1e-6f), vec(-0.48f, -0.6f, 0.64f));
            Vec3 lit = vec(0.95f, 0.62f, 0.3f) * (0.25f + 0.75f * max(light, 0.0f));
            picture(row, column) = select(abs(v) <= 0.02f, lit, vec(0.93f, 0.94f, 0.96f));
          }
        }} {}
  const Picture& draw() {
    draw_();
    return picture;
  }
  Picture picture;

 private:
  quern::Kernel<void()> draw_;
};

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  examples::Command command("levelset", "Level sets in a narrow band on a tree");
  int n = 100, frames = 24, width = 480;
  command.option("-n", n, "elements along a side", 32, 1024);
  command.option("--frames", frames, "frames of the turn", 1, 1000);
  command.option("--width", width, "pixels of a frame's side", 16, 8192);
  return command.run(argc, argv, [&](const quern::Device& device) {
    const float size = float(n), pi = 3.14159265f;
    // A radian a second around the middle, counterclockwise seen along -z.
    LevelSet surface(device, n, 6, [&](const Vec3& x) {
      return vec(0.5f * size - x.y, x.x - 0.5f * size, 0.0f);
    });

    const vec3 centres[] = {{0.33f * size, 0.37f * size, 0.5f * size},
                            {0.66f * size, 0.65f * size, 0.5f * size}};
    const float radius = 0.2f * size;
    auto distance = [&](const Vec3& x) {
      return min(length(x - centres[0]), length(x - centres[1])) - radius;
    };
    surface.start([&](const Vec3& x) {  // with a slope between 0.4 and about 8
      Vec3 off = (x - centres[0]) / radius;
      return distance(x) * (0.4f + dot(off, off));
    });
    quern::write_image(command.picture("before.png"), slice(device, surface, n, 6));
    auto begin = std::chrono::steady_clock::now();
    surface.redistance(14);
    surface.trim();
    device.synchronize();
    const double seconds = since(begin);
    quern::write_image(command.picture("after.png"), slice(device, surface, n, 6));
    quern::Kernel largest_error = [&] {
      Var<float> worst = 0;
      for (auto [i, j, k] : surface.phi) {
        F32 exact = distance(cast<float>(vec(i, j, k)));
        If(abs(exact) < 3.0f) { atomic_max(worst, abs(surface.phi(i, j, k) - exact)); }
      }
      return worst;
    };
    const float error = largest_error();
    command.say(
        "two balls in %d^3 on device %s: distances within %.3f elements where they are below 3, in "
        "%.3f s with compilation; %lld elements in the band",
        n, device.name(), double(error), seconds,
        static_cast<long long>(surface.tree.active_count()));

    const vec3 centre{0.5f * size, 0.75f * size, 0.5f * size};
    surface.start([&](const Vec3& x) {  // Zalesak's ball: 15 of 100, with a slot 5 wide and 25 deep
      Vec3 off = x - centre;
      F32 ball = length(off) - 0.15f * size;
      F32 slot = max(abs(off.x) - 0.025f * size, off.y - 0.1f * size);
      return max(ball, -slot);
    });
    surface.redistance(14);
    surface.trim();
    const LevelSet::Measures first = surface.measure();
    View view(device, surface, n, width);
    begin = std::chrono::steady_clock::now();
    for (int frame = 0; frame < frames; frame++) {
      quern::write_image(command.frame(frame), view.draw());
      surface.advance(2 * pi / float(frames), 0.46f * size);
      command.progress("frame %d of %d, %.1f s elapsed", frame + 1, frames, since(begin));
    }
    quern::write_image(command.frame(frames), view.draw());
    const LevelSet::Measures last = surface.measure();
    command.say("one turn: volume %.4g, then %.4g (%+.2f %%); area %.4g, then %.4g", first.volume,
                last.volume, 100 * (last.volume / first.volume - 1), first.area, last.area);
    command.say("frames are in %s", command.folder().c_str());
  });
}
