#include "bench/openvdb/reference.h"

#include <openvdb/openvdb.h>

#include <vector>

namespace bench::openvdb {

namespace vdb = ::openvdb;

struct Tree::Data {
  explicit Data(float background) : tree(background) {}
  vdb::FloatTree tree;
};

bool is_present() { return true; }

Tree::Tree(float background) : data_(std::make_unique<Data>(background)) {}
Tree::~Tree() = default;

void Tree::insert(const Points& p) {
  vdb::tree::ValueAccessor<vdb::FloatTree> accessor(data_->tree);
  for (std::size_t k = 0; k < p.count; k++) accessor.setValue({p.x[k], p.y[k], p.z[k]}, p.value[k]);
}

void Tree::read_by_accessor(const Points& p, float* out) const {
#pragma omp parallel
  {
    vdb::tree::ValueAccessor<const vdb::FloatTree> accessor(data_->tree);
#pragma omp for schedule(static)
    for (std::size_t k = 0; k < p.count; k++) out[k] = accessor.getValue({p.x[k], p.y[k], p.z[k]});
  }
}

void Tree::read_by_tree(const Points& p, float* out) const {
#pragma omp parallel for schedule(static)
  for (std::size_t k = 0; k < p.count; k++) out[k] = data_->tree.getValue({p.x[k], p.y[k], p.z[k]});
}

void Tree::stencil(Tree& out) const {
  std::vector<const vdb::FloatTree::LeafNodeType*> from;
  std::vector<vdb::FloatTree::LeafNodeType*> to;
  data_->tree.getNodes(from);
  out.data_->tree.getNodes(to);
#pragma omp parallel
  {
    vdb::tree::ValueAccessor<const vdb::FloatTree> at(data_->tree);
#pragma omp for schedule(static)
    for (std::size_t k = 0; k < from.size(); k++)
      for (auto it = from[k]->cbeginValueOn(); it; ++it) {
        const vdb::Coord c = it.getCoord();
        const float around = at.getValue(c.offsetBy(-1, 0, 0)) + at.getValue(c.offsetBy(1, 0, 0)) +
                             at.getValue(c.offsetBy(0, -1, 0)) + at.getValue(c.offsetBy(0, 1, 0)) +
                             at.getValue(c.offsetBy(0, 0, -1)) + at.getValue(c.offsetBy(0, 0, 1));
        to[k]->setValueOnly(it.pos(), around - 6.0f * *it);
      }
  }
}

void Tree::scale(float by) {
  std::vector<vdb::FloatTree::LeafNodeType*> leaves;
  data_->tree.getNodes(leaves);
#pragma omp parallel for schedule(static)
  for (std::size_t k = 0; k < leaves.size(); k++)
    for (auto it = leaves[k]->beginValueOn(); it; ++it) it.setValue(*it * by);
}

}  // namespace bench::openvdb
