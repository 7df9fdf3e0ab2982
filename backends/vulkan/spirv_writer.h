#pragma once
// Assembles one SPIR-V module with one compute entry point: keeps the sections in the order that
// the format wants and makes each type, constant and capability once. Knows nothing of Quern's IR.
#include <spirv/unified1/GLSL.std.450.h>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <spirv/unified1/spirv.hpp11>
#include <string>
#include <vector>

namespace quern::vulkan {

using Id = uint32_t;

class SpirvWriter {
 public:
  SpirvWriter();

  Id make_id() { return next_id_++; }
  void capability(spv::Capability c) { capabilities_.insert(uint32_t(c)); }
  void extension(const std::string& name) { extensions_.insert(name); }
  void decorate(Id target, spv::Decoration d, std::initializer_list<uint32_t> literals = {});
  void decorate_member(Id type, uint32_t member, spv::Decoration d,
                       std::initializer_list<uint32_t> literals = {});
  void execution_mode(spv::ExecutionMode mode, std::initializer_list<uint32_t> literals);

  // types and constants, each made once
  Id void_type() { return unique(spv::Op::OpTypeVoid, {}); }
  Id bool_type() { return unique(spv::Op::OpTypeBool, {}); }
  Id int_type(uint32_t width) { return unique(spv::Op::OpTypeInt, {width, 0}); }
  Id float_type(uint32_t width) { return unique(spv::Op::OpTypeFloat, {width}); }
  Id vector_type(Id element, uint32_t count) {
    return unique(spv::Op::OpTypeVector, {element, count});
  }
  Id array_type(Id element, Id length) { return unique(spv::Op::OpTypeArray, {element, length}); }
  Id function_type(Id result) { return unique(spv::Op::OpTypeFunction, {result}); }
  Id pointer_type(spv::StorageClass storage, Id to) {
    return unique(spv::Op::OpTypePointer, {uint32_t(storage), to});
  }
  Id struct_type(std::span<const Id> members);  ///< a new one each time: it may be decorated
  /// `bits` in the low end; types wider than 32 bits take two words.
  Id constant(Id type, uint32_t width, uint64_t bits);
  Id boolean(bool v) {
    return unique_value(v ? spv::Op::OpConstantTrue : spv::Op::OpConstantFalse, bool_type(), {});
  }
  Id null(Id type) { return unique_value(spv::Op::OpConstantNull, type, {}); }
  /// A variable outside the function; part of the entry point's interface.
  Id global(spv::StorageClass storage, Id type);

  // the function's code
  void begin_main();
  /// A variable of the function, uninitialised.
  Id local(Id type);
  Id op(spv::Op code, Id type, std::initializer_list<uint32_t> operands) {
    return op(code, type, std::span(operands.begin(), operands.size()));
  }
  Id op(spv::Op code, Id type, std::span<const uint32_t> operands);
  Id glsl(GLSLstd450 function, Id type, std::initializer_list<Id> operands);
  void effect(spv::Op code, std::initializer_list<uint32_t> operands);
  Id bitcast(Id type, Id v) { return op(spv::Op::OpBitcast, type, {v}); }

  // blocks: `place` starts one, and it becomes the current one
  void place(Id label);
  Id block() const { return block_; }
  void branch(Id to) { effect(spv::Op::OpBranch, {to}); }
  void branch(Id condition, Id yes, Id no) {
    effect(spv::Op::OpBranchConditional, {condition, yes, no});
  }
  Id phi(Id type, Id first, Id from, Id second, Id from_second) {
    return op(spv::Op::OpPhi, type, {first, from, second, from_second});
  }
  /// A phi whose second value is not known yet: give it with `close`.
  struct OpenPhi {
    Id id;
    size_t at;  ///< of the missing value
  };
  OpenPhi open_phi(Id type, Id first, Id from, Id from_second);
  void close(const OpenPhi& phi, Id second) { code_[phi.at] = second; }

  /// Ends the function; the module's words.
  std::vector<uint32_t> finish();

 private:
  using Words = std::vector<uint32_t>;
  static void append(Words& to, spv::Op code, std::span<const uint32_t> operands);
  static void append_text(Words& to, const std::string& text);
  Id unique(spv::Op code, std::vector<uint32_t> operands);
  Id unique_value(spv::Op code, Id type, std::vector<uint32_t> operands);

  Id next_id_ = 1, main_ = 0, glsl_ = 0, entry_ = 0, block_ = 0;
  std::set<uint32_t> capabilities_;
  std::set<std::string> extensions_;
  std::map<std::vector<uint32_t>, Id> known_;
  std::vector<Id> interface_;
  Words modes_, decorations_, types_, locals_, code_;
};

}  // namespace quern::vulkan
