// expect: cannot steer the host
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x, qn::Field<float> y) {
  qn::Kernel k = [&] {
    for (auto i : x) y[i] = x[i] > 0 ? 1.0f : 2.0f;  // here
  };
}
