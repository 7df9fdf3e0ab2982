#include "backends/vulkan/block.h"

namespace quern::vulkan {

using ir::Type;
using Spv = spv::Op;

namespace {
constexpr auto acquire_release = uint32_t(spv::MemorySemanticsMask::AcquireRelease) |
                                 uint32_t(spv::MemorySemanticsMask::WorkgroupMemory);
// In Vulkan's memory model only these accesses are ordered between invocations.
constexpr auto visible = uint32_t(spv::MemoryAccessMask::MakePointerVisible) |
                         uint32_t(spv::MemoryAccessMask::NonPrivatePointer);
constexpr auto available = uint32_t(spv::MemoryAccessMask::MakePointerAvailable) |
                           uint32_t(spv::MemoryAccessMask::NonPrivatePointer);

/// What memory is shared in: 32 or 64 bits, so that all types share two arrays of at most 12 KiB
/// together, of the 16 that every device has.
Type shared_type(Type t) { return ir::bit_width(t) == 64 ? Type::u64 : Type::u32; }
Type widened(Type narrow) { return ir::is_signed(narrow) ? Type::i32 : Type::u32; }
}  // namespace

Id Block::thread() {
  Id u32 = scalar_.type(Type::u32), three = w.vector_type(u32, 3);
  if (!number_) {
    number_ = w.global(spv::StorageClass::Input, three);
    w.decorate(number_, spv::Decoration::BuiltIn, {uint32_t(spv::BuiltIn::LocalInvocationId)});
  }
  return w.op(Spv::OpCompositeExtract, u32, {w.op(Spv::OpLoad, three, {number_}), 0});
}

Id Block::place(Type t, Id index) {
  Id& array = shared_[t];
  Id element = scalar_.type(t);
  if (!array)
    array = w.global(spv::StorageClass::Workgroup,
                     w.array_type(element, scalar_.constant(Type::u32, size_)));
  return w.op(Spv::OpAccessChain, w.pointer_type(spv::StorageClass::Workgroup, element),
              {array, index});
}

void Block::barrier() {
  Id group = scalar_.constant(Type::u32, uint32_t(spv::Scope::Workgroup));
  w.effect(Spv::OpControlBarrier, {group, group, scalar_.constant(Type::u32, acquire_release)});
}

Id Block::reduce(ir::AtomicOp op, Type narrow, Id v) {
  const bool real = ir::is_float(narrow);
  const Type bits = shared_type(narrow);
  const Type t = ir::bit_width(narrow) >= 32 ? narrow : widened(narrow);
  const Id mine = thread();
  const Id group = scalar_.constant(Type::u32, uint32_t(spv::Scope::Workgroup));
  auto number = [&](uint32_t n) { return scalar_.constant(Type::u32, n); };
  auto load = [&](Id index) {
    Id word = w.op(Spv::OpLoad, scalar_.type(bits), {place(bits, index), visible, group});
    return real ? w.bitcast(scalar_.type(t), word) : word;
  };
  auto store = [&](Id value) {
    Id word = real ? w.bitcast(scalar_.type(bits), value) : value;
    w.effect(Spv::OpStore, {place(bits, mine), word, available, group});
  };
  store(scalar_.convert(narrow, t, v));
  barrier();
  for (uint32_t left = size_; left > 1;) {
    const uint32_t half = (left + 1) / 2;
    Id inside = w.make_id(), after = w.make_id();
    Id has_other = scalar_.less(Type::u32, mine, number(left - half));
    w.effect(Spv::OpSelectionMerge, {after, 0});
    w.branch(has_other, inside, after);
    w.place(inside);
    Id other = load(w.op(Spv::OpIAdd, scalar_.type(Type::u32), {mine, number(half)}));
    store(scalar_.combine(op, t, load(mine), other));
    w.branch(after);
    w.place(after);
    barrier();
    left = half;
  }
  Id total = load(number(0));
  barrier();  // the memory is free for the next reduction
  return scalar_.convert(t, narrow, total);
}

}  // namespace quern::vulkan
