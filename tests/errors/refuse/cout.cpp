// expect: write print
#include <quern/quern.h>
#include <iostream>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Kernel k = [](F32 a) {
    std::cout << a;  // here
  };
}
