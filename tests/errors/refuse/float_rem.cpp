// expect: no such operation
#include <quern/quern.h>
namespace qn = quern;
using namespace qn::lang;

void refused() {
  qn::Kernel k = [](F32 a) {
    auto c = a % 2;  // here
  };
}
