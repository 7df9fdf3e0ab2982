// expect: `Var s = 0` is a Var<int>
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    Var s = 0;
    for (auto i : x) s += x[i];  // here
  };
}
