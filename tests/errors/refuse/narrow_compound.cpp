// expect: narrows
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Kernel k = [](I32 a) {
    Var<uint8_t> n = 0;
    n += a;  // here
  };
}
