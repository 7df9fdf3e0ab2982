#include "tests/gpu/ptx/watch.h"

#include <algorithm>

namespace quern::ptx {

namespace {

bool is_same(const Watch::Visitor& a, const Watch::Visitor& b) {
  return a.block == b.block && a.thread == b.thread;
}
bool is_before(const Watch::Visitor& a, const Watch::Visitor& b) {
  return is_same(a, b) || (a.block == b.block && a.barrier < b.barrier);
}
std::string name(const Watch::Visitor& v) {
  return "thread " + std::to_string(v.thread) + " of block " + std::to_string(v.block) +
         " (PTX line " + std::to_string(v.line) + ")";
}

}  // namespace

Watch::Page& Watch::page_of(uint64_t address) {
  const uint64_t number = address / page;
  Recent& recent = recent_[number % recent_.size()];
  if (!recent.cells || recent.number != number) {
    auto& at = pages_[number];
    if (!at) at = std::make_unique<Page>();
    recent = {number, at.get()};
  }
  return *recent.cells;
}

std::string Watch::read(Cell& c, const Visitor& by) {
  if (c.written && c.writer.bytes == by.bytes && !is_before(c.writer, by) && !c.writer.updates &&
      !(c.writer.strong && by.strong))
    return "reads what " + name(c.writer) + " writes, in no order";
  if (c.read && c.reader.bytes != by.bytes) c.read = c.by_many = c.by_blocks = false;
  if (c.read && !is_same(c.reader, by)) {
    c.by_blocks |= c.reader.block != by.block;
    c.by_many = true;
  }
  c.strongly_read = by.strong && (!c.read || c.strongly_read);
  const uint32_t last = c.read && c.reader.block == by.block ? c.reader.barrier : 0;
  c.reader = by;
  c.reader.barrier = std::max(last, by.barrier);
  c.read = true;
  return "";
}

std::string Watch::write(Cell& c, const Visitor& by) {
  if (c.constant)
    return "writes what the launch reads by ld.global.nc (PTX line " +
           std::to_string(c.constant_line) + ")";
  if (c.written && c.writer.bytes == by.bytes && !is_before(c.writer, by) &&
      !(c.writer.strong && by.strong))
    return "writes what " + name(c.writer) + " writes, in no order";
  const bool own = is_same(c.reader, by) && !c.by_many;
  const bool earlier = !c.by_blocks && c.reader.block == by.block && c.reader.barrier < by.barrier;
  if (c.read && c.reader.bytes == by.bytes && !own && !earlier && !by.updates &&
      !(c.strongly_read && by.strong))
    return "writes what " + name(c.reader) + " reads, in no order";
  c.writer = by;
  c.written = true;
  if (earlier) c.read = c.by_many = false;
  return "";
}

std::string Watch::access(uint64_t address, unsigned bytes, Kind kind, Visitor by) {
  by.updates = kind == updates;
  if (by.bytes == 0) by.bytes = bytes;
  for (uint64_t at = address; at < address + bytes; at++) {
    Cell& c = page_of(at)[at % page];
    if (kind == reads_constant) {
      if (c.written)
        return "reads by ld.global.nc what " + name(c.writer) + " of the same launch writes";
      c.constant = true;
      c.constant_line = by.line;
      continue;
    }
    std::string wrong = kind != writes ? read(c, by) : "";
    if (wrong.empty() && kind != reads) wrong = write(c, by);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace quern::ptx
