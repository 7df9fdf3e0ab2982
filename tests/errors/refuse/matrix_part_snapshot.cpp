// expect: names a snapshot
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Field<mat3> m{8};
  quern::Kernel k = [&] {
    for (auto i : m) {
      auto q = m[i];
      q(1, 1) = 1;  // here
    }
  };
}
