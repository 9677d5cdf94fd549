// The part of an xlm.plan/1 document that the device acts on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace xlm {

enum class Placement : std::uint8_t { pin, stream, cpu };

struct PlannedShard {
    std::string name;
    std::vector<std::string> tensors;
    std::size_t experts = 0;  // routed experts, of which a step selects some; 0 for all other shards
};

// The placements of all steps with at most new_tokens new tokens, by shard index.
struct Tier {
    std::int64_t new_tokens;
    std::vector<Placement> placements;
};

// The weight that a tensor belongs to: the factors of a LoRA adapter bear the name of the weight that they
// change, and go where it goes.
std::string base_weight(const std::string& tensor);

class Plan {
  public:
    // Both throw Error with one sentence about the first fault.
    static Plan parse(const std::string& json);
    static Plan read(const std::string& path);

    // Covers the model's architecture and tensor table.
    const std::string& fingerprint() const { return fingerprint_; }
    const std::string& model_name() const { return model_name_; }
    std::size_t budget_bytes() const { return budget_bytes_; }
    std::size_t slots() const { return slots_; }
    // Whether this layer's KV cache lies in host memory, although its device is not the CPU.
    bool keeps_kv_on_host(int layer) const { return host_kv_layers_.count(layer) > 0; }
    const std::unordered_set<int>& host_kv_layers() const { return host_kv_layers_; }
    bool keeps_any_kv_on_host() const { return !host_kv_layers_.empty(); }
    // Steps of as many new tokens attend on the device, to a copy of such a cache.
    std::int64_t host_kv_device_tokens() const { return host_kv_device_tokens_; }
    const std::vector<PlannedShard>& shards() const { return shards_; }
    const std::vector<Tier>& tiers() const { return tiers_; }

    std::optional<std::size_t> shard_of(const std::string& tensor) const;

    // Index of the smallest tier that covers new_tokens, or of the last one.
    std::size_t tier_for(std::int64_t new_tokens) const;
    Placement placement(std::size_t shard, std::int64_t new_tokens) const;

    // Experts that the plan keeps in the expert cache; 0: experts stream whole.
    std::size_t cached_experts() const { return cached_experts_; }
    // Whether a shard that streams in this tier copies only the experts that the step selects.
    bool selects_experts(std::size_t shard, std::size_t tier) const;

    bool pinned_somewhere(std::size_t shard) const;
    bool on_cpu_everywhere(std::size_t shard) const;
    // Whole, through the ring.
    bool streamed_somewhere(std::size_t shard) const;

  private:
    bool any_tier(std::size_t shard, Placement placement) const;

    std::string model_name_;
    std::string fingerprint_;
    std::size_t budget_bytes_ = 0;
    std::size_t slots_ = 0;
    std::size_t cached_experts_ = 0;
    std::int64_t whole_experts_from_ = 0;
    std::unordered_set<int> host_kv_layers_;
    std::int64_t host_kv_device_tokens_ = 0;
    std::vector<PlannedShard> shards_;
    std::vector<Tier> tiers_;
    std::unordered_map<std::string, std::size_t> shard_by_tensor_;
};

}  // namespace xlm
