// expect: a structure or array has no arithmetic
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Kernel k = [](Val<Array<float, 4>> b) {
    Var<Array<float, 4>> a;
    a += b;  // here
  };
}
