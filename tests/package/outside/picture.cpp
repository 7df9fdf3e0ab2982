// picture FILE: a picture into a file and back; `right` where it is the same.
#include <quern/files.h>
#include <quern/quern.h>

#include <cstdio>

namespace qn = quern;

int main(int, char** argv) {
  qn::Device device("interpreter");
  qn::Field<uint8_t, 2> grey{device, {3, 5}};
  grey.fill(200);
  qn::write_image(argv[1], grey);
  auto read = qn::read_image<uint8_t, 1>(device, argv[1]);
  std::printf("picture %s\n", read.shape(1) == 5 && read.at(2, 4) == 200 ? "right" : "wrong");
}
