// Companions: fields that go with another through views, swap and release, and that launches look up.
#include <functional>
#include <map>
#include <thread>

#include "quern/ir/text.h"
#include "quern/runtime/program.h"
#include "tests/catch.h"
#include "tests/message_of.h"

using namespace quern;
using namespace quern::runtime;
using quern::test::message_of;

namespace {

constexpr Loc here{"user.cpp", 42};
const std::vector<ir::Storage> floats = {{ir::Type::f32, ir::Type::f32}};
const std::vector<ir::Storage> mixed = {
    {ir::Type::f16, ir::Type::f16}, {ir::Type::f64, ir::Type::f64}, {ir::Type::b1, ir::Type::u8}};

using Ref = std::shared_ptr<Storage>;
using Shape = std::vector<int64_t>;

Ref field(const std::shared_ptr<Device>& device, Shape shape, const Layout& layout = {},
          const std::vector<ir::Storage>& components = floats) {
  return std::make_shared<Storage>(device, components, std::move(shape), here, layout);
}

template <class T = float>
std::vector<T> read(const Storage& s) {
  std::vector<T> v(size_t(s.size()));
  s.read(v.data(), 0, s.size());
  return v;
}

void write(Storage& s, const std::vector<float>& v) { s.write(v.data(), 0, int64_t(v.size())); }

std::vector<float> counted(size_t n, float from = 1) {
  std::vector<float> v(n);
  for (size_t k = 0; k < n; k++) v[k] = from + float(k);
  return v;
}

const std::vector<std::pair<const char*, Layout>> layouts = {
    {"soa", soa},
    {"aos", aos},
    {"column-major aos", order(1, 0).aos()},
    {"blocked", blocked(3, 5)},
    {"blocked aos", blocked(4, 8).aos()},
    {"aosoa", aosoa(2, 4)},
    {"nested aosoa", blocked(2, 3).of(3, 2).aosoa()},
    {"Morton, unequal, aos", blocked(2, 8).morton().aos()},
    {"blocks of Morton blocks, grouped", blocked(2, 3).of(4, 4).morton().aosoa()},
};

/// The first device of each back end that is present.
std::vector<std::shared_ptr<Device>> devices() {
  std::vector<std::shared_ptr<Device>> found;
  for (const Backend& b : backends()) {
    std::string why;
    if (!b.probe(why).empty()) found.push_back(Device::open(b.name));
  }
  return found;
}

}  // namespace

TEST_CASE("a companion is a field of the same shape, of zeros, the same whenever it is asked for") {
  auto device = Device::open("cpu");
  const Ref x = field(device, {3, 4}, order(1, 0).offset(-1, 5), mixed);
  const Ref adjoint = x->companion("adjoint", here);
  CHECK(adjoint->shape() == x->shape());
  CHECK(adjoint->first(0) == -1);
  CHECK(adjoint->first(1) == 5);
  REQUIRE(adjoint->components().size() == 3);
  CHECK(adjoint->components()[0].type == ir::Type::f32);  // f16 would lose what is summed up
  CHECK(adjoint->components()[1].type == ir::Type::f64);
  CHECK(adjoint->components()[2].type == ir::Type::b1);
  CHECK(read(*adjoint->part(0, {4, {0}}, here)) == std::vector<float>(12, 0));
  CHECK_FALSE(adjoint->overlaps(*x));
  CHECK(x->companion("adjoint", here) == adjoint);
  CHECK(x->companion("dual", here) != adjoint);
  CHECK(adjoint->companion("adjoint", here) != adjoint);  // a field like any other
  CHECK(field(device, {0, 4})->companion("adjoint", here)->size() == 0);
}

TEST_CASE("a view's companion is the same view of the field's companion") {
  auto device = Device::open("cpu");
  using View = std::function<Ref(const Ref&)>;
  const std::map<std::string, View> views = {
      {"slice", [](const Ref& s) { return s->slice(0, 2, 6, 1, here); }},
      {"rows", [](const Ref& s) { return s->select(0, 3, here); }},
      {"columns", [](const Ref& s) { return s->select(1, 5, here); }},
      {"transposed", [](const Ref& s) { return s->transposed(std::vector<int64_t>{1, 0}, here); }},
      {"rebased", [](const Ref& s) { return s->rebased(std::vector<int64_t>{-3, 7}, here); }},
      {"slices of slices",
       [](const Ref& s) {
         return s->slice(1, 1, 9, 1, here)->slice(0, 1, 5, 1, here)->slice(1, 3, 7, 1, here);
       }},
      {"a column of a transposed slice",
       [](const Ref& s) {
         return s->slice(0, 1, 7, 1, here)
             ->transposed(std::vector<int64_t>{1, 0}, here)
             ->select(1, 4, here);
       }},
      {"one element", [](const Ref& s) { return s->select(1, 8, here)->select(0, 6, here); }},
      {"nothing", [](const Ref& s) { return s->slice(0, 3, 3, 1, here); }},
  };
  const std::map<std::string, View> unblocked = {
      {"steps", [](const Ref& s) { return s->slice(0, 1, 7, 2, here); }},
      {"flipped", [](const Ref& s) { return s->flipped(1, here)->flipped(0, here); }},
      {"a slice of flipped steps",
       [](const Ref& s) {
         return s->flipped(0, here)->slice(0, 1, 6, 3, here)->slice(1, 2, 7, 2, here);
       }},
  };
  for (const auto& [name, layout] : layouts) {
    const Ref x = field(device, {7, 9}, layout, mixed);
    const Ref adjoint = x->companion("adjoint", here);
    const Ref f = adjoint->part(0, {4, {0}}, here);
    const Ref d = adjoint->part(1, {8, {0}}, here);
    write(*f, counted(63));
    for (const auto* some : {&views, &unblocked})
      for (const auto& [what, view] : *some) {
        if (some == &unblocked && layout.level_count > 0) continue;
        INFO(name << ": " << what);
        const Ref seen = view(x)->companion("adjoint", here);
        const Ref wanted = view(adjoint);
        REQUIRE(seen->shape() == wanted->shape());
        for (uint32_t k = 0; k < seen->shape().size(); k++)
          CHECK(seen->first(k) == wanted->first(k));
        CHECK(read(*seen->part(0, {4, {0}}, here)) == read(*wanted->part(0, {4, {0}}, here)));
        // A component of a view, or a view of a component.
        CHECK(read(*view(x)->part(0, {2, {0}}, here)->companion("adjoint", here)) ==
              read(*view(f)));
        const std::vector<double> ones(size_t(seen->size()), 1.5);
        view(x->part(1, {8, {0}}, here))
            ->companion("adjoint", here)
            ->write(ones.data(), 0, seen->size());
        CHECK(read<double>(*view(d)) == ones);
        const double zero = 0;
        d->fill(&zero);
        CHECK(seen->facts() == wanted->facts());
      }
    CHECK(read(*f) == counted(63));
  }
}

TEST_CASE("swap exchanges companions, release gives them back, snapshots have none") {
  auto device = Device::open("cpu");
  const uint64_t before = device->allocated();
  {
    const Ref x = field(device, {4}), y = field(device, {4});
    const Ref dx = x->companion("adjoint", here), last = x->slice(0, 3, 4, 1, here);
    write(*dx, {1, 2, 3, 4});
    x->swap(*y, here);  // which has none yet
    CHECK(read(*x->companion("adjoint", here)) == std::vector<float>(4, 0));
    CHECK(read(*y->companion("adjoint", here)) == std::vector<float>{1, 2, 3, 4});
    CHECK(read(*dx) == std::vector<float>(4, 0));  // follows its field, as views do
    CHECK(read(*last->companion("adjoint", here)) == std::vector<float>{0});
    y->swap(*x, here);
    CHECK(read(*last->companion("adjoint", here)) == std::vector<float>{4});
    CHECK(device->allocated() == before + 4 * 16);

    CHECK_THAT(message_of([&] { x->snapshot(here)->companion("adjoint", here); }),
               contains("a snapshot is read only: it has no adjoint of its own"));
    x->release({"user.cpp", 7});
    CHECK(device->allocated() == before + 2 * 16);
    CHECK_THAT(message_of([&] { read(*dx); }), contains("released at user.cpp:7"));
    CHECK_THAT(message_of([&] { x->companion("adjoint", here); }),
               contains("released at user.cpp:7"));
  }
  CHECK(device->allocated() == before);
}

TEST_CASE("threads that ask for a companion at once get one") {
  auto device = Device::open("cpu");
  for (int round = 0; round < 50; round++) {
    const Ref x = field(device, {100});
    Ref found[4];
    std::vector<std::thread> threads;
    for (Ref& f : found) threads.emplace_back([&] { f = x->companion("adjoint", here); });
    for (std::thread& t : threads) t.join();
    for (const Ref& f : found) CHECK(f == found[0]);
  }
}

namespace {

/// The adjoint sweep of y[i] = a · x[i], by hand.
const char* const sweep = R"(quern 1
kernel @sweep level=structured
binding scalar f32 "a"
binding field rank=1 f32 "x"
binding field rank=1 f32 "y"
binding field rank=1 f32 "adjoint of x" of=1 "adjoint"
binding field rank=1 f32 "adjoint of y" of=2 "adjoint"
body {
  %z = constant<0> : i32
  %n = extent<1.0> : i32
  %a = param<0> : f32
  parallel ordinal=0 %z, %n {(%i: i32)
    %y = load<4.0> %i : f32
    %d = mul %a, %y : f32
    %x = load<3.0> %i : f32
    %v = add %x, %d : f32
    store<3.0> %i, %v
    yield
  }
  yield
})";

Argument number(float v) { return {ir::bits_of(v), nullptr}; }

}  // namespace

TEST_CASE("a launch looks up the companions of what is passed") {
  for (const auto& device : devices()) {
    INFO(device->name());
    Program program(ir::parse(sweep));
    const Ref x = field(device, {6}), y = field(device, {6});
    write(*y->companion("adjoint", here), counted(6));
    const Argument all[] = {number(2), {0, x}, {0, y}};
    program.launch(all, {}, here);
    program.launch(all, {}, here);
    CHECK(read(*x->companion("adjoint", here)) == std::vector<float>{4, 8, 12, 16, 20, 24});
    CHECK(read(*x) == std::vector<float>(6, 0));

    // Every second element backwards, and the first three.
    const Argument views[] = {number(10),
                              {0, x->slice(0, 1, 6, 2, here)->flipped(0, here)},
                              {0, y->slice(0, 0, 3, 1, here)}};
    program.launch(views, {}, here);
    CHECK(read(*x->companion("adjoint", here)) == std::vector<float>{4, 38, 12, 36, 20, 34});

    // From an image's bytes.
    const std::vector<std::byte> bytes = program.image(all, {}, here)->bytes();
    const LoadedKernel loaded(device, std::make_shared<Image>(Image::from(bytes, "the image")));
    const Argument into[] = {number(1), {0, y}, {0, x}};
    loaded.launch(into, here);
    CHECK(read(*y->companion("adjoint", here)) == std::vector<float>{5, 40, 15, 40, 25, 40});
  }
}

TEST_CASE("companions are not passed") {
  auto device = Device::open("cpu");
  Program program(ir::parse(sweep));
  const Ref x = field(device, {6});
  const Argument all[] = {number(2), {0, x}, {0, x}, {0, x}, {0, x}};
  for (size_t count : {0, 2, 4, 5})
    CHECK_THAT(message_of([&] { program.launch(std::span(all).first(count), {}, here); }),
               contains("user.cpp:42") &&
                   contains("has 3 parameters, launched with " + std::to_string(count)));
  const Argument without[] = {number(2), {0, x}, {}};
  CHECK_THAT(message_of([&] { program.launch(without, {}, here); }),
             contains("y is a field without memory"));
}
