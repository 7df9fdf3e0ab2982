#include "ir/passes/checks/error_record.h"

#include <cstddef>
#include <cstring>

namespace quern::ir {

using abi::ErrorRecord;

uint32_t stop_site(Kernel& kernel, Loc loc) {
  for (uint32_t k = 0; k < kernel.sites.size(); k++) {
    const Site& s = kernel.sites[k];
    if (s.kind == Site::stop && s.loc.line == loc.line && std::strcmp(s.loc.file, loc.file) == 0)
      return k;
  }
  Site site;
  site.kind = Site::stop;
  site.loc = loc;
  kernel.sites.push_back(std::move(site));
  return uint32_t(kernel.sites.size() - 1);
}

Value* ErrorRecordCode::state() {
  static_assert(offsetof(ErrorRecord, state) == 0);
  return b_.read(address(), Type::u32, abi::error_class);
}

Value* ErrorRecordCode::claim() {
  auto word = [&](uint32_t v) { return b_.constant(Type::u32, v); };
  Value* tasks = word(256);
  Value* launch = b_.mul(b_.arg(abi::launch_number, Type::u32), tasks);
  Value* number = b_.add(launch, word(task_ + 1));
  return b_.binary(Op::bit_or, number, word(abi::claim_bit));
}

void ErrorRecordCode::report_stop(uint32_t site) {
  Value *at = address(), *asked = word(abi::stop_bit);
  Value* both[2] = {asked, b_.binary(Op::bit_or, claim(), asked)};
  Value* old = b_.rmw(AtomicOp::cas, at, Type::u32, both, abi::error_class)->result();
  Inst* first = b_.if_(b_.binary(Op::eq, old, asked));
  Inst* behind = b_.point();
  Region* around = b_.region();
  b_.at_end(first->region(1)).yield();
  b_.at_end(first->region(0));
  RecordWriter write(b_, at, abi::error_class);
  write.u32(offsetof(ErrorRecord, site), site);
  write.u32(offsetof(ErrorRecord, task), task_);
  write.u32(offsetof(ErrorRecord, launch), b_.arg(abi::launch_number, Type::u32));
  b_.yield();
  if (behind)
    b_.before(behind);
  else
    b_.at_end(around);
}

}  // namespace quern::ir
