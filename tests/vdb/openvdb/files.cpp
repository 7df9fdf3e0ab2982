// Grids that Quern writes, as OpenVDB reads them; and those that OpenVDB writes, as Quern does.
#include <openvdb/tools/LevelSetSphere.h>

#include <limits>

#include "tests/vdb/openvdb/grids.h"

namespace {

const qn::GridTransform sheared{{0.1, -3, 1e9},
                                {{{0.5, 0.25, 0}, {0, 1.0 / 3, 0}, {0, -0.125, 2}}}};

vdb::Mat4d matrix_of(const qn::GridTransform& t) {
  vdb::Mat4d m = vdb::Mat4d::identity();
  for (int k = 0; k < 3; k++)
    for (int axis = 0; axis < 3; axis++) {
      m(k, axis) = t.step[size_t(k)][size_t(axis)];
      m(3, axis) = t.origin[size_t(axis)];
    }
  return m;
}

/// On a tree of these levels, written by Quern and read by OpenVDB, written by OpenVDB and read by Quern.
template <class GridT, class T>
void check_types(const qn::Device& device, std::initializer_list<qn::TreeLevel> levels,
                 qn::TreeOptions options, const T& none, int far) {
  using V = typename GridT::ValueType;
  std::mt19937 random(7);
  Folder folder;
  const auto elements = values_at<T>(spots(random, 60, far));
  const qn::Tree<3> tree{device, levels, options};
  auto u = tree.template field<T>(none);
  write_elements(device, u, elements);
  qn::write_vdb(folder / "a.vdb", {{"some grid", u, {sheared, qn::GridClass::fog_volume}}});

  const vdb::GridPtrVec grids = grids_of(folder / "a.vdb");
  REQUIRE(grids.size() == 1);
  const auto grid = vdb::gridPtrCast<GridT>(grids[0]);
  REQUIRE(grid);
  expect_elements(*grid, elements);
  CHECK(grid->getName() == "some grid");
  CHECK(grid->getGridClass() == vdb::GRID_FOG_VOLUME);
  CHECK(same_bits(grid->background(), as_vdb<V>(none)));
  CHECK(grid->transform().baseMap()->getAffineMap()->getMat4() == matrix_of(sheared));
  int wrong = 0;
  for (auto off = grid->cbeginValueOff(); off; ++off) wrong += !same_bits(*off, grid->background());
  CHECK(wrong == 0);

  // The same by OpenVDB: the same again.
  write_by_openvdb(folder / "b.vdb", grids);
  const qn::VdbFile file = qn::read_vdb(device, folder / "b.vdb");
  CHECK(file.names() == std::vector<std::string>{"some grid"});
  const qn::VdbGrid<T> read = file.template grid<T>("some grid");
  CHECK(read.dropped == 0);
  CHECK(read.info.transform == sheared);
  CHECK(read.info.grid_class == qn::GridClass::fog_volume);
  CHECK(elements_of(device, read.field, int64_t(elements.size())) == elements);
  CHECK(read.field.at(-far - 1, 0, 0) == none);
}

}  // namespace

TEST_CASE("grids of every type go to OpenVDB and back") {
  const qn::Device device("interpreter");
  const std::initializer_list<qn::TreeLevel> levels = {qn::hash(), qn::pointer(4),
                                                       qn::bitmasked(8)};
  const int far = 300;
  check_types<vdb::BoolGrid, bool>(device, levels, {}, true, far);
  check_types<vdb::Int32Grid, int>(device, levels, {}, -7, far);
  check_types<vdb::Int64Grid, int64_t>(device, levels, {}, int64_t(1) << 40, far);
  check_types<vdb::FloatGrid, float>(device, levels, {}, -0.0f, far);
  check_types<vdb::DoubleGrid, double>(device, levels, {}, 0.1, far);
  check_types<vdb::Vec3IGrid, qn::Vec<int, 3>>(device, levels, {}, {1, 2, 3}, far);
  check_types<vdb::Vec3SGrid, qn::Vec<float, 3>>(device, levels, {}, {0.5f, 0, -1}, far);
  check_types<vdb::Vec3DGrid, qn::Vec<double, 3>>(device, levels, {}, {0.1, 0, -1}, far);
}

TEST_CASE("grids go from trees of all levels to OpenVDB and back, on every device") {
  on_every_device([](const qn::Device& device) {
    check_types<vdb::FloatGrid, float>(device, {qn::pointer(8), qn::pointer(8), qn::bitmasked(4)},
                                       {.offset = {-128, -128, -128}}, 1.5f, 100);
    check_types<vdb::Vec3SGrid, qn::Vec<float, 3>>(device, {qn::hash(), qn::bitmasked(2, 8, 4)}, {},
                                                   {0.5f, 0, -1}, 2000);
  });
}

TEST_CASE("units and lists are written element by element") {
  const qn::Device device("interpreter");
  Folder folder;
  qn::Tree<3> units{device, {qn::pointer(8), qn::dense(2)}, {.shape = {15, 16, 16}}};
  auto u = units.field<int>(3);
  u.set(14, 5, 9, 4);  // of its unit of eight the shape cuts four
  qn::Tree<3> lists{device, {qn::dense(4, 4, 1), qn::dynamic(50, 4)}};
  auto v = lists.field<int64_t>(-1);
  v.set(2, 3, 5, 8);
  qn::write_vdb(folder / "a.vdb", {{"units", u}, {"lists", v}});
  const vdb::GridPtrVec grids = grids_of(folder / "a.vdb");
  REQUIRE(grids.size() == 2);  // by name
  expect_elements<vdb::Int32Grid>(
      *vdb::gridPtrCast<vdb::Int32Grid>(grids[1]),
      std::map<Spot, int>{{{14, 4, 8}, 3}, {{14, 4, 9}, 3}, {{14, 5, 8}, 3}, {{14, 5, 9}, 4}});
  std::map<Spot, int64_t> list;
  for (int k = 0; k < 6; k++) list[{2, 3, k}] = k == 5 ? 8 : -1;
  expect_elements<vdb::Int64Grid>(*vdb::gridPtrCast<vdb::Int64Grid>(grids[0]), list);
  CHECK(grids[0]->transform() == *vdb::math::Transform::createLinearTransform(1.0));
}

TEST_CASE("every number that a float can be is kept") {
  const qn::Device device("interpreter");
  Folder folder;
  const float nan = std::bit_cast<float>(0x7fc12345u), inf = std::numeric_limits<float>::infinity();
  const std::map<Spot, float> elements = {{{0, 0, 0}, nan},
                                          {{0, 0, 1}, -0.0f},
                                          {{0, 0, 2}, inf},
                                          {{0, 1, 0}, 0.0f},
                                          {{0, 2, 0}, 1e-45f}};
  auto grid = vdb::FloatGrid::create(0.0f);
  for (const auto& [at, value] : elements) grid->tree().setValue({at[0], at[1], at[2]}, value);
  write_by_openvdb(folder / "a.vdb", {grid});
  const auto read = qn::read_vdb(device, folder / "a.vdb").grid<float>("");
  qn::write_vdb(folder / "b.vdb", {{"", read.field}});
  expect_elements(*vdb::gridPtrCast<vdb::FloatGrid>(grids_of(folder / "b.vdb").at(0)), elements);
}

TEST_CASE("active tiles become elements, and what is inactive and no background is counted") {
  Folder folder;
  auto grid = vdb::Int32Grid::create(5);
  grid->tree().addTile(1, {8, -8, 16}, 6, true);    // in place of a leaf
  grid->tree().addTile(2, {-128, 0, 0}, 5, true);   // of 128³
  grid->tree().addTile(1, {512, 0, 0}, 9, false);   // 512 elements that are dropped
  grid->tree().addTile(1, {520, 0, 0}, 5, false);   // the background
  grid->tree().addTile(3, {4096, 0, 0}, 9, false);  // 4096³
  grid->tree().setValueOff({0, 100, 0}, 7);         // one
  grid->tree().setValue({0, 100, 1}, 5);
  write_by_openvdb(folder / "a.vdb", {grid});
  on_every_device([&](const qn::Device& device) {
    const qn::VdbFile file = qn::read_vdb(device, folder / "a.vdb");
    const auto read = file.grid<int>("");
    CHECK(read.dropped == 512 + 1 + (int64_t(1) << 36));
    CHECK(read.tree.active_count() == 512 + 128 * 128 * 128 + 1);
    CHECK(read.field.at(15, -1, 23) == 6);
    CHECK(read.field.at(16, -1, 23) == 5);
    CHECK(read.field.at(0, 100, 0) == 5);
    int line = 0;
    const std::string text = error_of([&] { file.grid<int>("", 1'000'000); }, &line);
    CHECK(line == __LINE__ - 1);
    CHECK_THAT(text, contains("has more than 1000000 active elements"));
  });
  auto all = vdb::FloatGrid::create(0.0f);
  all->tree().addTile(3, {0, 0, 0}, 1.0f, true);
  write_by_openvdb(folder / "all.vdb", {all});
  const qn::Device device("interpreter");
  CHECK_THAT(error_of([&] { qn::read_vdb(device, folder / "all.vdb").grid<float>(""); }),
             contains("more than 1073741824 active elements"));
}

TEST_CASE("a level set is the same after it was a field") {
  Folder folder;
  auto sphere = vdb::tools::createLevelSetSphere<vdb::FloatGrid>(20.0f, {3.0f, -2.0f, 30.0f}, 0.5f);
  sphere->setName("sphere");
  write_by_openvdb(folder / "a.vdb", {sphere});
  on_every_device([&](const qn::Device& device) {
    const auto read = qn::read_vdb(device, folder / "a.vdb").grid<float>("sphere");
    CHECK(read.tree.active_count() == int64_t(sphere->activeVoxelCount()));
    CHECK(read.dropped > 0);
    CHECK(read.info.grid_class == qn::GridClass::level_set);
    qn::write_vdb(folder / "b.vdb", {{"sphere", read.field, read.info}});
    const auto again = vdb::gridPtrCast<vdb::FloatGrid>(grids_of(folder / "b.vdb").at(0));
    REQUIRE(again);
    CHECK(again->getGridClass() == vdb::GRID_LEVEL_SET);
    CHECK(again->background() == sphere->background());
    CHECK(again->transform() == sphere->transform());
    auto a = sphere->getConstAccessor(), b = again->getConstAccessor();
    const vdb::CoordBBox box = sphere->evalActiveVoxelBoundingBox();
    int64_t wrong = 0, inside = 0;
    for (auto i = box.begin(); i; ++i) {
      wrong += a.isValueOn(*i) != b.isValueOn(*i) || !same_bits(a.getValue(*i), b.getValue(*i));
      inside += !a.isValueOn(*i) && a.getValue(*i) < 0;
    }
    CHECK(wrong == 0);
    CHECK(inside > 0);
    CHECK(b.getValue({1000, 0, 0}) == sphere->background());
  });
}

TEST_CASE("masks are bools, trees may be shared, and names come more than once") {
  Folder folder;
  const qn::Device device("interpreter");
  auto mask = vdb::MaskGrid::create();
  mask->setName("mask");
  mask->tree().setValueOn({1, 2, 3});
  auto first = vdb::FloatGrid::create(1.0f);
  first->setName("twice");
  first->tree().setValue({4, 5, 6}, 2.0f);
  auto shared = vdb::gridPtrCast<vdb::FloatGrid>(first->copyGrid());  // the same tree
  shared->setTransform(vdb::math::Transform::createLinearTransform(0.25));
  auto halves = vdb::FloatGrid::create();
  halves->setName("half");
  halves->setSaveFloatAsHalf(true);
  halves->tree().setValue({7, 0, 0}, 0.1f);
  write_by_openvdb(folder / "a.vdb", {mask, first, shared, halves});
  const qn::VdbFile file = qn::read_vdb(device, folder / "a.vdb");
  CHECK(file.names() == std::vector<std::string>{"mask", "twice[0]", "twice[1]", "half"});
  const auto m = file.grid<bool>("mask");
  CHECK((m.tree.active_count() == 1 && m.field.at(1, 2, 3) && !m.field.at(1, 2, 4)));
  for (const char* name : {"twice[0]", "twice[1]"}) {
    const auto read = file.grid<float>(name);
    CHECK((read.tree.active_count() == 1 && read.field.at(4, 5, 6) == 2.0f));
    CHECK(read.info.transform ==
          qn::uniform_transform(name == std::string("twice[0]") ? 1.0 : 0.25));
  }
  CHECK(file.grid<float>("half").field.at(7, 0, 0) == 0.0999755859375f);  // the nearest half

  // A stream's file has no table of where grids are.
  std::ofstream out(folder / "stream.vdb", std::ios::binary);
  vdb::io::Stream(out).write(vdb::GridPtrVec{mask, first});
  out.close();
  CHECK(qn::read_vdb(device, folder / "stream.vdb").grid<float>("twice").field.at(4, 5, 6) == 2);
}

TEST_CASE("the transform of elements that Voxels places has its centres") {
  CHECK(qn::transform_of({.size = 0.5f, .origin = {1, 2, -1}}) ==
        qn::uniform_transform(0.5, {1.25, 2.25, -0.75}));
  const qn::Device device("interpreter");
  Folder folder;
  qn::Tree<3> tree{device, {qn::pointer(4), qn::bitmasked(8)}};
  qn::Field<qn::Vec<float, 3>> points{device, {1}};
  points.set(0, {2.3f, 4.1f, 0.2f});
  const qn::Voxels<3> voxels{.size = 0.5f, .origin = {1, 2, -1}};
  tree.build_from(points, voxels);
  auto u = tree.field<float>();
  qn::write_vdb(folder / "a.vdb", {{"u", u, {qn::transform_of(voxels)}}});
  const auto grid = vdb::gridPtrCast<vdb::FloatGrid>(grids_of(folder / "a.vdb").at(0));
  // OpenVDB finds the point nearest to the centre of the element that it lies in.
  const vdb::Coord at = grid->transform().worldToIndexCellCentered(vdb::Vec3d(2.3, 4.1, 0.2));
  CHECK(grid->tree().isValueOn(at));
}
