// expect: cannot convert | no viable conversion
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    float f = x[0];  // here
    (void)f;
  };
}
