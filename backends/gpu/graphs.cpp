#include "backends/gpu/graphs.h"

#include <algorithm>
#include <string_view>

namespace quern::gpu {

Graph::Graph(std::shared_ptr<Gpu> gpu, GraphExecHandle handle, Work work)
    : gpu_(std::move(gpu)), handle_(handle), work_(std::move(work)) {
  for (const auto& used : work_) kernels.insert(used->kernels.begin(), used->kernels.end());
}

Graph::~Graph() {
  Current current(*gpu_);
  gpu_->api->graph_exec_destroy(handle_);
}

std::shared_ptr<const Graph> Graphs::find(std::vector<uint64_t> words, StreamHandle stream,
                                          const std::function<void(Work&)>& record) {
  if (!supported_) return nullptr;
  words.push_back(reinterpret_cast<uint64_t>(stream));
  size_t hash = std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]});
  // Words of a graph name programs by address, which it keeps alive: equal words, equal batch.
  auto known = std::ranges::find_if(
      batches_, [&](const Batch& b) { return b.hash == hash && (!b.graph || b.words == words); });
  if (known == batches_.end()) {
    batches_.push_front({hash, {}, nullptr});
    if (batches_.size() > remembered) batches_.pop_back();
    return nullptr;
  }
  batches_.splice(batches_.begin(), batches_, known);
  Batch& batch = batches_.front();
  if (!batch.graph) {
    batch.graph = capture(stream, record);
    batch.words = std::move(words);
  }
  return batch.graph;
}

/// Null where the driver cannot; it is not asked again then.
std::shared_ptr<const Graph> Graphs::capture(StreamHandle stream,
                                             const std::function<void(Work&)>& record) {
  const Api& api = *gpu_->api;
  Work work;
  GraphHandle graph = nullptr;
  GraphExecHandle exec = nullptr;
  Code c = api.capture_begin(stream, flag::capture_relaxed);
  if (c == code::success) {
    try {
      record(work);
    } catch (...) {
      api.capture_end(stream, &graph);
      if (graph) api.graph_destroy(graph);
      throw;
    }
    c = api.capture_end(stream, &graph);
    if (c == code::success) c = api.graph_instantiate(&exec, graph, nullptr, nullptr, 0);
    if (graph) api.graph_destroy(graph);
  }
  if (is_fatal(c)) fail(api, c, "capturing a graph");
  supported_ = c == code::success;
  return supported_ ? std::make_shared<const Graph>(gpu_, exec, std::move(work)) : nullptr;
}

}  // namespace quern::gpu
