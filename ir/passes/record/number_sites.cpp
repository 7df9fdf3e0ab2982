#include "ir/passes/record/number_sites.h"

namespace quern::ir {

void number_sites(Kernel& kernel) {
  std::vector<uint32_t> numbers(kernel.sites.size(), no_site);
  std::vector<Site> sites;
  uint32_t ordinal = 0;
  walk(kernel, [&](Inst* inst) {
    if (inst->is(Op::parallel)) inst->options.ordinal = ordinal++;
    if (inst->site == no_site) return;
    if (inst->site >= numbers.size()) throw InternalError("an instruction names a missing site");
    uint32_t& number = numbers[inst->site];
    if (number == no_site) {
      number = uint32_t(sites.size());
      sites.push_back(std::move(kernel.sites[inst->site]));
    }
    inst->site = number;
  });
  kernel.sites = std::move(sites);
}

}  // namespace quern::ir
