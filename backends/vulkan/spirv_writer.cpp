#include "backends/vulkan/spirv_writer.h"

namespace quern::vulkan {

SpirvWriter::SpirvWriter() {
  main_ = make_id();
  glsl_ = make_id();
}

void SpirvWriter::append(Words& to, spv::Op code, std::span<const uint32_t> operands) {
  to.push_back(uint32_t(operands.size() + 1) << 16 | uint32_t(code));
  to.insert(to.end(), operands.begin(), operands.end());
}

void SpirvWriter::append_text(Words& to, const std::string& text) {
  size_t first = to.size();
  to.resize(first + text.size() / 4 + 1);  // ends in at least one zero byte
  for (size_t k = 0; k < text.size(); k++)
    to[first + k / 4] |= uint32_t(uint8_t(text[k])) << 8 * (k % 4);
}

Id SpirvWriter::unique(spv::Op code, std::vector<uint32_t> operands) {
  std::vector<uint32_t> key = operands;
  key.push_back(uint32_t(code));
  Id& id = known_[key];
  if (id) return id;
  id = make_id();
  operands.insert(operands.begin(), id);
  append(types_, code, operands);
  return id;
}

Id SpirvWriter::unique_value(spv::Op code, Id type, std::vector<uint32_t> operands) {
  std::vector<uint32_t> key = operands;
  key.insert(key.end(), {type, uint32_t(code), 0});  // no type has this key
  Id& id = known_[key];
  if (id) return id;
  id = make_id();
  operands.insert(operands.begin(), {type, id});
  append(types_, code, operands);
  return id;
}

Id SpirvWriter::struct_type(std::span<const Id> members) {
  Words operands = {make_id()};
  operands.insert(operands.end(), members.begin(), members.end());
  append(types_, spv::Op::OpTypeStruct, operands);
  return operands[0];
}

Id SpirvWriter::constant(Id type, uint32_t width, uint64_t bits) {
  std::vector<uint32_t> words = {uint32_t(bits)};
  if (width > 32) words.push_back(uint32_t(bits >> 32));
  return unique_value(spv::Op::OpConstant, type, words);
}

Id SpirvWriter::global(spv::StorageClass storage, Id type) {
  Id id = make_id();
  uint32_t operands[] = {pointer_type(storage, type), id, uint32_t(storage)};
  append(types_, spv::Op::OpVariable, operands);
  interface_.push_back(id);
  return id;
}

void SpirvWriter::decorate(Id target, spv::Decoration d, std::initializer_list<uint32_t> literals) {
  Words operands = {target, uint32_t(d)};
  operands.insert(operands.end(), literals.begin(), literals.end());
  append(decorations_, spv::Op::OpDecorate, operands);
}

void SpirvWriter::decorate_member(Id type, uint32_t member, spv::Decoration d,
                                  std::initializer_list<uint32_t> literals) {
  Words operands = {type, member, uint32_t(d)};
  operands.insert(operands.end(), literals.begin(), literals.end());
  append(decorations_, spv::Op::OpMemberDecorate, operands);
}

void SpirvWriter::execution_mode(spv::ExecutionMode mode,
                                 std::initializer_list<uint32_t> literals) {
  Words operands = {main_, uint32_t(mode)};
  operands.insert(operands.end(), literals.begin(), literals.end());
  append(modes_, spv::Op::OpExecutionMode, operands);
}

void SpirvWriter::begin_main() { entry_ = block_ = make_id(); }

Id SpirvWriter::local(Id type) {
  Id id = make_id();
  uint32_t operands[] = {pointer_type(spv::StorageClass::Function, type), id,
                         uint32_t(spv::StorageClass::Function)};
  append(locals_, spv::Op::OpVariable, operands);
  return id;
}

Id SpirvWriter::op(spv::Op code, Id type, std::span<const uint32_t> operands) {
  Id id = make_id();
  code_.push_back(uint32_t(operands.size() + 3) << 16 | uint32_t(code));
  code_.insert(code_.end(), {type, id});
  code_.insert(code_.end(), operands.begin(), operands.end());
  return id;
}

Id SpirvWriter::glsl(GLSLstd450 function, Id type, std::initializer_list<Id> operands) {
  Words all = {glsl_, uint32_t(function)};
  all.insert(all.end(), operands.begin(), operands.end());
  return op(spv::Op::OpExtInst, type, all);
}

void SpirvWriter::effect(spv::Op code, std::initializer_list<uint32_t> operands) {
  append(code_, code, std::span(operands.begin(), operands.size()));
}

void SpirvWriter::place(Id label) {
  effect(spv::Op::OpLabel, {label});
  block_ = label;
}

SpirvWriter::OpenPhi SpirvWriter::open_phi(Id type, Id first, Id from, Id from_second) {
  OpenPhi phi{op(spv::Op::OpPhi, type, {first, from, 0, from_second}), 0};
  phi.at = code_.size() - 2;
  return phi;
}

std::vector<uint32_t> SpirvWriter::finish() {
  // Types made here must be known before the sections are joined.
  Id nothing = void_type();
  Id signature = function_type(nothing);

  Words out = {spv::MagicNumber, 0x00010600, 0, next_id_, 0};
  for (uint32_t c : capabilities_) append(out, spv::Op::OpCapability, std::span(&c, 1));
  auto with_text = [&](spv::Op code, Words operands, const std::string& text,
                       const Words& tail = {}) {
    append_text(operands, text);
    operands.insert(operands.end(), tail.begin(), tail.end());
    append(out, code, operands);
  };
  for (const std::string& e : extensions_) with_text(spv::Op::OpExtension, {}, e);
  with_text(spv::Op::OpExtInstImport, {glsl_}, "GLSL.std.450");
  uint32_t model[] = {uint32_t(spv::AddressingModel::PhysicalStorageBuffer64),
                      uint32_t(spv::MemoryModel::Vulkan)};
  append(out, spv::Op::OpMemoryModel, model);
  with_text(spv::Op::OpEntryPoint, {uint32_t(spv::ExecutionModel::GLCompute), main_}, "main",
            interface_);
  out.insert(out.end(), modes_.begin(), modes_.end());
  out.insert(out.end(), decorations_.begin(), decorations_.end());
  out.insert(out.end(), types_.begin(), types_.end());
  uint32_t function[] = {nothing, main_, uint32_t(spv::FunctionControlMask::MaskNone), signature};
  append(out, spv::Op::OpFunction, function);
  append(out, spv::Op::OpLabel, std::span(&entry_, 1));
  out.insert(out.end(), locals_.begin(), locals_.end());
  out.insert(out.end(), code_.begin(), code_.end());
  append(out, spv::Op::OpFunctionEnd, {});
  return out;
}

}  // namespace quern::vulkan
