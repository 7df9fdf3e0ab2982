// expect: Var takes the host's type
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Kernel k = [](F32 a) {
    Var<F32> b = a;  // here
  };
}
