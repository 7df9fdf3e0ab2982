// expect: the bound of a loop is signed
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&](U64 n) {
    for (auto i : range(n)) x[i] = 1;  // here
  };
}
