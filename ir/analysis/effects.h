#pragma once
// Effects and aliasing: what instructions and regions read and write, and which of it may be the
// same.
//
// The columns of ops.def say what kind of place an operation reads or writes; here stands which:
// elements of bindings, memory of an alias class, slots, what the host
// sees, the count of random numbers, anything (a call). What
// an instruction owns of regions counts as its own. Bindings may overlap unless both alias classes
// are known (not 0) and differ; the frame overlaps no field.
//
// Computed on demand; what it returns holds as long as no instruction is added or moved.
#include <unordered_map>
#include <vector>

#include "ir/analysis/affine.h"

namespace quern::ir {

/// A set of places.
struct Places {
  std::vector<uint32_t> bindings;   ///< all elements
  std::vector<uint64_t> classes;    ///< of memory; 0: any memory
  std::vector<const Value*> slots;  ///< all elements
  bool host = false;                ///< errors and lines
  bool random = false;              ///< how many numbers were drawn
  bool anything = false;

  void add(const Places& other);
  bool empty() const {
    return bindings.empty() && classes.empty() && slots.empty() && !host && !random && !anything;
  }
};

struct Touched {
  Places reads, writes;
};

class Effects {
 public:
  explicit Effects(const Kernel& kernel) : kernel_(kernel) {}

  /// With its regions; of those, what is seen outside: not their own slots.
  const Touched& of(const Inst* inst);
  Touched of(const Region* region);

  bool may_overlap(uint32_t binding, uint32_t other) const;
  bool may_overlap(const Places& a, const Places& b) const;
  /// Would anybody see it if the two ran in the other order?
  bool may_conflict(const Inst* a, const Inst* b);
  bool may_conflict(const Touched& a, const Touched& b) const;

  /// May an access of an element find another value there because `write`, which is another access
  /// or anything else, has happened? Components of one binding, and indices that differ by a
  /// constant, are different elements. This is the one place that takes a store to change its
  /// element and nothing besides.
  bool may_change(const Inst* write, const Inst* access);

  /// May an instruction find out whether `write`, which is an access of an element, has happened?
  bool may_see(const Inst* reader, const Inst* write);

  /// How many operands of an access of an element are indices.
  static size_t indices(const Inst* access);
  /// Do two accesses name one component of one element, by the same values?
  static bool same_element(const Inst* a, const Inst* b);

 private:
  const Kernel& kernel_;
  std::unordered_map<const Inst*, Touched> known_;
  AffineForms forms_;
};

}  // namespace quern::ir
