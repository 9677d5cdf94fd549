// The planned weights in host memory: the clean copy from which every device copy is made.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "copy_stream.hpp"
#include "ggml-backend-impl.h"
#include "plan.hpp"

namespace xlm {

struct Weight {
    ggml_tensor* host;
    std::size_t shard;
    std::size_t offset;  // of this tensor in any device copy of its shard
};

// The weights of one shard, and the size of a device copy of it.
struct ShardWeights {
    std::vector<Weight*> weights;
    std::size_t bytes = 0;
};

class WeightStore {
  public:
    // device_type: where the copies of these weights will lie, for its alignment and padding.
    WeightStore(const Plan& plan, ggml_backend_buffer_type_t device_type);

    // Groups by `plan` what `other` holds. Tensors know only the other store until take_over. Throws Error
    // like add.
    WeightStore(const Plan& plan, const WeightStore& other);
    void take_over();

    // Takes a tensor that the engine has placed in host weight memory. Throws Error for one that the plan
    // does not name or that is already there (a second model in the same process).
    void add(ggml_tensor* tensor);
    void remove(const ggml_tensor* tensor);

    // The weight that `tensor` is, or is a view of; null for all other tensors.
    static Weight* find(const ggml_tensor* tensor, ggml_backend_buffer_type_t host_type);

    bool holds(const std::string& tensor) const { return weights_.count(tensor) > 0; }
    const ShardWeights& shard(std::size_t index) const { return shards_[index]; }

    // Flips bits in the host copy of one tensor: the control that streaming is real.
    void corrupt(const std::string& tensor);

  private:
    Weight* enter(ggml_tensor* tensor);

    const Plan& plan_;
    ggml_backend_buffer_type_t device_type_;
    std::vector<ShardWeights> shards_;
    // By name: adapters bring tensors of equal names.
    std::unordered_multimap<std::string, std::unique_ptr<Weight>> weights_;
};

// One device copy of a shard: tensors that look like the host's but lie in device memory.
class ShardCopy {
  public:
    ShardCopy(const ShardWeights& shard, ggml_backend_buffer_t buffer);

    const ggml_tensor& tensor(const Weight& weight) const { return tensors_.at(&weight); }

    // The copies that fill it, zeros for the padding behind each tensor included: kernels read it, and the
    // memory may have held another shard.
    std::vector<Copy> copies();

  private:
    std::unordered_map<const Weight*, ggml_tensor> tensors_;
    std::deque<ggml_tensor> paddings_;
};

}  // namespace xlm
