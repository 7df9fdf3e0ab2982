#include "ir/passes/checks/lower_print.h"

#include <cstddef>

#include "ir/passes/checks/host_record.h"
#include "quern/ir/abi.h"

namespace quern::ir {

using abi::PrintEntry;
using abi::PrintRing;

void lower_print(Kernel& kernel) {
  Builder b(kernel);
  for (Task& task : kernel.tasks)
    walk(task.body, [&](Inst* inst) {
      if (!inst->is(Op::print)) return;
      b.before(inst).at(inst->loc);
      static_assert(offsetof(PrintRing, next) == 0);
      Value* ring = b.arg(abi::print_address, Type::address);
      Value* one = b.integer(Type::u32, 1);
      Value* number = b.rmw(AtomicOp::add, ring, Type::u32, {&one, 1}, abi::print_class)->result();
      Inst* room = b.if_(b.lt(number, b.integer(Type::u32, abi::print_capacity)));
      b.at_end(room->region(1)).yield();
      b.at_end(room->region(0));
      Value* wide = b.convert(number, Type::i64);
      Value* bytes = b.mul(wide, b.integer(Type::i64, sizeof(PrintEntry)));
      Value* first = b.integer(Type::i64, offsetof(PrintRing, entries));
      RecordWriter write(b, b.offset(b.offset(ring, first), bytes), abi::print_class);
      write.u32(offsetof(PrintEntry, site), inst->site);
      const std::vector<Value*> bits = host_bits(b, inst->operands);
      write.u32(offsetof(PrintEntry, count), uint32_t(bits.size()));
      write.values(offsetof(PrintEntry, values), bits);
      write.u32(offsetof(PrintEntry, launch), b.arg(abi::launch_number, Type::u32));
      b.yield();
      inst->erase();
    });
}

}  // namespace quern::ir
