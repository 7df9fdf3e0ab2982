// expect: names a snapshot
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Field<vec3> v{8};
  quern::Kernel k = [&] {
    for (auto i : v) {
      auto q = v[i];
      q.x += 1;  // here
    }
  };
}
