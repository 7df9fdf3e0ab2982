// expect: a pullback returns the adjoints of the float arguments: one, result(a, b), or nothing for zeros
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  auto f = quern::differentiable(  // here
      [](F32 x, F32 y) { return x * y; },
      quern::pullback([](F32, F32 y, F32, F32 dz) { return dz * y; }));
}
