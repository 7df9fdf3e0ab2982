// expect: 0.1, also in `Var s = 0.1`, is a double
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    Var s = 0.1;
    for (auto i : x) x[i] = s;  // here
  };
}
