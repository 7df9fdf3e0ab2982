// grids FILE: a field into a file of OpenVDB's and back; `right` where it is the same, or where the error
// says that this Quern has no OpenVDB.
#include <quern/sparse/vdb.h>

#include <cstdio>

namespace qn = quern;

int main(int, char** argv) {
  qn::Device device("interpreter");
  qn::Tree<3> tree{device, {qn::pointer(8), qn::bitmasked(8)}};
  auto u = tree.field<float>(1.5f);
  u.set(1, 2, 3, 0.5f);
  bool right = false;
  try {
    qn::write_vdb(argv[1], {{"u", u}});
    const auto read = qn::read_vdb(device, argv[1]).grid<float>("u");
    right = read.field.at(1, 2, 3) == 0.5f && read.field.at(1, 2, 4) == 1.5f;
  } catch (const qn::Error& e) {
    right = !qn::has_openvdb() && e.message().find("built without OpenVDB") != std::string::npos;
  }
  std::printf("grids %s\n", right ? "right" : "wrong");
}
