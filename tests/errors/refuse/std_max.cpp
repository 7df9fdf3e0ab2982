// expect: cannot steer the host
#include <quern/quern.h>
#include <algorithm>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](F32 a, F32 b) {
    x[0] = std::max(a, b);  // here (g++)
  };
}
