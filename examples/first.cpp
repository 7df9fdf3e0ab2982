#include <quern/quern.h>
#include <cstdio>
namespace qn = quern;
using namespace qn::lang;

int main() {
  qn::Device device = qn::Device::best();
  qn::Field<float> x{device, {1 << 20}}, y{device, {1 << 20}};

  qn::Kernel saxpy = [&](F32 a) {             // recorded once, here
    for (auto i : y) y[i] = a * x[i] + y[i];  // outermost loop: runs in parallel
  };
  qn::Kernel total = [&] {
    Var<double> sum = 0.0;
    for (auto i : y) sum += y[i];  // a recognised reduction
    return sum;
  };
  x.fill(1.0f);
  saxpy(2.0f);                             // asynchronous; host reads wait
  std::printf("%.0f\n", double(total()));  // 2097152
}
