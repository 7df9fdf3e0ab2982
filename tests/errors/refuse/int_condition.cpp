// expect: a condition is a bool
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](I32 n) {
    If (n) x[0] = 1;  // here
  };
}
