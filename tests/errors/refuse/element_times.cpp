// expect: not atomic on storage
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    for (auto i : x) x[i] *= 2;  // here
  };
}
