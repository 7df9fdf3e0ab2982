// expect: one index for each of its axes
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float, 2> u) {
  qn::Kernel k = [&](I32 i, I32 j) {
    u[i, j] = 1;  // here
  };
}
