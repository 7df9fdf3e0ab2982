// NanoVDB's files: those that Quern writes, as NanoVDB reads them, and the other way.
#define NANOVDB_USE_BLOSC
#define NANOVDB_USE_ZIP
#include <iostream>  // which the next header lacks

#include <nanovdb/util/GridValidator.h>
#include <nanovdb/util/IO.h>
#include <nanovdb/util/OpenToNanoVDB.h>

#include "tests/vdb/openvdb/grids.h"

namespace {

const qn::GridTransform sheared{{0.1, -3, 4}, {{{0.5, 0.25, 0}, {0, 1.0 / 3, 0}, {0, -0.125, 2}}}};

template <class NanoT, class T>
void check_types(const qn::Device& device, const T& none, int far) {
  using V = typename nanovdb::BuildToValueMap<NanoT>::Type;
  std::mt19937 random(11);
  Folder folder;
  const auto elements = values_at<T>(spots(random, 60, far));
  const qn::Tree<3> tree{device, {qn::hash(), qn::pointer(4), qn::bitmasked(4)}};
  auto u = tree.template field<T>(none);
  write_elements(device, u, elements);
  qn::write_nanovdb(folder / "a.nvdb", {{"other", tree.template field<int>()},
                                        {"u", u, {sheared, qn::GridClass::unknown}}});

  const auto handle = nanovdb::io::readGrid(folder / "a.nvdb", "u");
  const auto* grid = handle.template grid<NanoT>();
  REQUIRE(grid);
  CHECK(nanovdb::isValid(*grid));
  CHECK(grid->activeVoxelCount() == elements.size());
  const auto at = grid->getAccessor();
  int wrong = 0;
  for (const auto& [spot, value] : elements) {
    const nanovdb::Coord c(spot[0], spot[1], spot[2]);
    wrong += !at.isActive(c) || !same_bits(V(at.getValue(c)), as_vdb<V>(value));
  }
  CHECK(wrong == 0);
  CHECK(same_bits(V(grid->tree().background()), as_vdb<V>(none)));
  CHECK(grid->map().applyMap(nanovdb::Vec3d(1, 0, 0)) == nanovdb::Vec3d(0.6, -2.75, 4));
  CHECK(grid->map().applyMap(nanovdb::Vec3d(0, 0, 1)) == nanovdb::Vec3d(0.1, -3.125, 6));

  const qn::VdbFile file = qn::read_vdb(device, folder / "a.nvdb");
  CHECK(file.names() == std::vector<std::string>{"other", "u"});
  const qn::VdbGrid<T> read = file.template grid<T>("u");
  CHECK(read.info.transform == sheared);
  CHECK(read.dropped == 0);
  CHECK(elements_of(device, read.field, int64_t(elements.size())) == elements);
}

}  // namespace

TEST_CASE("grids of every type go to NanoVDB and back") {
  const qn::Device device("interpreter");
  const int far = 300;
  check_types<bool, bool>(device, false, far);
  check_types<int32_t, int>(device, -7, far);
  check_types<int64_t, int64_t>(device, int64_t(1) << 40, far);
  check_types<float, float>(device, 0.5f, far);
  check_types<double, double>(device, 0.1, far);
  check_types<nanovdb::Vec3f, qn::Vec<float, 3>>(device, {0.5f, 0, -1}, far);
}

TEST_CASE("grids go to NanoVDB and back on every device") {
  on_every_device([](const qn::Device& device) { check_types<float, float>(device, 1.5f, 100); });
}

TEST_CASE("NanoVDB's tiles, codecs and packed floats are read") {
  const qn::Device device("interpreter");
  Folder folder;
  vdb::initialize();
  auto open = vdb::FloatGrid::create(5.0f);
  open->setName("tiles");
  open->setGridClass(vdb::GRID_FOG_VOLUME);
  open->setTransform(vdb::math::Transform::createLinearTransform(0.25));
  open->tree().addTile(1, {8, -8, 16}, 6.0f, true);
  open->tree().addTile(1, {512, 0, 0}, 9.0f, false);
  open->tree().addTile(3, {4096, 0, 0}, 9.0f, false);
  open->tree().setValueOff({0, 100, 0}, 7.0f);
  for (int k = 0; k < 20; k++) open->tree().setValue({0, 100, k + 1}, float(k));
  const auto check = [&](const std::string& path, float tolerance) {
    const auto read = qn::read_vdb(device, path).grid<float>("tiles");
    CHECK(read.tree.active_count() == 512 + 20);
    CHECK(read.info.grid_class == qn::GridClass::fog_volume);
    CHECK(read.info.transform == qn::uniform_transform(0.25));
    CHECK((read.field.at(15, -1, 23) == 6 && read.field.at(16, -1, 23) == 5));
    for (int k = 0; k < 20; k++)
      CHECK(std::abs(read.field.at(0, 100, k + 1) - float(k)) <= tolerance);
    if (tolerance == 0) CHECK(read.dropped == 512 + 1 + (int64_t(1) << 36));
  };
  const auto handle = nanovdb::OpenToNanoVDB<float, float>()(*open);
  for (auto codec :
       {nanovdb::io::Codec::NONE, nanovdb::io::Codec::ZIP, nanovdb::io::Codec::BLOSC}) {
    nanovdb::io::writeGrid(folder / "a.nvdb", handle, codec);
    check(folder / "a.nvdb", 0);
  }
  nanovdb::io::writeGrid(folder / "a.nvdb", nanovdb::OpenToNanoVDB<float, nanovdb::Fp8>()(*open));
  check(folder / "a.nvdb", 19.0f / 255);
  nanovdb::io::writeGrid(folder / "a.nvdb", nanovdb::OpenToNanoVDB<float, nanovdb::FpN>()(*open));
  check(folder / "a.nvdb", 0.5f);
}

TEST_CASE("NanoVDB's files that are cut off, or whose offsets lead elsewhere, are refused") {
  const qn::Device device("interpreter");
  Folder folder;
  qn::Tree<3> tree{device, {qn::pointer(8), qn::bitmasked(8)}};
  auto u = tree.field<float>(1.5f);
  u.set(3, 4, 5, 6.0f);
  qn::write_nanovdb(folder / "a.nvdb", {{"u", u}});
  const std::string good = bytes_of(folder / "a.nvdb");
  const auto reading = [&](const std::string& bytes) {
    const std::string bad = folder.file("bad", bytes);
    return error_of([&] { qn::read_vdb(device, bad).grid<float>("u", 5000); });
  };
  CHECK(reading(good) == "");
  for (size_t length : {size_t(8), size_t(20), size_t(100), size_t(200), good.size() - 1})
    CHECK_THAT(reading(good.substr(0, length)), contains("it is damaged or cut off"));
  CHECK_THAT(reading(good + "x"), contains("it is damaged or cut off"));
  std::string later = good;
  later[11] = char(later[11] ^ 0x80);
  CHECK_THAT(reading(later), contains("it has NanoVDB's format"));
  // Whatever a damaged byte makes of offsets and tiles: an error, or another grid, and nothing outside is read.
  std::mt19937 random(3);
  for (int draw = 0; draw < 15; draw++) {
    std::string changed = good;
    const size_t at = draw < 10 ? random() % 2000 : random() % good.size();
    changed[at] = char(random());
    reading(changed);
  }
  CHECK_THAT(error_of([&] {
               qn::write_nanovdb(folder / "b.nvdb", {{"i", tree.field<qn::Vec<int, 3>>()}});
             }),
             contains("'i' has elements of type vec3i, which are not written for NanoVDB"));
  CHECK_THAT(error_of([&] { qn::write_nanovdb("/dev/full", {{"u", u}}); }),
             contains("cannot write '/dev/full'"));
}
