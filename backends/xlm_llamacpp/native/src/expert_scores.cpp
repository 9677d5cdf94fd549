#include "expert_scores.hpp"

#include <cmath>

namespace xlm {
namespace {

// A use counts half after this many choices: some steps of a model with a few dozen layers.
constexpr double kHalfLife = 1000;

}  // namespace

ExpertScores::ExpertScores(std::size_t shards, std::size_t experts, std::size_t cells)
    : experts_(experts), cells_(cells), uses_(shards * experts), cell_of_(shards * experts) {}

std::optional<std::vector<CellChoice>> ExpertScores::choose(std::size_t shard,
                                                            const std::vector<std::size_t>& experts) {
    if (experts.size() > cells_.size()) return std::nullopt;
    ++now_;
    for (const std::size_t expert : experts) {
        const ExpertKey key{shard, expert};
        uses_[index(key)] = {score_now(key) + 1, now_};
        if (const auto cell = cell_of_[index(key)]) cells_[*cell].needed_at = now_;
    }
    std::vector<CellChoice> choices;
    for (const std::size_t expert : experts) {
        const ExpertKey key{shard, expert};
        if (const auto cell = cell_of_[index(key)]) {
            choices.push_back({*cell, false});
            continue;
        }
        const std::size_t cell = coldest();
        if (cells_[cell].holds) cell_of_[index(*cells_[cell].holds)].reset();
        cells_[cell] = {key, now_};
        cell_of_[index(key)] = cell;
        choices.push_back({cell, true});
    }
    return choices;
}

double ExpertScores::score_now(const ExpertKey& key) const {
    const Use& use = uses_[index(key)];
    return use.score * std::exp2(-static_cast<double>(now_ - use.at) / kHalfLife);
}

std::size_t ExpertScores::coldest() const {
    std::size_t coldest = 0;
    double least = HUGE_VAL;
    for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
        if (cells_[cell].needed_at == now_) continue;
        if (!cells_[cell].holds) return cell;
        const double score = score_now(*cells_[cell].holds);
        if (score < least) {
            least = score;
            coldest = cell;
        }
    }
    return coldest;
}

}  // namespace xlm
