#include "plan_swap.hpp"

#include "errors.hpp"

namespace xlm {

void require_swappable(const Plan& now, const Plan& next,
                       const std::function<bool(const std::string& tensor)>& holds) {
    if (now.fingerprint() != next.fingerprint())
        throw Error("the plan is for another model, '" + next.model_name() + "'");
    if (now.host_kv_layers() != next.host_kv_layers())
        throw Error("the plan keeps other KV caches in host memory; start the engine anew for that");
    for (const PlannedShard& shard : now.shards()) {
        for (const std::string& tensor : shard.tensors) {
            if (!next.shard_of(tensor)) throw Error("the plan leaves out tensor '" + tensor + "'");
        }
    }
    for (std::size_t index = 0; index < next.shards().size(); ++index) {
        for (const std::string& tensor : next.shards()[index].tensors) {
            if (!now.shard_of(tensor)) throw Error("the plan names an unknown tensor '" + tensor + "'");
            if (!next.on_cpu_everywhere(index) && !holds(tensor)) {
                throw Error("shard '" + next.shards()[index].name +
                            "' was loaded for the CPU alone; start the engine anew to place it elsewhere");
            }
        }
    }
}

std::vector<bool> lingering_shards(const Plan& now, const Plan& next, const std::vector<bool>& already) {
    std::vector<bool> lingering(next.shards().size(), false);
    for (std::size_t index = 0; index < next.shards().size(); ++index) {
        for (const std::string& tensor : next.shards()[index].tensors) {
            const auto before = now.shard_of(tensor);
            const bool lingers = before && !already.empty() && already[*before];
            for (const Plan* edges : {&now, &next}) {
                for (const Tier& tier : edges->tiers()) {
                    if (before && next.placement(index, tier.new_tokens) == Placement::cpu &&
                        (lingers || now.placement(*before, tier.new_tokens) != Placement::cpu)) {
                        lingering[index] = true;
                    }
                }
            }
        }
    }
    return lingering;
}

}  // namespace xlm
