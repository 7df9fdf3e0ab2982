// expect: 0.1f a float
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<double> x) {
  qn::Kernel k = [&] {
    Var s = 0.1f;
    for (auto i : x) s += x[i];  // here
  };
}
