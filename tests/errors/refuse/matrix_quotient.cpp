// expect: no such operation
#include <quern/quern.h>
using namespace quern::lang;
int main() {
  quern::Kernel k = [](Mat2 a, Mat2 b) {
    return a / b;  // here
  };
}
