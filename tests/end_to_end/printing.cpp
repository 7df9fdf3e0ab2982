// Matrices and structures printed and checked, up to sixteen numbers at once.
#include <quern/quaternion.h>

#include <limits>

#include "tests/end_to_end/devices.h"
#include "tests/end_to_end/output.h"

using namespace qn::lang;

namespace {
template <class W = HostW>
struct Mass {
  In<W, double> mass;
  In<W, bool> fixed;
};
template <class W = HostW>
struct Ball {
  In<W, vec3> x;
  In<W, Mass<>> body;
  In<W, Array<int64_t, 3>> cell;
  In<W, quat> turn;
};
}  // namespace

TEST_CASE("matrices of 9 and 16 numbers, and structures, are printed as a whole") {
  on_every_device([](qn::Device& device) {
    qn::Field<mat4> m{device, {2}};
    qn::Field<Ball<>> balls{device, {1}};
    mat4 numbers;
    for (int k = 0; k < 16; k++) numbers.value(k) = float(k) - 0.5f;
    m.set(1, numbers);
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    balls.set(0, Ball<>{vec3(1, 2, -3), {0.1, true}, {1, -2, most}, quat{0, 0, 0.5f, 1}});
    qn::Kernel k = [&](Mat3 a) {
      for (auto i : range(1)) {
        print("mat3 {}", a);
        print("mat4 {}", m[1]);
        print("ball {}", balls[0]);
        print("turn {} of {} {}", balls[0].turn, a, vec2(7, 8));  // 15
      }
    };
    const std::string text = output_of([&] {
      k(mat3(1, 2, 3, 4, 5, 6, 7, 8, 9.25f));
      device.synchronize();
    });
    std::vector<std::string> lines;
    for (size_t from = 0, to; (to = text.find('\n', from)) != std::string::npos; from = to + 1)
      lines.push_back(text.substr(from, to - from));
    CHECK(lines == std::vector<std::string>{
                       "mat3 ((1, 2, 3), (4, 5, 6), (7, 8, 9.25))",
                       "mat4 ((-0.5, 0.5, 1.5, 2.5), (3.5, 4.5, 5.5, 6.5), (7.5, 8.5, 9.5, 10.5), "
                       "(11.5, 12.5, 13.5, 14.5))",
                       "ball ((1, 2, -3), (0.1, true), (1, -2, 9223372036854775807), (0, 0, 0.5, "
                       "1))",
                       "turn (0, 0, 0.5, 1) of ((1, 2, 3), (4, 5, 6), (7, 8, 9.25)) (7, 8)"});
  });
}

TEST_CASE("a failed check reports 16 numbers") {
  on_every_device([](qn::Device& device) {
    qn::Field<mat4> m{device, {1}};
    qn::Kernel k = [&] {
      for (auto i : m) check(determinant(m[i]) > 0, "turned inside out: {}", m[i]);
    };
    m.set(0, mat4(-1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2));
    k();
    const std::string error = error_of([&] { device.synchronize(); });
    CHECK(error.find("turned inside out: ((-1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, "
                     "2))") != std::string::npos);
  });
}

TEST_CASE("more than 16 numbers are refused, with the line") {
  qn::Device device;
  int line = 0;
  const std::string error = error_of(
      [&] {
        qn::Kernel k = [](Mat4 m, Quat q) { print("{} {}", m, q); };
        k(mat4(), quat());
      },
      &line);
  CHECK(line == __LINE__ - 4);
  CHECK(error.find("printing.cpp") != std::string::npos);
  CHECK(error.find("at most 16 values") != std::string::npos);
}
