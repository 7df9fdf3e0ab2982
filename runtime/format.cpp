#include <charconv>

#include "quern/runtime/device.h"

namespace quern::runtime {

namespace {
template <class T>
std::string shortest(T v) {
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, v).ptr;
  return {text, end};
}
}  // namespace

std::string format_value(ir::Type type, uint64_t bits) {
  if (type == ir::Type::b1) return bits ? "true" : "false";
  if (type == ir::Type::f16) return shortest(ir::f16_of(bits));
  if (type == ir::Type::f32) return shortest(ir::f32_of(bits));
  if (type == ir::Type::f64) return shortest(ir::f64_of(bits));
  if (ir::is_signed(type)) return shortest(ir::to_signed(bits, type));
  return shortest(bits);
}

std::string format_values(const std::string& format, std::span<const ir::Type> types,
                          std::span<const uint64_t> values) {
  std::string out;
  size_t next = 0;
  for (size_t k = 0; k < format.size(); k++) {
    bool pair = k + 1 < format.size();
    if (pair && format[k] == '{' && format[k + 1] == '}') {
      if (next < types.size() && next < values.size())
        out += format_value(types[next], values[next]);
      next++;
      k++;
    } else {
      out += format[k];
      if (pair && (format[k] == '{' || format[k] == '}') && format[k + 1] == format[k]) k++;
    }
  }
  return out;
}

}  // namespace quern::runtime
