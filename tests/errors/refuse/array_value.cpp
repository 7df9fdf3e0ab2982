// expect: never changes
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Kernel k = [](Val<Array<float, 4>> a, I32 i) {
    a[i] = 1;  // here
  };
}
