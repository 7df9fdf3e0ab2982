// expect: a coordinate is float or double
#include <quern/sample.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float, 2> u, qn::Field<float, 2> v) {
  qn::Kernel k = [&] {
    for (auto [i, j] : v) v(i, j) = sample(u, i, 0.5f * j);  // here
  };
}
