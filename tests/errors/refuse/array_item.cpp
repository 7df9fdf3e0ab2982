// expect: this names the value of an array's element
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Kernel k = [](I32 i) {
    Var<Array<float, 4>> a;
    auto item = a[i];
    item += 1;  // here
  };
}
