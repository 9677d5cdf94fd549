#include "plan.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "errors.hpp"

namespace xlm {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "xlm.plan/1";

Placement parse_placement(const std::string& word, const std::string& shard) {
    if (word == "pin") return Placement::pin;
    if (word == "stream") return Placement::stream;
    if (word == "cpu") return Placement::cpu;
    throw Error("the plan places shard '" + shard + "' as '" + word + "', which is not pin, stream or cpu");
}

std::size_t parse_size(const Json& json, const char* name) {
    const Json& value = json.at(name);
    if (!value.is_number_unsigned())
        throw Error(std::string("the plan's ") + name + " is not a whole number");
    return value.get<std::size_t>();
}

std::int64_t parse_tokens(const Json& json, const char* name) {
    const std::size_t tokens = parse_size(json, name);
    if (tokens > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()))
        throw Error(std::string("the plan's ") + name + " is larger than any step");
    return static_cast<std::int64_t>(tokens);
}

Tier parse_tier(const Json& json, const std::vector<PlannedShard>& shards) {
    Tier tier;
    tier.new_tokens = parse_tokens(json, "new_tokens");
    const Json& placements = json.at("placements");
    if (placements.size() != shards.size()) {
        throw Error("tier " + std::to_string(tier.new_tokens) +
                    " of the plan does not place every shard once");
    }
    for (const PlannedShard& shard : shards) {
        const auto found = placements.find(shard.name);
        if (found == placements.end()) {
            throw Error("tier " + std::to_string(tier.new_tokens) + " of the plan does not place shard '" +
                        shard.name + "'");
        }
        tier.placements.push_back(parse_placement(found->get<std::string>(), shard.name));
    }
    return tier;
}

}  // namespace

Plan Plan::parse(const std::string& text) try {
    const Json json = Json::parse(text);
    const auto format = json.at("format").get<std::string>();
    if (format != kFormat) throw Error("the plan's format is '" + format + "'; this device reads " + kFormat);

    Plan plan;
    plan.model_name_ = json.at("model").at("name").get<std::string>();
    plan.fingerprint_ = json.at("model").value("fingerprint", std::string());
    plan.budget_bytes_ = parse_size(json, "budget_bytes");
    plan.slots_ = parse_size(json.at("staging"), "slots");
    if (const auto cache = json.find("expert_cache"); cache != json.end() && !cache->is_null()) {
        plan.cached_experts_ = parse_size(*cache, "experts");
        plan.whole_experts_from_ = parse_tokens(*cache, "whole_from_tokens");
    }
    if (const auto layers = json.find("host_kv_layers"); layers != json.end() && !layers->empty()) {
        for (const Json& layer : *layers) plan.host_kv_layers_.insert(layer.get<int>());
        plan.host_kv_device_tokens_ = parse_tokens(json, "host_kv_device_tokens");
    }
    for (const Json& item : json.at("shards")) {
        PlannedShard shard{item.at("name").get<std::string>(),
                           item.at("tensors").get<std::vector<std::string>>(),
                           item.value("experts", std::size_t{0})};
        for (const std::string& tensor : shard.tensors) {
            if (!plan.shard_by_tensor_.emplace(tensor, plan.shards_.size()).second) {
                throw Error("the plan places tensor '" + tensor + "' twice");
            }
        }
        plan.shards_.push_back(std::move(shard));
    }
    for (const Json& item : json.at("tiers")) {
        Tier tier = parse_tier(item, plan.shards_);
        if (!plan.tiers_.empty() && tier.new_tokens <= plan.tiers_.back().new_tokens) {
            throw Error("the plan's tiers do not rise");
        }
        plan.tiers_.push_back(std::move(tier));
    }
    if (plan.tiers_.empty()) throw Error("the plan has no tiers");
    return plan;
} catch (const Json::exception& error) {
    throw Error(std::string("the plan is malformed: ") + error.what());
}

Plan Plan::read(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf())) throw Error("the plan " + path + " cannot be read");
    return parse(text.str());
}

std::string base_weight(const std::string& tensor) {
    for (const std::string suffix : {".lora_a", ".lora_b"}) {
        const std::size_t end = tensor.size() - std::min(tensor.size(), suffix.size());
        if (tensor.compare(end, std::string::npos, suffix) == 0) return tensor.substr(0, end);
    }
    return tensor;
}

std::optional<std::size_t> Plan::shard_of(const std::string& tensor) const {
    const auto found = shard_by_tensor_.find(base_weight(tensor));
    if (found == shard_by_tensor_.end()) return std::nullopt;
    return found->second;
}

std::size_t Plan::tier_for(std::int64_t new_tokens) const {
    const auto covers = [new_tokens](const Tier& tier) { return new_tokens <= tier.new_tokens; };
    const auto found = std::find_if(tiers_.begin(), tiers_.end(), covers);
    return found == tiers_.end() ? tiers_.size() - 1 : static_cast<std::size_t>(found - tiers_.begin());
}

Placement Plan::placement(std::size_t shard, std::int64_t new_tokens) const {
    return tiers_[tier_for(new_tokens)].placements[shard];
}

bool Plan::any_tier(std::size_t shard, Placement placement) const {
    return std::any_of(tiers_.begin(), tiers_.end(),
                       [&](const Tier& tier) { return tier.placements[shard] == placement; });
}

bool Plan::pinned_somewhere(std::size_t shard) const {
    return any_tier(shard, Placement::pin);
}

bool Plan::selects_experts(std::size_t shard, std::size_t tier) const {
    return cached_experts_ > 0 && shards_[shard].experts > 0 &&
           tiers_[tier].new_tokens < whole_experts_from_ &&
           tiers_[tier].placements[shard] == Placement::stream;
}

bool Plan::streamed_somewhere(std::size_t shard) const {
    for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
        if (tiers_[tier].placements[shard] == Placement::stream && !selects_experts(shard, tier)) return true;
    }
    return false;
}

bool Plan::on_cpu_everywhere(std::size_t shard) const {
    return !any_tier(shard, Placement::pin) && !any_tier(shard, Placement::stream);
}

}  // namespace xlm
