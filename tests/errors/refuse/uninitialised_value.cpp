// expect: needs an initialiser
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused(qn::Field<float> x) {
  qn::Kernel k = [&] {
    F32 s;  // here
    x[0] = s;
  };
}
