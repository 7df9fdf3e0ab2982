#pragma once
// Trees: what compiled code and the runtime agree on.
//
// A tree is a chain of pools (Placement::pools). A cell of pool p is named by a slot, 32 bits: 0 is
// the cell that stands for all that do not exist, and reads as the background; 1 is where writes go
// that found no cell, and nobody reads; others are live. The root pool has one cell, 0. Child e of
// the cell in slot s has number s · children + e. By that number the pool's *table* names the child's
// slot in the next pool (0: there is none), and in the last pool the fields keep their elements and a
// *mask* says which are active.
//
// A cell is taken by a task that needs it: from the pool's *ring* of free slots by an atomic count,
// and put into the table by one compare-and-swap. Who loses that gives its cell back at the other end
// of the ring, where others find it from the next task on. Nobody waits for anybody: a free cell
// holds the background and empty tables already. In a *direct* pool, which is below direct ones alone,
// child e of the cell in slot s of the root or of a direct pool has the slot of its number: the number
// + 2, less what slots 0 and 1 of the pool above would have. Between tasks a cell exists where something in it is
// active, so that the active elements alone say which there are.
//
// Where the root is *hashed*, what numbers its children are the entries of a hash table, with open
// addressing and steps of one from where the coordinates' hash leads to: a child at the coordinates is
// the one whose words the entry keeps. Entry 0 stands for children that have none, entry 1 for those
// that none was left for. Who claims an entry claims its words one after the other, from 0, each by a
// compare-and-swap, and goes on to the next entry where another word stands: so whoever claims the
// last word has found the others its own, and one entry comes of what many claim at once. Entries
// stay until the table is made anew.
//
// Where the last pool holds *lists*, elements are active up to their list's length. List n is in the
// cells of the children n · chunks … n · chunks + chunks - 1 of the pool above.
//
// Cells of a level may be elements of fields, too: of such a field the pools (Placement::pools) are
// those above, the last one with the levels alone that number them, one child where the level has a
// pool of its own. What writes to it makes no cells.
//
// These parts are fields of one axis, which a binding names by `Binding::of`, any field of the tree,
// and `Binding::companion`, the part's name.
#include <cstdint>
#include <string>

#include "quern/ir/placement.h"

namespace quern::ir::tree {

inline constexpr uint32_t no_cell = 0, lost_cell = 1, first_slot = 2;

/// u32, by the child's number, of each pool but the last.
inline std::string table(size_t pool) { return "table " + std::to_string(pool); }
/// u32, of the root where it is hashed: word w of entry e at e · key_words + w, 0 or the word + 1.
inline const std::string keys = "keys";
/// u32, of the last pool: bit n is the activity of elements n · unit … n · unit + unit - 1. Of lists:
/// their lengths.
inline const std::string mask = "mask";
/// u32, free slots at positions taken … given - 1 modulo its length, a power of two and at least
/// twice the slots; of each pool but the root.
inline std::string ring(size_t pool) { return "ring " + std::to_string(pool); }
/// i64, by the slot: the number of the child whose cell it is; of each pool but the root.
inline std::string owners(size_t pool) { return "owners " + std::to_string(pool); }
/// u32, the same bits as they were when the lists were made: loops go by them.
inline const std::string listed = "listed";
/// u32, the same bits: such elements end with the task. Of lists: the complement of where they are to
/// end, or 0.
inline const std::string ending = "ending";
/// u32, words of each pool, see Word.
inline const std::string state = "state";
/// Live cells of a pool in order: u32, the slot.
inline std::string list(size_t pool) { return "list " + std::to_string(pool); }
/// The same cells' first elements: for each axis the position along it.
inline std::string places(size_t pool) { return "places " + std::to_string(pool); }
/// u32, by the place in the last pool's list: the slots of the cells beside each, 3 to the power of axes
/// of them; Σ (d_k + 1) · 3^k is the place of the one that lies d_k cells, -1, 0 or 1, along axis k. A
/// task fills what the next one reads of it.
inline const std::string neighbours = "neighbours";
inline Type place_type(const Placement& layout) { return layout.wide ? Type::i64 : Type::i32; }
/// The field's own elements.
inline const std::string elements = "elements";

/// Of pool p stand at p · words_of_pool.
enum Word : uint32_t {
  taken,     ///< slots taken from the ring, ever, modulo 2^32; a hashed root's: entries in use
  given,     ///< slots put into it
  limit,     ///< what `given` was when the task began: so many may be taken
  need,      ///< children that have no cell as there was none
  short_of,  ///< not 0: a cell was not to be had
  count,     ///< of the lists' entries
  cells,     ///< that the pool has, the first two included
  changed,   ///< the root's: not 0 where a cell was taken, or given back, since the lists were made
  made,      ///< the root's: how often they were
};
inline constexpr uint32_t words_of_pool = 9;

inline constexpr uint32_t no_place = ~0u;  ///< of a list that is full
inline constexpr uint32_t no_entry = 0, lost_entry = 1, first_entry = 2;

/// What leads from the words of a key to its entry: `h` of those before, 0 for the first, and one
/// more. Multiplication and shift as in murmur3's finisher (Appleby 2011).
template <class T>
T hash_step(T h, T word) {
  T mixed = (h ^ word) * uint32_t(0x85ebca6b);
  return mixed ^ (mixed >> uint32_t(15));
}

}  // namespace quern::ir::tree
