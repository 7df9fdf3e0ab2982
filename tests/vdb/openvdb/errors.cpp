// Files and grids that are refused: at the caller's line, with the file and what is wrong.
#include <openvdb/math/Maps.h>

#include "tests/vdb/openvdb/grids.h"

namespace {

struct Sample {
  qn::Device device{"interpreter"};
  qn::Tree<3> tree{device, {qn::pointer(8), qn::bitmasked(8)}};
  qn::Field<float, 3> u = tree.field<float>(1.5f);
  Folder folder;
  std::string path = folder / "a.vdb";
  Sample() {
    u.set(3, 4, 5, 6.0f);
    qn::write_vdb(path, {{"u", u}, {"same", u}});
  }
  /// The error of reading a file of these bytes as a grid of floats.
  std::string reading(const std::string& bytes) {
    const std::string bad = folder.file("bad", bytes);
    int line = 0;
    std::string text = error_of(
        [&] {
          auto file = qn::read_vdb(device, bad);
          file.grid<float>("u");
        },
        &line);
    if (!text.empty()) CHECK_THAT(text, contains("cannot read '" + bad + "': "));
    return text;
  }
};

}  // namespace

TEST_CASE("files that are none, or cut off, are refused") {
  Sample s;
  const std::string good = bytes_of(s.path);
  CHECK(s.reading(good) == "");
  CHECK_THAT(s.reading(""), contains("it is no file of OpenVDB's or NanoVDB's"));
  CHECK_THAT(s.reading("some text that is long enough"), contains("it is no file of OpenVDB's"));
  for (size_t length = 8; length < good.size() / 2; length += good.size() / 60)
    CHECK(s.reading(good.substr(0, length)) != "");
  CHECK_THAT(s.reading(good.substr(0, 60)), contains("it is damaged or cut off"));
  int line = 0;
  CHECK_THAT(error_of([&] { qn::read_vdb(s.device, s.folder / "absent.vdb"); }, &line),
             contains("cannot open '" + s.folder / "absent.vdb" + "'"));
  CHECK(line == __LINE__ - 2);
}

TEST_CASE("grids that are not there, or of another type, are refused") {
  Sample s;
  auto points = vdb::Vec3SGrid::create();
  points->setName("v");
  auto frustum = vdb::FloatGrid::create();
  frustum->setName("frustum");
  frustum->setTransform(vdb::math::Transform::createFrustumTransform(
      vdb::BBoxd({0, 0, 0}, {9, 9, 9}), 0.5, 10.0, 0.5));
  auto far = vdb::FloatGrid::create();
  far->setName("far");
  far->tree().setValue({1 << 30, 0, 0}, 1.0f);
  write_by_openvdb(s.path, {points, frustum, far});
  const qn::VdbFile file = qn::read_vdb(s.device, s.path);
  int line = 0;
  CHECK_THAT(
      error_of([&] { file.grid<float>("w"); }, &line),
      contains("cannot read '" + s.path + "': it has no grid 'w'; it has 'v', 'frustum', 'far'"));
  CHECK(line == __LINE__ - 3);
  CHECK_THAT(error_of([&] { file.grid<float>("v"); }),
             contains("elements of 'v' are vec3s where those of the field are float"));
  CHECK_THAT(error_of([&] { file.grid<float>("frustum"); }),
             contains("'frustum' has a transform that is not linear"));
  CHECK_THAT(error_of([&] { file.grid<float>("far"); }),
             contains("'far' has active elements at indices outside of -2^30 to 2^30 - 2"));
}

TEST_CASE("what cannot be written is refused, and the old file stays") {
  Sample s;
  const std::string good = bytes_of(s.path);
  int line = 0;
  const auto refused = [&](std::initializer_list<qn::NamedGrid> grids) {
    return error_of([&] { qn::write_vdb(s.path, grids); }, &line);
  };
  CHECK_THAT(refused({{"u", s.u}, {"u", s.u}}), contains("two grids are called 'u'"));
  CHECK(line == __LINE__ - 3);
  CHECK_THAT(refused({{"d", qn::Field<float, 3>{s.device, {2, 2, 2}}}}),
             contains("'d' is on no tree; grids are fields on trees"));
  CHECK_THAT(refused({{"u", s.u.slice(0, 1, 3)}}), contains("a view for 'u'"));
  CHECK_THAT(refused({{"u", s.u, {{{}, {{{1, 0, 0}, {0, 1, 0}, {0, 2, 0}}}}}}}),
             contains("cannot write '" + s.path + "': "));
  auto b = s.tree.field<int>(1);
  CHECK_THAT(refused({{"b", b, {{}, qn::GridClass::level_set}}}),
             contains("the level set 'b' has elements of type int32; they are float or double"));
  auto zero = s.tree.field<float>(0);
  CHECK_THAT(refused({{"z", zero, {{}, qn::GridClass::level_set}}}),
             contains("the level set 'z' has the background 0"));
  qn::Tree<3> world{s.device,
                    {qn::hash(), qn::bitmasked(8)},
                    {.shape = {int64_t(1) << 40, 8, 8}, .offset = {-(int64_t(1) << 39), 0, 0}}};
  auto w = world.field<float>();
  w.set(int64_t(1) << 33, 1, 1, 1.0f);
  CHECK_THAT(refused({{"w", w}}), contains("outside"));
  CHECK(bytes_of(s.path) == good);
  CHECK(s.folder.files() == 1);

  CHECK_THAT(error_of([&] { qn::write_vdb("/dev/full", {{"u", s.u}}); }),
             contains("cannot write '/dev/full'"));
  CHECK_THAT(error_of([&] { qn::write_vdb(s.folder / "no/a.vdb", {{"u", s.u}}); }),
             contains("cannot write '" + s.folder / "no/a.vdb"));
  CHECK_THAT(error_of([&] {
               qn::Kernel inside = [&] { qn::write_vdb(s.path, {{"u", s.u}}); };
               inside();
             }),
             contains("writing grids happens once"));
}
