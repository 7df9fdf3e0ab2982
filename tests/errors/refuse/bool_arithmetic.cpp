// expect: does not change a bool
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Kernel k = [](B1 a) {
    Var<bool> b = a;
    b += a;  // here
  };
}
