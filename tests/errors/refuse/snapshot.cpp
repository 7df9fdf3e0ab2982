// expect: names a snapshot
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    for (auto i : x) {
      auto v = x[i];
      v = 3;  // here
    }
  };
}
