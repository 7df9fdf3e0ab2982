// expect: never changes
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    for (auto i : x) {
      i += 1;  // here
      x[i] = 0;
    }
  };
}
