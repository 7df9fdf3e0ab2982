// expect: narrows
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](F64 a) {
    for (auto i : x) x[i] = a * x[i];  // here
  };
}
