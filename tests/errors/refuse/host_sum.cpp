// expect: a variable of the host's cannot change
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    float s = 0;
    for (auto i : x) s += x[i];  // here
  };
}
