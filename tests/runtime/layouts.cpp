// Where elements lie, views, host copies, wrapped memory: against plain C++ that knows the layout.
#include <cstring>
#include <map>
#include <random>

#include "quern/ir/text.h"
#include "quern/runtime/program.h"
#include "tests/catch.h"

using namespace quern;
using runtime::Device;
using runtime::Element;
using runtime::Storage;

namespace {

constexpr Loc here{"user.cpp", 42};
/// Those of these back ends that the build has.
const std::vector<const char*> devices = [] {
  std::vector<const char*> built;
  for (const char* name : {"cpu", "interpreter", "vulkan"})
    for (const runtime::Backend& b : runtime::backends())
      if (b.name == name) built.push_back(name);
  return built;
}();

/// A struct with a hole behind `b`.
struct Cell {
  float a = 0;
  uint8_t b = 0;
  double c = 0;
  bool operator==(const Cell&) const = default;
};
const std::vector<ir::Storage> cell = {
    {ir::Type::f32, ir::Type::f32}, {ir::Type::u8, ir::Type::u8}, {ir::Type::f64, ir::Type::f64}};
const Element cell_element = {sizeof(Cell),
                              {offsetof(Cell, a), offsetof(Cell, b), offsetof(Cell, c)}};
const std::vector<ir::Storage> floats = {{ir::Type::f32, ir::Type::f32}};

using Index = std::vector<int64_t>;

int64_t volume(const Index& shape) {
  int64_t n = 1;
  for (int64_t e : shape) n *= e;
  return n;
}

/// All indices of a shape in row-major order.
std::vector<Index> indices(const Index& shape) {
  std::vector<Index> all;
  for (int64_t k = 0; k < volume(shape); k++) {
    Index i(shape.size());
    int64_t rest = k;
    for (size_t a = shape.size(); a-- > 0; rest /= shape[a]) i[a] = rest % shape[a];
    all.push_back(i);
  }
  return all;
}

Cell value_at(const Index& i) {
  double n = 0;
  for (int64_t k : i) n = n * 100 + double(k);
  return {float(n), uint8_t(int(n) % 251), -n};
}

std::vector<Cell> values(const Index& shape) {
  std::vector<Cell> all;
  for (const Index& i : indices(shape)) all.push_back(value_at(i));
  return all;
}

struct Named {
  const char* name;
  Layout layout;
};
const std::vector<Named> layouts2 = {
    {"soa", soa},
    {"aos", aos},
    {"column-major", order(1, 0)},
    {"column-major aos", order(1, 0).aos()},
    {"blocked", blocked(4, 8)},
    {"blocked, no powers of two", blocked(3, 5)},
    {"blocked aos", blocked(3, 5).aos()},
    {"aosoa", aosoa(2, 4)},
    {"aosoa column-major", aosoa(3, 4).order(1, 0)},
    {"one axis blocked", blocked(1, 8)},
    {"nested", blocked(2, 2).of(2, 4)},
    {"nested aosoa", blocked(2, 3).of(3, 2).aosoa()},
    {"Morton", blocked(4, 4).morton()},
    {"Morton, unequal, aos", blocked(2, 8).morton().aos()},
    {"blocks of Morton blocks, grouped", blocked(2, 3).of(4, 4).morton().aosoa()},
    {"large blocks", blocked(64, 64)},
};

std::string message(auto f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::vector<Cell> read_all(const Storage& s) {
  std::vector<Cell> all(size_t(s.size()));
  s.read(all.data(), 0, s.size());
  return all;
}

}  // namespace

TEST_CASE("host copies are row-major whatever the layout, whole and in part") {
  for (const char* name : devices) {
    auto device = Device::open(name);
    for (const Named& n : layouts2)
      for (const Index& shape :
           {Index{7, 9}, Index{1, 1}, Index{8, 16}, Index{0, 3}, Index{13, 1}}) {
        INFO(name << ", " << n.name << ", " << runtime::shape_text(shape));
        Storage s(device, cell, shape, here, n.layout, cell_element);
        std::vector<Cell> all = values(shape);
        s.write(all.data(), 0, s.size());
        CHECK(read_all(s) == all);
        if (s.size() < 12) continue;
        std::vector<Cell> few = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}, {13, 14, 15}};
        s.write(few.data(), 5, 5);
        std::copy(few.begin(), few.end(), all.begin() + 5);
        CHECK(read_all(s) == all);
        std::vector<Cell> part(6);
        s.read(part.data(), 3, 6);
        CHECK(part == std::vector<Cell>(all.begin() + 3, all.begin() + 9));
        std::vector<double> c(all.size());
        s.part(2, {8, {0}}, here)->read(c.data(), 0, s.size());
        for (size_t k = 0; k < c.size(); k++) REQUIRE(c[k] == all[k].c);
        Cell one{0.5f, 77, 1e300};
        s.fill(&one);
        CHECK(read_all(s) == std::vector<Cell>(all.size(), one));
      }
  }
}

TEST_CASE("aos has the bytes of the C++ struct, every other layout those of its definition",
          "[cpu]") {
  auto device = Device::open("cpu");
  const Index shape = {7, 9};
  auto raw = [&](const Storage& s, uint32_t component, int64_t byte) {
    return reinterpret_cast<const std::byte*>(s.base(component)) + byte;
  };
  auto f32_at = [&](const std::byte* at) {
    float v;
    std::memcpy(&v, at, 4);
    return v;
  };
  auto filled = [&](const Layout& layout) {
    auto s = std::make_unique<Storage>(device, cell, shape, here, layout, cell_element);
    std::vector<Cell> all = values(shape);
    s->write(all.data(), 0, s->size());
    return s;
  };
  auto structs = filled(aos);
  std::vector<Cell> all = values(shape);
  CHECK(structs->base(1) - structs->base(0) == offsetof(Cell, b));
  CHECK(structs->base(2) - structs->base(0) == offsetof(Cell, c));
  for (size_t k = 0; k < all.size(); k++) {
    Cell found;
    std::memcpy(&found, raw(*structs, 0, int64_t(k * sizeof(Cell))), sizeof found);
    REQUIRE(found == all[k]);
  }
  auto tiles = filled(blocked(4, 8));
  auto grouped = filled(aosoa(2, 4));
  auto nested = filled(blocked(2, 2).of(2, 4));
  auto morton = filled(blocked(4, 4).morton());
  auto columns = filled(order(1, 0));
  for (const Index& i : indices(shape)) {
    const int64_t y = i[0], x = i[1];
    const float v = value_at(i).a;
    REQUIRE(f32_at(raw(*columns, 0, 4 * (x * 7 + y))) == v);
    REQUIRE(f32_at(raw(*tiles, 0, 4 * (((y / 4) * 2 + x / 8) * 32 + (y % 4) * 8 + x % 8))) == v);
    // 8 floats, 8 bytes, 8 doubles
    REQUIRE(f32_at(raw(*grouped, 0, ((y / 2) * 3 + x / 4) * 104 + 4 * ((y % 2) * 4 + x % 4))) == v);
    const int64_t outer = (y / 4) * 2 + x / 8;
    const int64_t middle = (y % 4 / 2) * 2 + x % 8 / 4, inner = (y % 2) * 4 + x % 4;
    REQUIRE(f32_at(raw(*nested, 0, 4 * ((outer * 4 + middle) * 8 + inner))) == v);
    const int64_t z = (x & 1) | (y & 1) << 1 | (x & 2) << 1 | (y & 2) << 2;
    REQUIRE(f32_at(raw(*morton, 0, 4 * (((y / 4) * 3 + x / 4) * 16 + z))) == v);
  }
}

TEST_CASE("views show the elements they name, and write through") {
  const Index shape = {7, 9};
  for (const char* name : devices) {
    auto device = Device::open(name);
    for (const Named& n : layouts2) {
      INFO(name << ", " << n.name);
      bool blocks = n.layout.level_count > 0;
      Storage s(device, cell, shape, here, n.layout.offset(-1, 2), cell_element);
      std::vector<Cell> all = values(shape);
      s.write(all.data(), 0, s.size());
      auto expect = [&](const Storage& v, const Index& view_shape, auto source) {
        REQUIRE(v.shape() == view_shape);
        std::vector<Cell> wanted;
        for (const Index& i : indices(view_shape)) wanted.push_back(value_at(source(i)));
        CHECK(read_all(v) == wanted);
      };
      auto rows = s.slice(0, 1, 5, 1, here);
      expect(*rows, {4, 9}, [](Index i) { return Index{i[0] + 2, i[1]}; });
      auto inner = rows->slice(1, 3, 8, 1, here);
      expect(*inner, {4, 5}, [](Index i) { return Index{i[0] + 2, i[1] + 1}; });
      expect(*s.select(0, 3, here), {9}, [](Index i) { return Index{4, i[0]}; });
      expect(*s.select(1, 4, here), {7}, [](Index i) { return Index{i[0], 2}; });
      expect(*s.select(1, 4, here)->select(0, -1, here), {}, [](Index) { return Index{0, 2}; });
      const int64_t swapped[] = {1, 0}, firsts[] = {5, -5};
      expect(*s.transposed(swapped, here), {9, 7}, [](Index i) { return Index{i[1], i[0]}; });
      expect(*inner->transposed(swapped, here), {5, 4},
             [](Index i) { return Index{i[1] + 2, i[0] + 1}; });
      expect(*s.rebased(firsts, here), shape, [](Index i) { return i; });
      expect(*s.slice(0, 2, 2, 1, here), {0, 9}, [](Index i) { return i; });
      if (!blocks) {
        expect(*s.slice(1, 2, 11, 2, here), {7, 5}, [](Index i) { return Index{i[0], 2 * i[1]}; });
        expect(*s.flipped(1, here), shape, [](Index i) { return Index{i[0], 8 - i[1]}; });
        expect(*s.flipped(0, here)->slice(0, -1, 6, 3, here), {3, 9},
               [](Index i) { return Index{6 - 3 * i[0], i[1]}; });
      }
      Cell mark{-1, 1, -1};
      inner->fill(&mark);
      for (const Index& i : indices(shape))
        if (i[0] >= 2 && i[0] < 6 && i[1] >= 1 && i[1] < 6) all[size_t(i[0] * 9 + i[1])] = mark;
      CHECK(read_all(s) == all);
      auto doubles = s.part(2, {8, {0}}, here);
      std::vector<double> c(size_t(s.size()), 2.5);
      doubles->write(c.data(), 0, s.size());
      for (Cell& x : all) x.c = 2.5;
      CHECK(read_all(s) == all);
    }
  }
}

TEST_CASE("storage knows what may overlap: other halves of a field do not, views of one do",
          "[cpu]") {
  auto device = Device::open("cpu");
  for (const Named& n : layouts2) {
    if (n.layout.level_count > 0 || n.layout.axes.count) continue;
    INFO(n.name);
    Storage a(device, cell, {8, 8}, here, n.layout, cell_element);
    Storage b(device, cell, {8, 8}, here, n.layout, cell_element);
    CHECK_FALSE(a.overlaps(b));
    CHECK(a.overlaps(a));
    auto top = a.slice(0, 0, 4, 1, here), bottom = a.slice(0, 4, 8, 1, here);
    auto middle = a.slice(0, 3, 5, 1, here);
    CHECK_FALSE(top->overlaps(*bottom));
    CHECK(top->overlaps(*middle));
    CHECK(middle->overlaps(*bottom));
    CHECK(a.flipped(0, here)->overlaps(*top));
    CHECK_FALSE(top->flipped(0, here)->overlaps(*bottom));
    CHECK_FALSE(a.slice(0, 2, 2, 1, here)->overlaps(a));
  }
  Storage tiles(device, cell, {16, 16}, here, blocked(4, 4), cell_element);
  CHECK(tiles.slice(0, 0, 9, 1, here)->overlaps(*tiles.slice(0, 8, 16, 1, here)));
  CHECK_FALSE(tiles.slice(0, 0, 8, 1, here)->overlaps(*tiles.slice(0, 8, 16, 1, here)));
  std::vector<Cell> host(64);
  auto whole = Storage::wrap(device, cell, {64}, host.data(), here, aos, cell_element);
  auto half = Storage::wrap(device, cell, {32}, host.data() + 32, here, aos, cell_element);
  CHECK(whole->overlaps(*half));
  CHECK_FALSE(whole->slice(0, 0, 32, 1, here)->overlaps(*half));
}

TEST_CASE("swap exchanges whole fields of one layout, and views follow", "[cpu]") {
  auto device = Device::open("cpu");
  for (const Named& n : layouts2) {
    INFO(n.name);
    Storage a(device, cell, {7, 9}, here, n.layout, cell_element);
    Storage b(device, cell, {7, 9}, here, n.layout.offset(3, 4), cell_element);
    std::vector<Cell> all = values({7, 9});
    a.write(all.data(), 0, 63);
    auto row = a.select(0, 3, here);
    a.swap(b, here);
    CHECK(read_all(b) == all);
    CHECK(read_all(*row) == std::vector<Cell>(9));
    CHECK_THAT(message([&] { a.swap(*row, here); }), contains("view"));
    Storage other(device, cell, {7, 9}, here, blocked(5, 2).aos(), cell_element);
    CHECK_THAT(message([&] { a.swap(other, here); }), contains("user.cpp:42"));
    CHECK_THAT(message([&] { a.swap(other, here); }), contains("layouts"));
  }
}

TEST_CASE("wrapped memory is used in place", "[cpu][vulkan]") {
  for (const char* name : {"cpu", "interpreter"}) {
    auto device = Device::open(name);
    std::vector<Cell> host = values({6, 5});
    {
      auto s = Storage::wrap(device, cell, {6, 5}, host.data(), here, aos, cell_element);
      CHECK(read_all(*s) == values({6, 5}));
      Cell mark{1, 2, 3};
      std::memset(reinterpret_cast<char*>(&host[7]) + 5, 0x5a, 3);  // the hole
      s->fill(&mark);
      CHECK(host == std::vector<Cell>(30, mark));
      CHECK(reinterpret_cast<unsigned char*>(&host[7])[6] == 0x5a);  // is not ours
      s->release(here);
    }
    CHECK(host[29].c == 3);
    CHECK_THAT(message([&] { Storage::wrap(device, floats, {4}, nullptr, here); }),
               contains("null pointer"));
    char* odd = reinterpret_cast<char*>(host.data()) + 1;
    CHECK_THAT(message([&] { Storage::wrap(device, floats, {4}, odd, here); }),
               contains("aligned to the 4 bytes"));
    CHECK_THAT(message([&] { Storage::wrap(device, cell, {4}, host.data(), here, soa); }),
               contains("layout aos"));
    CHECK_THAT(message([&] { Storage::wrap(device, floats, {7}, host.data(), here, blocked(4)); }),
               contains("extent 7 of axis 0 is no multiple of 4"));
  }
  std::vector<float> host(4);
  std::string text =
      message([&] { Storage::wrap(Device::open("vulkan"), floats, {4}, host.data(), here); });
  CHECK_THAT(text, contains("user.cpp:42"));
  CHECK_THAT(text, contains("vulkan does not see the host's memory"));
}

TEST_CASE("memory is given back: by release, by the last of a field and its views") {
  for (const char* name : devices) {
    auto device = Device::open(name);
    const uint64_t before = device->allocated();
    {
      Storage a(device, cell, {1000}, here, soa, cell_element);
      CHECK(device->allocated() == before + 1000 * (4 + 1 + 8));
      Storage b(device, cell, {1000}, here, aos, cell_element);
      CHECK(device->allocated() == before + 1000 * (13 + sizeof(Cell)));
      auto view = b.slice(0, 0, 10, 1, here);
      a.release({"user.cpp", 50});
      CHECK(device->allocated() == before + 1000 * sizeof(Cell));
      CHECK_THAT(message([&] { view->release(here); }), contains("view"));
      b.release({"user.cpp", 51});
      CHECK(device->allocated() == before);
      CHECK_THAT(message([&] { view->expect_alive(here); }), contains("user.cpp:51"));
    }
    std::shared_ptr<Storage> row;
    {
      Storage c(device, floats, {10, 10}, here);
      row = c.select(0, 3, here);
    }
    CHECK(device->allocated() == before + 400);
    row.reset();
    CHECK(device->allocated() == before);
    CHECK_THAT(message([&] { Storage(device, cell, {1ll << 48}, here, aos, cell_element); }),
               contains("no memory"));
    CHECK(device->allocated() == before);
  }
}

TEST_CASE("layouts and views that make no sense are refused with their line", "[cpu]") {
  auto device = Device::open("cpu");
  auto make = [&](const Layout& layout) {
    return message([&] { Storage(device, cell, {7, 9}, here, layout, cell_element); });
  };
  const std::pair<Layout, const char*> wrong[] = {
      {blocked(8), "blocks for 1 axis, of a field with 2"},
      {blocked(4, 0), "blocks of 0 elements along axis 1"},
      {blocked(-4, 1), "blocks of -4 elements along axis 0"},
      {blocked(1 << 20, 1 << 20), "blocks of more than 2^30 elements"},
      {blocked(1 << 15, 1 << 15).of(2, 2), "blocks of more than 2^30 elements"},
      {blocked(6, 4).morton(), "6 elements along axis 0; that takes powers of two"},
      {soa.morton(), "Morton order is an order inside blocks"},
      {soa.aosoa(), "aosoa groups components inside blocks"},
      {order(0), "an order for 1 axis, of a field with 2"},
      {order(0, 0), "names each axis once, from 0 to 1"},
      {order(0, 2), "names each axis once, from 0 to 1"},
      {offset(1, 2, 3), "offsets for 3 axes, of a field with 2"},
      {offset(1, int64_t(1) << 31), "an offset of 2147483648; indices start within"},
      {blocked(1, 1).of(1, 1).of(1, 1).of(1, 1).of(1, 1).of(1, 1).of(1, 1), "at most 6 levels"},
  };
  for (const auto& [layout, says] : wrong) {
    CHECK_THAT(make(layout), contains(says));
    CHECK_THAT(make(layout), contains("user.cpp:42"));
  }
  // A packed struct.
  CHECK_THAT(message([&] { Storage(device, cell, {7}, here, aos, {13, {0, 4, 5}}); }),
             contains("13 bytes has a component of 4 bytes at byte 0, not aligned"));
  CHECK_THAT(
      message([&] { Storage(device, cell, {1ll << 30, 1ll << 30}, here, aos, cell_element); }),
      contains("2^63"));
  Storage s(device, cell, {7, 9}, here, offset(-1, 0), cell_element);
  auto view = [&](auto f) {
    std::string text = message(f);
    CHECK_THAT(text, contains("user.cpp:42"));
    return text;
  };
  CHECK_THAT(view([&] { s.slice(0, -2, 3, 1, here); }),
             contains("slice -2 … 3 of axis 0, whose indices go from -1 to below 6"));
  CHECK_THAT(view([&] { s.slice(1, 0, 10, 1, here); }), contains("from 0 to below 9"));
  CHECK_THAT(view([&] { s.slice(1, 5, 4, 1, here); }), contains("slice 5 … 4"));
  CHECK_THAT(view([&] { s.slice(1, 0, 4, -1, here); }), contains("flipped(axis)"));
  CHECK_THAT(view([&] { s.slice(1, 0, 4, 0, here); }), contains("steps are 1 or more"));
  CHECK_THAT(view([&] { s.slice(2, 0, 1, 1, here); }), contains("axis 2 of a field with 2"));
  CHECK_THAT(view([&] { s.select(0, 6, here); }), contains("index 6 of axis 0"));
  const int64_t twice[] = {1, 1}, far[] = {0, int64_t(1) << 31};
  CHECK_THAT(view([&] { s.transposed(twice, here); }), contains("once"));
  CHECK_THAT(view([&] { s.rebased(far, here); }), contains("±2^30"));
  Storage tiles(device, cell, {7, 9}, here, blocked(4, 4), cell_element);
  CHECK_THAT(view([&] { tiles.slice(0, 0, 7, 2, here); }), contains("only step 1 is possible"));
  CHECK_THAT(view([&] { tiles.flipped(1, here); }), contains("cannot be flipped"));
}

// ---- kernels

namespace {

/// p.c = (p.c + 3 q.a) at every index of p, q shifted by one along axis 1 where it has one; p.b
/// counts by an atomic; q.a of the mirrored index is read too.
const char* program = R"(quern 1
kernel @k level=structured modes=contract
binding field rank=2 f32, u8, f64 "p"
binding field rank=2 f32, u8, f64 "q"
body {
  %f0 = first<0.0> : i32
  %f1 = first<0.1> : i32
  %n0 = extent<0.0> : i32
  %n1 = extent<0.1> : i32
  %e0 = add %f0, %n0 : i32
  %e1 = add %f1, %n1 : i32
  parallel ordinal=0 %f0, %e0, %f1, %e1 {(%i: i32, %j: i32)
    %zero = constant<0> : i32
    %one = constant<1> : i32
    %g0 = first<1.0> : i32
    %g1 = first<1.1> : i32
    %di = sub %i, %f0 : i32
    %dj = sub %j, %f1 : i32
    %qi = add %di, %g0 : i32
    %qj = add %dj, %g1 : i32
    %a = load<1.0> %qi, %qj : f32
    %last = sub %n1, %one : i32
    %mirror = sub %last, %dj : i32
    %mj = add %mirror, %g1 : i32
    %m = load<1.0> %qi, %mj : f32
    %s = add %a, %m : f32
    %w = convert %s : f64
    %c = load<0.2> %i, %j : f64
    %r = add %c, %w : f64
    store<0.2> %i, %j, %r
    %u = constant<3> : u8
    %old = atomic.add<0.1> %i, %j, %u : u8
    yield
  }
  yield
})";

std::vector<Cell> expected(const std::vector<Cell>& p, const std::vector<Cell>& q,
                           const Index& shape) {
  std::vector<Cell> out = p;
  for (const Index& i : indices(shape)) {
    size_t at = size_t(i[0] * shape[1] + i[1]);
    size_t mirror = size_t(i[0] * shape[1] + shape[1] - 1 - i[1]);
    out[at].c += double(q[at].a + q[mirror].a);
    out[at].b = uint8_t(out[at].b + 3);
  }
  return out;
}

}  // namespace

TEST_CASE("a kernel gives the same whatever the layouts of its fields") {
  runtime::Program kernel(ir::parse(program));
  std::mt19937 random(7);
  const Index shape = {7, 9};
  const std::vector<Cell> all = values(shape);
  for (const char* name : devices) {
    auto device = Device::open(name);
    for (int trial = 0; trial < (std::string(name) == "interpreter" ? 60 : 25); trial++) {
      const Named& a = layouts2[random() % layouts2.size()];
      const Named& b = layouts2[random() % layouts2.size()];
      bool checked = random() % 2, offsets = random() % 2, sliced = random() % 2;
      INFO(name << ": " << a.name << ", " << b.name << (checked ? ", checked" : "")
                << (offsets ? ", offsets" : "") << (sliced ? ", sliced" : ""));
      auto make = [&](const Layout& l, int64_t f0, int64_t f1) {
        Index large = sliced ? Index{11, 12} : shape;
        Layout with = offsets ? l.offset(f0, f1) : l;
        auto s = std::make_shared<Storage>(device, cell, large, here, with, cell_element);
        if (sliced) {
          if (!offsets) f0 = f1 = 0;
          s = s->slice(0, f0 + 3, f0 + 10, 1, here)->slice(1, f1 + 1, f1 + 10, 1, here);
          const int64_t firsts[] = {f0, f1};
          if (offsets) s = s->rebased(firsts, here);
        }
        s->write(all.data(), 0, s->size());
        return s;
      };
      auto p = make(a.layout, -2, 5), q = make(b.layout, 100, -100);
      ir::Modes modes;
      modes.checked = checked;
      const runtime::Argument arguments[] = {{0, p}, {0, q}};
      kernel.launch(arguments, modes, here);
      CHECK(read_all(*p) == expected(all, all, shape));
      CHECK(read_all(*q) == all);
    }
  }
}

TEST_CASE("a kernel on overlapping views sees its own writes") {
  // y[i] = 2; z = x[i]: one iteration, one location under two names.
  runtime::Program kernel(ir::parse(R"(quern 1
kernel @k level=structured
binding field rank=1 f32 "x"
binding field rank=1 f32 "y"
body {
  %z = constant<0> : i32
  %n = extent<0.0> : i32
  parallel ordinal=0 %z, %n {(%i: i32)
    %a = load<0.0> %i : f32
    %one = constant<1> : f32
    %b = add %a, %one : f32
    store<1.0> %i, %b
    %c = load<0.0> %i : f32
    %d = add %c, %c : f32
    store<0.0> %i, %d
    yield
  }
  yield
})"));
  for (const char* name : devices)
    for (const Layout& layout : {soa, blocked(4)}) {
      auto device = Device::open(name);
      auto whole = std::make_shared<Storage>(device, floats, Index{100}, here, layout);
      std::vector<float> v(100);
      for (size_t k = 0; k < 100; k++) v[k] = float(k);
      whole->write(v.data(), 0, 100);
      auto x = whole->slice(0, 10, 60, 1, here), y = whole->slice(0, 10, 60, 1, here);
      const runtime::Argument arguments[] = {{0, x}, {0, y}};
      kernel.launch(arguments, {}, here);
      whole->read(v.data(), 0, 100);
      for (size_t k = 0; k < 100; k++)
        REQUIRE(v[k] == (k >= 10 && k < 60 ? 2 * (float(k) + 1) : float(k)));
    }
  CHECK(kernel.variants() == 2 * devices.size());
}

TEST_CASE("an index out of range of a field with an offset says where its indices start") {
  runtime::Program kernel(ir::parse(R"(quern 1
kernel @k level=structured
binding field rank=1 f32 "x"
binding scalar i32 "at"
body {
  %i = param<1> : i32
  %v = load<0.0> %i : f32
  store<0.0> %i, %v
  yield
})"));
  for (const char* name : devices) {
    auto device = Device::open(name);
    auto x = std::make_shared<Storage>(device, floats, Index{10}, here, offset(-3));
    ir::Modes checked;
    checked.checked = true;
    auto run = [&](int at) {
      return message([&] {
        const runtime::Argument arguments[] = {{0, x}, {uint32_t(at), nullptr}};
        kernel.launch(arguments, checked, here);
        device->synchronize();
      });
    };
    for (int inside : {-3, 0, 6}) CHECK(run(inside) == "no error");
    CHECK_THAT(run(-4), contains("index -4 on axis 0 of x is out of range: the extent is 10, the "
                                 "first index -3"));
    CHECK_THAT(run(7), contains("index 7 on axis 0"));
  }
}
