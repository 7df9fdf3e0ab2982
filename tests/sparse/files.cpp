// Trees written to files and read back; what the bytes are; files that are none.
#include <quern/sparse/files.h>

#include <cstring>

#include "tests/files/support.h"
#include "tests/sparse/places.h"

using namespace qn::lang;
using Catch::Matchers::Contains;

namespace {

template <class T>
std::string little(T v) {
  std::string s(sizeof v, '\0');
  for (size_t k = 0; k < sizeof v; k++) s[k] = char(uint64_t(v) >> (8 * k) & 0xff);
  return s;
}
/// FNV-1a of words of 64 bits, the last one filled up by zeros, each folded.
std::string sealed(std::string bytes) {
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    for (size_t k = 0; k < 8 && at + k < bytes.size(); k++)
      word |= uint64_t(uint8_t(bytes[at + k])) << (8 * k);
    sum = (sum ^ word) * 0x100000001b3;
    sum ^= sum >> 32;
  }
  return bytes + little(sum);
}

template <int N>
void check_files(const qn::Device& device, const qn::Device& other) {
  std::mt19937 random(N);
  Folder folder;
  on_every_tree<N>(device, [&](const Kernels<N>& k, const Levels& kind) {
    const qn::Tree<N> tree = tree_of<N>(device, kind);
    auto u = tree.template field<int>(-7);
    auto v = tree.template field<qn::Vec<double, 2>>({0.5, -1}, qn::aos);
    k.write(device, u, values_at<N>(random_places<N>(random, 30)));
    qn::Kernel derive = [&] {
      for (auto i : u.indices()) {
        v[i][0] = cast<double>(u[i]) * 0.25;
        v[i][1] = -cast<double>(u[i]);
      }
    };
    derive();
    const Elements<N> expected = k.elements(device, u);
    qn::write_tree(folder / "tree", tree, {{"number", u}, {"pair", v}});

    // The same content behind a detour, from other slots: the same bytes.
    const qn::Tree<N> detour = tree_of<N>(device, kind, 2);
    auto w = detour.template field<int>(-7);
    k.write(device, w, values_at<N>(random_places<N>(random, 40)));
    detour.clear();
    detour.merge(tree);
    auto x = detour.copy_of(u);
    auto y = detour.copy_of(v);
    qn::write_tree(folder / "detour", detour, {{"number", x}, {"pair", y}});
    CHECK(bytes_of(folder / "detour") == bytes_of(folder / "tree"));

    const qn::TreeFile<N> file = qn::read_tree<N>(other, folder / "tree");
    CHECK(file.names() == std::vector<std::string>{"number", "pair"});
    auto a = file.template field<int>("number");
    CHECK(k.elements(other, a) == expected);
    // What happens to the tree meanwhile changes nothing of what is read.
    file.tree().dilate(1);
    file.tree().shrink();
    auto b = file.template field<qn::Vec<double, 2>>("pair");
    qn::Field<int, 0> wrong{other}, seen{other};
    qn::Kernel compare = [&] {
      for (auto i : b.indices()) {
        Val<bool> was = b[i][1] != -1.0;
        seen() += cast<int>(was);
        wrong() += cast<int>(
            was && (b[i][1] != -cast<double>(a[i]) || b[i][0] != cast<double>(a[i]) * 0.25));
      }
    };
    compare();
    CHECK(seen.at({}) == int(expected.size()));
    CHECK(wrong.at({}) == 0);
    // Written on the other device: the same bytes again.
    const qn::TreeFile<N> again = qn::read_tree<N>(other, folder / "tree");
    qn::write_tree(folder / "again", again.tree(),
                   {{"number", again.template field<int>("number")},
                    {"pair", again.template field<qn::Vec<double, 2>>("pair")}});
    CHECK(bytes_of(folder / "again") == bytes_of(folder / "tree"));
  });
}

}  // namespace

TEST_CASE("a tree is what it was when its file is read, on any device") {
  on_every_device([](const qn::Device& device) {
    const qn::Device other("interpreter");
    check_files<1>(device, other);
    check_files<2>(device, other);
    check_files<3>(other, device);
    check_files<4>(device, device);
  });
}

TEST_CASE("a tree's file has the bytes that its description says") {
  Folder folder;
  on_every_device([&](const qn::Device& device) {
    qn::Tree<2> tree{
        device, {qn::pointer(2, 3), qn::bitmasked(2, 4)}, {.shape = {4, 11}, .offset = {-1, 5}}};
    auto u = tree.field<float>(1.5f);
    auto b = tree.field<qn::Vec<uint8_t, 2>>({7, 8}, qn::aos);
    u.set(2, 15, 4.0f);   // position (3, 10): cell (2, 8), element (1, 2)
    u.set(-1, 6, 2.0f);   // position (0, 1): cell (0, 0), element (0, 1)
    b.set(0, 5, {1, 2});  // position (1, 0): cell (0, 0), element (1, 0)
    qn::write_tree(folder / "t", tree, {{"u", u}, {"by", b}});
    std::string bytes = "QNTREE\r\n" + little(1u) + little(2u);
    bytes += little(int64_t(4)) + little(int64_t(-1)) + little(int64_t(11)) + little(int64_t(5));
    bytes += little(2u) + little(2u) + little(2) + little(3) + little(1u) + little(2) + little(4);
    bytes += little(uint64_t(2)) + little(8u);
    bytes += little(int64_t(0)) + little(int64_t(0)) + little(int64_t(2)) + little(int64_t(8));
    bytes += little(1u << 1 | 1u << 4) + little(1u << 6);
    bytes += little(2u);
    bytes += little(1u) + "u" + little(1u) + char(11) + little(0x3fc00000u);
    bytes += little(0x40000000u) + little(0x3fc00000u) + little(0x40800000u);  // 2, 1.5, 4
    bytes += little(2u) + "by" + little(2u) + char(6) + char(6) + char(7) + char(8);
    bytes += std::string{7, 1, 7} + std::string{8, 2, 8};
    CHECK(bytes_of(folder / "t") == sealed(bytes));
  });
}

TEST_CASE("a tree of lists without an end has the bytes that its description says") {
  Folder folder;
  const int64_t far = int64_t(1) << 40;
  on_every_device([&](const qn::Device& device) {
    qn::Tree<2> tree{device,
                     {qn::hash(), qn::dense(2, 1), qn::dynamic(9, 4)},
                     {.shape = {2 * far, 9}, .offset = {-far, 0}}};
    auto u = tree.field<int16_t>(7);
    u.set(far - 1, 5, 3);  // five of 7 before it: two chunks
    u.set(-far, 0, 4);
    qn::write_tree(folder / "t", tree, {{"u", u}});
    const auto wide = [](int64_t n) { return little(n); };
    std::string bytes = "QNTREE\r\n" + little(1u) + little(2u);
    bytes += wide(2 * far) + wide(-far) + wide(9) + wide(0);
    bytes += little(3u) + little(3u) + little(0) + little(0);
    bytes += little(0u) + little(2) + little(1);
    bytes += little(4u) + little(1) + little(9) + little(4);
    bytes += little(uint64_t(3)) + little(4u);
    bytes += wide(0) + wide(0) + wide(2 * far - 1) + wide(0) + wide(2 * far - 1) + wide(4);
    bytes += little(1u) + little(4u) + little(2u);
    bytes += little(1u) + little(1u) + "u" + little(1u) + char(3) + little(int16_t(7));
    for (int v : {4, 7, 7, 7, 7, 7, 3}) bytes += little(int16_t(v));
    CHECK(bytes_of(folder / "t") == sealed(bytes));

    const auto file = qn::read_tree<2>(device, folder / "t");
    CHECK(qn::same_activity(file.tree(), tree));
    auto v = file.field<int16_t>("u");
    CHECK((v.at(far - 1, 5) == 3 && v.at(far - 1, 4) == 7 && v.at(-far, 0) == 4));
    qn::Kernel add = [&](I64 i) { append(v, i, cast<int16_t>(9)); };
    add(far - 1);
    CHECK(file.tree().active_count() == 8);
    CHECK(v.at(far - 1, 6) == 9);
  });
}

TEST_CASE("files of lists and of trees without an end that do not fit are refused") {
  Folder folder;
  qn::Device device("interpreter");
  qn::Tree<2> tree{device, {qn::hash(), qn::dynamic(9, 4)}};
  auto u = tree.field<int>();
  u.set(-5, 5, 3);
  qn::write_tree(folder / "t", tree);
  const std::string good = bytes_of(folder / "t"), content = good.substr(0, good.size() - 8);
  const auto refused = [&](size_t at, uint32_t number) {
    std::string changed = content;
    changed.replace(at, 4, little(number));
    const std::string bad = folder.file("bad", sealed(changed));
    int line = 0;
    const std::string text = error_of([&] { qn::read_tree<2>(device, bad); }, &line);
    CHECK(line == __LINE__ - 1);
    CHECK_THAT(text, Contains("cannot read '" + bad + "': "));
    return text;
  };
  // Levels are at 52: kind, two extents; and at 64 kind, two extents, the chunk.
  CHECK(qn::read_tree<2>(device, folder / "t").tree().active_count() == 6);
  CHECK_THAT(refused(56, 1), Contains("its hash level has extents"));
  CHECK_THAT(refused(64, 5), Contains("a level of the unknown kind 5"));
  CHECK_THAT(refused(64, 3), Contains("extents"));
  CHECK_THAT(refused(52, 4), Contains("lists are along the last axis alone"));
  CHECK_THAT(refused(68, 2), Contains("lists are along the last axis alone"));
  CHECK_THAT(refused(72, 0), Contains("extent 0"));
  CHECK_THAT(refused(76, 0), Contains("its levels make cells of 0 elements"));
  CHECK_THAT(refused(88, 5), Contains("its levels make cells of 4 elements"));
  // Two chunks' places at 92, and how many they have at 124.
  CHECK_THAT(refused(92, 1), Contains("its cells are not those of a tree"));
  CHECK_THAT(refused(104, 1u << 30), Contains("its cells are not those of a tree"));
  CHECK_THAT(refused(124, 5), Contains("a chunk of 4 elements has 5"));
  CHECK_THAT(refused(124, 3), Contains("its cells are not those of a tree"));
  CHECK_THAT(refused(128, 0), Contains("its cells are not those of a tree"));
  CHECK(refused(28, 1u << 31) != "");  // the last byte of an extent: it is below 0
  for (size_t length = 0; length + 4 < content.size(); length += 4) {
    const std::string bad = folder.file("bad", sealed(content.substr(0, length)));
    CHECK_THAT(error_of([&] { qn::read_tree<2>(device, bad); }), Contains("cannot read"));
  }
}

TEST_CASE("what a file of lists takes of the host is bounded by its length") {
  Folder folder;
  qn::Device device("interpreter");
  // Lists of one element each, but for the second.
  const auto file_of = [&](int lists, int chunk, int64_t second, uint32_t length) {
    std::string bytes = "QNTREE\r\n" + little(1u) + little(2u);
    bytes += little(int64_t(lists)) + little(int64_t(0));
    bytes += little(int64_t(4) * chunk) + little(int64_t(0));
    bytes += little(3u) + little(2u) + little(lists) + little(1);
    bytes += little(0u) + little(1) + little(1);
    bytes += little(4u) + little(1) + little(4 * chunk) + little(chunk);
    bytes += little(uint64_t(lists)) + little(uint32_t(chunk));
    for (int k = 0; k < lists; k++)
      bytes += little(int64_t(k)) + little(k == 1 ? second : int64_t(0));
    for (int k = 0; k < lists; k++) bytes += little(k == 1 ? length : 1u);
    return folder.file("t", sealed(bytes + little(0u)));
  };
  const auto tree = qn::read_tree<2>(device, file_of(20, 8, 0, 3)).tree();
  CHECK(tree.active_count() == 22);
  qn::write_tree(folder / "again", tree);
  CHECK(bytes_of(folder / "again") == bytes_of(folder / "t"));

  // A chunk that stands alone would have all before it made; and a bit for each element of all these would
  // be 100 GB.
  const int large = 1 << 24;
  const auto refused = [&](int lists, int64_t second, uint32_t length) {
    const std::string path = file_of(lists, large, second, length);
    CHECK_THAT(error_of([&] { qn::read_tree<2>(device, path); }),
               Contains("its cells are not those of a tree"));
  };
  refused(50'000, large, 1);
  refused(50'000, 3 * int64_t(large), 1);
  refused(50'000, 0, 0);
  refused(2, 1, 1);
}

TEST_CASE("trees without fields and without elements are written and read") {
  Folder folder;
  on_every_device([&](const qn::Device& device) {
    qn::Tree<2> bare{device, {qn::pointer(4), qn::dense(4)}};
    qn::write_tree(folder / "t", bare);
    CHECK(qn::read_tree<2>(device, folder / "t").tree().active_count() == 0);
    qn::Tree<1> none{device, {qn::pointer(4)}, {.shape = {0}}};
    auto e = none.field<int>();
    qn::write_tree(folder / "t", none, {{"e", e}});
    CHECK(qn::read_tree<1>(device, folder / "t").field<int>("e").size() == 0);
    qn::Tree<1> dense{device, {qn::dense(40)}, {.shape = {37}}};
    auto u = dense.field<bool>(true);
    u.set(36, false);
    qn::write_tree(folder / "t", dense, {{"u", u}});
    auto read = qn::read_tree<1>(device, folder / "t").field<bool>("u");
    CHECK((read.at(35) && !read.at(36)));
  });
}

TEST_CASE("files that are no trees are refused, and files that cannot be written stay") {
  Folder folder;
  qn::Device device("interpreter");
  qn::Tree<2> tree{device, {qn::pointer(4), qn::bitmasked(4)}};
  auto u = tree.field<float>(1.5f);
  auto v = tree.field<qn::Vec<float, 3>>();
  u.set(3, 3, 1.0f);
  const std::string path = folder / "t";
  qn::write_tree(path, tree, {{"u", u}, {"v", v}});
  const std::string good = bytes_of(path);
  const auto refused = [&](const std::string& bytes) {
    int line = 0;
    const std::string bad = folder.file("bad", bytes);
    const std::string text = error_of([&] { qn::read_tree<2>(device, bad); }, &line);
    CHECK(line == __LINE__ - 1);
    CHECK_THAT(text, Contains("cannot read '" + bad + "'"));
    return text;
  };
  for (size_t length = 0; length < good.size(); length++) refused(good.substr(0, length));
  CHECK_THAT(refused(""), Contains("it is no file of a tree"));
  CHECK_THAT(refused(good.substr(0, 10)), Contains("it is cut off"));
  CHECK_THAT(refused(good.substr(0, good.size() - 1)), Contains("it is damaged or cut off"));
  CHECK_THAT(refused(good + "x"), Contains("it is damaged"));
  for (size_t at = 12; at < good.size(); at++) {
    std::string flipped = good;
    flipped[at] = char(flipped[at] ^ 1);
    CHECK_THAT(refused(flipped), Contains("it is damaged"));
  }
  // What is sealed and wrong all the same.
  const std::string content = good.substr(0, good.size() - 8);
  std::string later = content;
  later[8] = 2;
  CHECK_THAT(refused(sealed(later)), Contains("it has format version 2; version 1 is read"));
  CHECK_THAT(refused(sealed(content + "x")), Contains("bytes follow its content"));
  CHECK_THAT(refused(sealed(content.substr(0, content.size() - 4))), Contains("it is cut off"));
  std::string moved = content;
  moved[88] = 1;  // the cell's position
  CHECK_THAT(refused(sealed(moved)), Contains("its cells are not those of a tree"));
  std::string kind = content;
  kind[52] = 9;
  CHECK_THAT(refused(sealed(kind)), Contains("a level of the unknown kind 9"));
  std::string wide = content;
  wide[84] = 17;
  CHECK_THAT(refused(sealed(wide)), Contains("its levels make cells of 16 elements"));

  CHECK_THAT(error_of([&] { qn::read_tree<3>(device, path); }),
             Contains("it holds a tree of 2 axes where one of 3 is read"));
  CHECK_THAT(error_of([&] { qn::read_tree<2>(device, folder / "absent"); }),
             Contains("cannot open"));
  const auto file = qn::read_tree<2>(device, path);
  CHECK_THAT(error_of([&] { file.field<float>("w"); }),
             Contains("it has no field 'w'; it has 'u', 'v'"));
  CHECK_THAT(
      error_of([&] { file.field<int>("u"); }),
      Contains("elements of 'u' consist of (f32) where those of the field consist of (i32)"));
  CHECK_THAT(error_of([&] { file.field<float>("v"); }), Contains("consist of (f32, f32, f32)"));

  CHECK_THAT(error_of([&] { qn::write_tree("/dev/full", tree, {{"u", u}}); }),
             Contains("cannot write '/dev/full'"));
  CHECK_THAT(error_of([&] { qn::write_tree(folder / "no/t", tree); }), Contains("cannot write"));
  CHECK_THAT(error_of([&] { qn::write_tree(path, tree, {{"u", u}, {"u", v}}); }),
             Contains("two fields called 'u'"));
  CHECK_THAT(error_of([&] { qn::write_tree(path, tree, {{"u", u.slice(0, 1, 3)}}); }),
             Contains("a view for 'u'"));
  CHECK_THAT(error_of([&] { qn::write_tree(path, tree, {{"v", v.component(0)}}); }),
             Contains("a view for 'v'"));
  CHECK_THAT(
      error_of([&] { qn::write_tree(path, tree, {{"o", qn::Field<float, 2>{device, {2, 2}}}}); }),
      Contains("not on this tree"));
  u.release();
  CHECK_THAT(error_of([&] { qn::write_tree(path, tree, {{"u", u}}); }), Contains("released"));
  CHECK(bytes_of(path) == good);
  CHECK(folder.files() == 2);  // and the bad one
}
