// Which expert lies in which cell, by how often it was selected of late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace xlm {

struct ExpertKey {
    std::size_t shard;
    std::size_t expert;
};

struct CellChoice {
    std::size_t cell;
    bool is_new;  // the expert is not there yet
};

class ExpertScores {
  public:
    // Cells are empty at first. Experts are numbered [0, experts) in each of `shards` shards.
    ExpertScores(std::size_t shards, std::size_t experts, std::size_t cells);

    // Finds cells for distinct experts of one shard; none of them displaces another. Nothing when there are
    // more experts than cells.
    std::optional<std::vector<CellChoice>> choose(std::size_t shard, const std::vector<std::size_t>& experts);

  private:
    struct Cell {
        std::optional<ExpertKey> holds;
        std::uint64_t needed_at = 0;
    };

    struct Use {
        double score = 0;
        std::uint64_t at = 0;
    };

    std::size_t index(const ExpertKey& key) const { return key.shard * experts_ + key.expert; }
    double score_now(const ExpertKey& key) const;
    std::size_t coldest() const;

    std::size_t experts_;
    std::uint64_t now_ = 0;
    std::vector<Cell> cells_;
    std::vector<Use> uses_;
    std::vector<std::optional<std::size_t>> cell_of_;
};

}  // namespace xlm
