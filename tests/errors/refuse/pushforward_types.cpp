// expect: a pushforward takes the arguments of its function, its results, and the tangents of its float arguments
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  auto f = quern::differentiable([](F64 x) { return x; },  // here
                                 quern::pushforward([](F64, F64, F32 dx) { return dx; }));
}
