// expect: cannot steer the host
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](I32 n) {
    for (int i = 0; i < n; i++) x[i] = 1;  // here
  };
}
