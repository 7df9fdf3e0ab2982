// expect: at most 65,536 scalars
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    Var<Array<int, 1 << 19>> a;  // here
    for (auto i : x) x[i] = 0;
  };
}
