#pragma once
// Batches of commands that come again and again, launched as one.
#include <list>

#include "backends/gpu/queues.h"

namespace quern::gpu {

/// A batch in the driver's own form.
class Graph : public Used {
 public:
  Graph(std::shared_ptr<Gpu> gpu, GraphExecHandle handle, Work work);
  ~Graph() override;
  Graph(const Graph&) = delete;

  void launch(StreamHandle stream) const {
    gpu_->expect(gpu_->api->graph_launch(handle_, stream), "launching a graph");
  }

 private:
  std::shared_ptr<Gpu> gpu_;
  GraphExecHandle handle_;
  Work work_;  ///< what the nodes use
};

/// The batches seen last. A batch becomes a graph when it comes for the second time. Members are
/// called within the functions of Queues.
class Graphs {
 public:
  /// Shorter batches are launched one by one: starting a graph costs as much as a few launches.
  static constexpr size_t shortest = 8;
  static constexpr size_t remembered = 32;

  explicit Graphs(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}

  /// The graph of the batch for this stream whose commands these words spell out; null where it is
  /// not worth one. A graph is for one stream, as it runs once at a time. `record` puts the commands into the stream and what they use into its argument.
  std::shared_ptr<const Graph> find(std::vector<uint64_t> words, StreamHandle stream,
                                    const std::function<void(Work&)>& record);

 private:
  struct Batch {
    size_t hash = 0;
    std::vector<uint64_t> words;         ///< once it is a graph
    std::shared_ptr<const Graph> graph;  ///< null: seen once
  };
  std::shared_ptr<const Graph> capture(StreamHandle stream,
                                       const std::function<void(Work&)>& record);

  std::shared_ptr<Gpu> gpu_;
  std::list<Batch> batches_;  ///< the last used in front
  bool supported_ = true;     ///< until the driver refuses one
};

}  // namespace quern::gpu
