// expect: generic lambda
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](auto a) { x[0] = a; };  // here
}
