// Loads an image from a file and launches it: all that a program needs that compiles nothing.
//
//   load_image DEVICE FILE N A LIMIT BAD
//
// launches tests/images/kernels.h's scale_and_sum on N elements; prints the sum and x, or the error.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "quern/runtime/device.h"
#include "tests/images/kernels.h"

namespace {

std::vector<std::byte> read(const char* file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) throw quern::Error(std::string("cannot read ") + file);
  std::vector<std::byte> bytes(size_t(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()));
  return bytes;
}

void run(char** argv) {
  using namespace quern::runtime;
  auto image = std::make_shared<const Image>(Image::from(read(argv[2]), argv[2]));
  auto device = Device::open(argv[1]);
  const int64_t n = std::atoll(argv[3]);
  auto arguments = quern::test::arguments(device, n, std::atoi(argv[4]), std::atoll(argv[5]),
                                          std::atoll(argv[6]));
  const LoadedKernel kernel(device, image);
  auto outcome = kernel.launch(arguments);
  std::printf("sum %lld\n", static_cast<long long>(outcome->result(0)));
  std::vector<int32_t> x(size_t(n), 0);
  arguments[1].storage->read(x.data(), 0, n);
  for (int32_t v : x) std::printf("%d\n", v);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  try {
    run(argv);
  } catch (const std::exception& e) {
    std::printf("error %s\n", e.what());
    return 1;
  }
}
