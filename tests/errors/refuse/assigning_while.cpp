// expect: a comparison is written a == b
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<bool> x) {
  qn::Kernel k = [&] {
    While (x[0] = true) { x[1] = true; }  // here
  };
}
