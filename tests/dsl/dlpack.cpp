// Tensors in and out on devices that see the host's memory, with the structures of DLPack filled in
// by hand, as its header describes them.
#include <quern/dlpack.h>
#include <quern/host.h>
#include <quern/quern.h>

#include <cstring>
#include <numeric>
#include <optional>

#include "tests/catch.h"
#include "tests/message_of.h"

namespace qn = quern;
namespace dl = quern::dlpack;
using namespace qn::lang;
using qn::test::message_of;

namespace {

/// Another library's tensor; `gone` counts calls of its deleter.
template <class T>
struct Foreign {
  Foreign(dl::Kind kind, std::vector<int64_t> s, std::vector<int64_t> st = {})
      : shape(std::move(s)), strides(std::move(st)) {
    managed.tensor = {data,
                      dl::Where::host,
                      0,
                      int32_t(shape.size()),
                      {kind, uint8_t(8 * sizeof(T)), 1},
                      shape.data(),
                      strides.empty() ? nullptr : strides.data(),
                      0};
    managed.manager = this;
    managed.deleter = [](dl::Managed* m) { static_cast<Foreign*>(m->manager)->gone++; };
  }
  T data[64] = {};
  std::vector<int64_t> shape, strides;
  dl::Managed managed{};
  int gone = 0;
};

template <class W = qn::HostW>
struct Grain {
  qn::In<W, float> mass;
  qn::In<W, int> kind;
};

}  // namespace

static_assert(sizeof(dl::Tensor) == 48 && sizeof(dl::Managed) == 64 &&
              sizeof(dl::ManagedVersioned) == 80);
static_assert(offsetof(dl::Tensor, type) == 20 && offsetof(dl::Tensor, shape) == 24 &&
              offsetof(dl::Tensor, byte_offset) == 40 &&
              offsetof(dl::ManagedVersioned, tensor) == 32);

TEST_CASE("a field is a tensor: shape, strides, type and memory", "[cpu]") {
  qn::Device device(GENERATE("cpu", "interpreter"));
  qn::Field<double, 2> x{device, {3, 4}};
  qn::Kernel number = [&] {
    for (auto [i, j] : x) x(i, j) = 10 * i + j;
  };
  number();
  dl::Managed* m = qn::to_dlpack(x);
  const dl::Tensor& t = m->tensor;
  CHECK(t.where == dl::Where::host);
  CHECK(t.rank == 2);
  CHECK((t.type.kind == dl::Kind::floating && t.type.bits == 64 && t.type.lanes == 1));
  CHECK((t.shape[0] == 3 && t.shape[1] == 4));
  CHECK((t.strides[0] == 4 && t.strides[1] == 1));
  CHECK(static_cast<double*>(t.data)[1 * 4 + 2] == 12);
  m->deleter(m);

  // A transposed view with every second column, backwards.
  auto view = x.slice(1, 0, 4, 2).transposed().flipped(0);
  dl::ManagedVersioned* v = qn::to_dlpack_versioned(view);
  CHECK((v->major == 1 && v->flags == 0));
  CHECK((v->tensor.shape[0] == 2 && v->tensor.shape[1] == 3));
  CHECK((v->tensor.strides[0] == -2 && v->tensor.strides[1] == 4));
  CHECK(*static_cast<double*>(v->tensor.data) == 2);  // column 2, row 0
  v->deleter(v);
}

TEST_CASE("components are a tensor's last axis", "[cpu]") {
  qn::Device device("cpu");
  qn::Field<vec3> p{device, {5}, qn::aos};
  p.fill(vec3(1, 2, 3));
  dl::Managed* m = qn::to_dlpack(p);
  CHECK(m->tensor.rank == 2);
  CHECK((m->tensor.shape[1] == 3 && m->tensor.strides[0] == 3 && m->tensor.strides[1] == 1));
  CHECK(static_cast<float*>(m->tensor.data)[3 * 4 + 1] == 2);
  auto back = qn::from_dlpack<vec3, 1>(device, m);
  CHECK(back.at(4) == vec3(1, 2, 3));
}

TEST_CASE("a tensor lives as long as somebody uses it", "[cpu]") {
  qn::Device device("cpu");
  dl::Managed* m = nullptr;
  {
    qn::Field<int> x{device, {1000}};
    x.fill(5);
    m = qn::to_dlpack(x);
  }
  CHECK(static_cast<int*>(m->tensor.data)[999] == 5);
  m->deleter(m);

  Foreign<int> theirs(dl::Kind::signed_integer, {8});
  {
    std::optional<qn::Field<int>> part;
    {
      auto x = qn::from_dlpack<int, 1>(device, &theirs.managed);
      part.emplace(x.slice(0, 2, 4, 1));
      qn::Kernel count = [&] {
        for (auto i : x) x[i] = i;
      };
      count();
    }
    CHECK(theirs.gone == 0);
    CHECK(part->at(1) == 3);
  }
  CHECK(theirs.gone == 1);
  CHECK(theirs.data[7] == 7);

  auto x = qn::from_dlpack<int, 1>(device, &theirs.managed);
  x.release();
  CHECK(theirs.gone == 2);
}

TEST_CASE("tensors of other libraries: orders of axes, offsets, single indices, none", "[cpu]") {
  qn::Device device("cpu");
  Foreign<int16_t> columns(dl::Kind::signed_integer, {3, 4}, {1, 3});
  std::iota(columns.data, columns.data + 64, int16_t(0));
  columns.managed.tensor.byte_offset = 2;
  auto x = qn::from_dlpack<int16_t, 2>(device, &columns.managed);
  CHECK(x.at(2, 3) == 1 + 2 + 3 * 3);
  CHECK(x.at(0, 1) == 4);

  // The stride of an axis with one index may be anything.
  Foreign<uint8_t> one(dl::Kind::unsigned_integer, {1, 5}, {77, 1});
  one.data[4] = 200;
  CHECK(qn::from_dlpack<uint8_t, 2>(device, &one.managed).at(0, 4) == 200);

  Foreign<float> none(dl::Kind::floating, {0, 5});
  none.managed.tensor.data = nullptr;
  CHECK(qn::from_dlpack<float, 2>(device, &none.managed).size() == 0);
  CHECK(none.gone == 1);

  Foreign<bool> truths(dl::Kind::boolean, {2});
  truths.data[1] = true;
  auto b = qn::from_dlpack<bool, 1>(device, &truths.managed);
  CHECK((!b.at(0) && b.at(1)));
}

TEST_CASE("tensors that are no such field are refused, and stay the caller's", "[cpu]") {
  qn::Device device("cpu");
  auto refused = [&]<class T, int N>(std::type_identity<T>, std::integral_constant<int, N>,
                                     auto& tensor) {
    std::string message = message_of([&] { qn::from_dlpack<T, N>(device, &tensor.managed); });
    CHECK_THAT(message, contains("dlpack.cpp:"));
    CHECK(tensor.gone == 0);
    return message;
  };
  std::type_identity<float> f32;
  std::integral_constant<int, 1> one;
  std::integral_constant<int, 2> two;

  Foreign<double> wide(dl::Kind::floating, {4});
  CHECK_THAT(refused(f32, one, wide), contains("a tensor of float64 is no field of float32"));
  Foreign<float> flat(dl::Kind::floating, {4});
  CHECK_THAT(refused(f32, two, flat), contains("shape (4) is no field of 2 axes"));
  CHECK_THAT(refused(std::type_identity<vec2>(), one, flat),
             contains("no field of 1 axes with 2 components"));
  Foreign<float> gaps(dl::Kind::floating, {3, 4}, {8, 1});
  CHECK_THAT(refused(f32, two, gaps), contains("strides (8, 1) has gaps"));
  Foreign<float> back(dl::Kind::floating, {4}, {-1});
  CHECK_THAT(refused(f32, one, back), contains("has gaps"));
  Foreign<float> lanes(dl::Kind::floating, {4});
  lanes.managed.tensor.type.lanes = 4;
  CHECK_THAT(refused(f32, one, lanes), contains("float32 × 4"));
  Foreign<float> far(dl::Kind::floating, {4});
  far.managed.tensor.where = dl::Where::cuda;
  CHECK_THAT(refused(f32, one, far),
             contains("DLPack's device (2, 0) is no memory of device cpu, which is (1, 0)"));
  Foreign<float> odd(dl::Kind::floating, {4});
  odd.managed.tensor.byte_offset = 2;
  CHECK_THAT(refused(f32, one, odd), contains("not aligned"));

  dl::ManagedVersioned versioned{2, 0, nullptr, nullptr, 0, flat.managed.tensor};
  CHECK_THAT(message_of([&] { qn::from_dlpack<float, 1>(device, &versioned); }),
             contains("DLPack 2.0"));
  versioned.major = 1;
  versioned.flags = dl::ManagedVersioned::read_only;
  CHECK_THAT(message_of([&] { qn::from_dlpack<float, 1>(device, &versioned); }),
             contains("read-only"));
  versioned.flags = 0;
  CHECK(qn::from_dlpack<float, 1>(device, &versioned).size() == 4);
}

TEST_CASE("fields that are no arrays are not shared", "[cpu]") {
  qn::Device device("cpu");
  qn::Field<vec3> apart{device, {5}};
  CHECK_THAT(message_of([&] { qn::to_dlpack(apart); }), contains("make it with aos"));
  qn::Field<float, 2> blocks{device, {8, 8}, qn::blocked(4, 4)};
  CHECK_THAT(message_of([&] { qn::to_dlpack(blocks); }), contains("its layout has blocks"));
  qn::Field<Grain<>> grains{device, {5}, qn::aos};
  CHECK_THAT(message_of([&] { qn::to_dlpack(grains); }), contains("structures of several"));
  dl::Managed* kinds = qn::to_dlpack(grains.member(&Grain<>::kind));
  CHECK(kinds->tensor.strides[0] == 2);
  kinds->deleter(kinds);
  qn::Field<int> gone{device, {5}};
  gone.release();
  CHECK_THAT(message_of([&] { qn::to_dlpack(gone); }), contains("was released at"));
}
