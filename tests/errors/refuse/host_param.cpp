// expect: a kernel parameter is a value
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](float a) { x[0] = a; };  // here
}
