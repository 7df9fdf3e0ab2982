// Where there is no OpenVDB.
#include "bench/openvdb/reference.h"

namespace bench::openvdb {

struct Tree::Data {};

bool is_present() { return false; }
Tree::Tree(float) {}
Tree::~Tree() = default;
void Tree::insert(const Points&) {}
void Tree::read_by_accessor(const Points&, float*) const {}
void Tree::read_by_tree(const Points&, float*) const {}
void Tree::stencil(Tree&) const {}
void Tree::first_hits(const Rays&, float*) const {}
void Tree::scale(float) {}

}  // namespace bench::openvdb
