// expect: capture fields instead
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Func f = [](qn::Field<float> y) { return F32(y[0]); };  // here
}
