// sums DEVICE…: a kernel on each device that is present; `right` where its result is.
#include <quern/quern.h>

#include <cstdio>

namespace qn = quern;
using namespace qn::lang;

double second(qn::Device& device);

int main(int argc, char** argv) {
  for (int a = 1; a < argc; a++) {
    try {
      qn::Device device(argv[a]);
      const int n = 1000;
      qn::Field<int> x{device, {n}};
      qn::Kernel sum_of_odds = [&] {
        Var<int> sum = 0;
        for (auto i : x) {
          x[i] = i;
          If(i % 2 == 1) { sum += x[i]; }
        }
        return sum;
      };
      // 1 + 3 + … + 999 = 500²; second() yields 1 + 1/2 + … + 1/1024 = 2 - 1/1024.
      bool right = int(sum_of_odds()) == 250000 && second(device) == 2 - 1.0 / 1024;
      std::printf("%s %s\n", argv[a], right ? "right" : "wrong");
    } catch (const qn::Error&) {
      std::printf("%s absent\n", argv[a]);
    }
  }
}
