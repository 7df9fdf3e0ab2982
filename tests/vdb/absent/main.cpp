// Quern without OpenVDB and NanoVDB: prints what each function says. Linked with what stands in for them.
#include <quern/sparse/vdb.h>

#include <cstdio>

namespace qn = quern;

template <class F>
void say(F&& f) {
  try {
    f();
    std::puts("nothing thrown");
  } catch (const qn::Error& e) {
    std::printf("%d: %s\n", e.loc().line, e.message().c_str());
  }
}

int main(int, char** argv) {
  qn::Device device("interpreter");
  qn::Tree<3> tree{device, {qn::pointer(4), qn::bitmasked(8)}};
  auto u = tree.field<float>();
  u.set(1, 2, 3, 1.5f);
  std::printf("%d %d\n", qn::has_openvdb(), qn::has_nanovdb());
  say([&] { qn::write_vdb("never.vdb", {{"u", u}}); });
  say([&] { qn::write_nanovdb("never.nvdb", {{"u", u}}); });
  say([&] { qn::read_vdb(device, argv[1]); });
  say([&] { qn::read_vdb(device, argv[2]); });
}
