#include "backends/interpreter/compiler.h"

#include "quern/ir/text.h"

namespace quern::interpreter {

namespace {

class Compiler : public runtime::Compiler {
 public:
  std::string listing(const ir::Kernel& kernel, const runtime::Target&,
                      std::string_view kind) const override {
    if (kind != "ir")
      throw Error("the interpreter has no listing of kind '" + std::string(kind) + "'; it has: ir");
    return ir::print(kernel, {.locations = true});
  }

 protected:
  std::vector<std::byte> code(const ir::Kernel& kernel,
                              const runtime::Target& target) const override {
    const std::string text = listing(kernel, target, "ir");
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
};

}  // namespace

const runtime::Compiler& compiler() {
  static const Compiler one;
  return one;
}

}  // namespace quern::interpreter
