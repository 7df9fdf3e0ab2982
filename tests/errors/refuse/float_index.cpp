// expect: an index is an integer
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](F32 a) {
    x[a] = 1;  // here
  };
}
