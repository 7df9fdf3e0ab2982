// expect: an array takes as many values as it has elements
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Kernel k = [](I32 i) {
    Var<Array<int, 3>> a = {1, i};  // here
  };
}
