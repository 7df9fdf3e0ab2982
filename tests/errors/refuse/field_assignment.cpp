// expect: a Field is a handle
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x, qn::Field<float> y) {
  x = y;  // here
}
