#pragma once
// What iterations of a parallel loop make, kept for the loops behind it.
#include <span>
#include <unordered_map>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::autodiff {

/// Does each iteration of the parallel loop come to an element of its own there: are all of the
/// loop's indices there, in any order, and besides them what is the same for all?
bool is_at_own_element(const ir::Inst* access, const ir::Inst* loop);

/// Values, floats and b1, that each iteration makes once at most: in companions of a field of which
/// each accesses an element of its own, "parts 0" and on. Loops share them.
class Keeper {
 public:
  /// `fields`: of each of the primal's bindings the one that its companions are derived of, or
  /// none.
  Keeper(ir::Kernel& kernel, std::span<const uint32_t> fields, const ir::Inst* loop);

  /// Is there such a field for values of its type?
  bool has_room_for(const ir::Value* v) const { return room_for(v) != nullptr; }
  void keep(ir::Value* v);
  /// At the builder's point what the iteration of these indices has kept; anything if it has not.
  ir::Value* kept(ir::Builder& b, const ir::Value* v, std::span<ir::Value* const> iteration) const;

 private:
  struct Kept {
    uint32_t binding, component;
    ir::Type type;
    const ir::Inst* access;  ///< at the element
  };
  struct Room {
    uint32_t binding;  ///< a field whose companions have it
    uint32_t of;       ///< what they are derived of
    uint32_t component;
    ir::Type type;
    const ir::Inst* access;
  };

  void add_room(const ir::Inst* access, std::span<const uint32_t> fields);
  const Room* room_for(const ir::Value* v) const;
  uint32_t declare(const Room& room);

  ir::Kernel& kernel_;
  const ir::Inst* const loop_;
  ir::Builder b_;
  std::vector<Room> rooms_;
  std::unordered_map<const ir::Value*, Kept> kept_;
};

}  // namespace quern::autodiff
