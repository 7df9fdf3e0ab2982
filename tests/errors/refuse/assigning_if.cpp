// expect: a comparison is written a == b
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](I32 n) {
    Var<int> a = n;
    If (a = 3) { x[0] = 1; }  // here
  };
}
