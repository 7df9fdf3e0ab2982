// expect: captured by copy
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Kernel k = [](F32 a) {
    Var<float> s = 0;
    auto f = [=] {
      s += a;  // here
    };
    f();
  };
}
