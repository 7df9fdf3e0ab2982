// expect: write cast<float>(value)
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<int> x, qn::Field<float> y) {
  qn::Kernel k = [&] {
    for (auto i : x) y[i] = float(x[i]) * 2;  // here
  };
}
