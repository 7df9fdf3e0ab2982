// expect: no such operation
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Kernel k = [&](Mat3 a, Vec2 b) {
    auto c = a * b;  // here
  };
}
