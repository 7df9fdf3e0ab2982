// expect: an index of each axis
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float, 2> u) {
  qn::Kernel k = [&] {
    for (auto i : u) u(i, 0) = 1;  // here
  };
}
