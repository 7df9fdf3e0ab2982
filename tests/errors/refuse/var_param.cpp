// expect: a kernel parameter is a value: write Val<T>
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](Var<float> a) { x[0] = a; };  // here
}
