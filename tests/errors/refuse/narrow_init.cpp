// expect: narrows
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Kernel k = [](F32 a) {
    Var<int> n = a * 2;  // here
  };
}
