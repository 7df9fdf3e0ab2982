// expect: names a snapshot
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    for (auto i : x) {
      auto e = x[i];
      atomic_add(e, 1);  // here
    }
  };
}
