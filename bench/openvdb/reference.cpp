#include "bench/openvdb/reference.h"

#include <openvdb/math/DDA.h>
#include <openvdb/math/Ray.h>
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

namespace {
/// What LevelSetHDDA asks on its way.
class First {
 public:
  using RayT = vdb::math::Ray<double>;
  explicit First(const vdb::FloatTree& tree) : at_(tree) {}

  double along(const RayT& ray) {
    ray_ = ray;
    found_ = -1;
    vdb::math::LevelSetHDDA<vdb::FloatTree, 2>::test(*this);
    return found_;
  }

  const RayT& ray() const { return ray_; }
  template <class Node>
  bool hasNode(const vdb::Coord& c) {
    return at_.probeConstNode<Node>(c) != nullptr;
  }
  void setRange(double from, double to) { ray_.setTimes(from, to); }
  void init(double t) { entered_ = t; }
  bool operator()(const vdb::Coord& c, double next) {
    const bool found = at_.isValueOn(c);
    if (found) found_ = entered_;
    entered_ = next;
    return found;
  }

 private:
  vdb::tree::ValueAccessor<const vdb::FloatTree> at_;
  RayT ray_;
  double entered_ = 0, found_ = -1;
};
}  // namespace

void Tree::first_hits(const Rays& rays, float* t) const {
  vdb::CoordBBox box;
  data_->tree.evalLeafBoundingBox(box);
#pragma omp parallel
  {
    First first(data_->tree);
#pragma omp for schedule(dynamic, 1024)
    for (std::size_t k = 0; k < rays.count; k++) {
      First::RayT ray({rays.eye[0], rays.eye[1], rays.eye[2]}, {rays.x[k], rays.y[k], rays.z[k]});
      t[k] = ray.clip(box) ? float(first.along(ray)) : -1.0f;
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
