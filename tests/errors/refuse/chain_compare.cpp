// expect: compared again
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](I32 n) {
    for (auto i : x) If (0 < i < n) x[i] = 1;  // here
  };
}
