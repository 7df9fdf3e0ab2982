// expect: a pullback takes the arguments of its function, its results, and the adjoints of its float results
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  auto f = quern::differentiable([](F32 x, I32) { return x; },  // here
                                 quern::pullback([](F32, F32, F32 dy) { return dy; }));
}
