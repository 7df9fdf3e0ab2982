// expect: else
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](I32 a) {
    If (a > 0) x[0] = 1;
    x[1] = 1;
    else x[1] = 1;  // here
  };
}
