// What a host program opens at run time.
#include <quern/quern.h>

namespace qn = quern;
using namespace qn::lang;

/// The sum of the numbers below n; -1 where Quern throws.
extern "C" [[gnu::visibility("default")]] int sum_below(const char* device_name, int n);
extern "C" int sum_below(const char* device_name, int n) try {
  qn::Device device(device_name);
  qn::Field<int> x{device, {n}};
  qn::Kernel numbers = [&] {
    Var<int> sum = 0;
    for (auto i : x) sum += i;
    return sum;
  };
  return int(numbers());
} catch (const qn::Error&) {
  return -1;
}
