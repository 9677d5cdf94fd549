"""What an architecture does that its files do not say (llama.cpp b10488: ``models/*.cpp``)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """All layers slide but each ``period``-th; ``window_tokens`` is the window where the file has none."""

    period: int
    window_tokens: int = 0


SLIDING_WINDOWS = {
    "cohere2": SlidingWindow(4),
    "gemma2": SlidingWindow(2, window_tokens=4096),
    "gemma3": SlidingWindow(6),
    "gemma3n": SlidingWindow(5),
    "gpt-oss": SlidingWindow(2),
    "llama4": SlidingWindow(4, window_tokens=8192),
    "olmo2": SlidingWindow(4),
}

# Layers that own a cache, where the file does not say how many reuse another's.
OWN_CACHES = {"gemma3n": 20}

# MTP blocks of these have a cache only where they run; llama.cpp gives those of all others one in any case
# (seen with glm4moe and deepseek2: "3 layers" for two and an MTP block).
MTP_CACHE_APART = frozenset(
    {
        "bailingmoe3",
        "deepseek32",
        "glm-dsa",
        "hy_v3",
        "mimo2",
        "qwen35",
        "qwen35moe",
        "qwen3next",
        "step35",
    }
)

# Architectures whose cache was checked against llama.cpp; all others get the same rules and a note.
KNOWN = frozenset(
    {
        *SLIDING_WINDOWS,
        "clip",
        "deepseek2",
        "falcon-h1",
        "gemma",
        "gemma4",
        "glm4",
        "glm4moe",
        "granite",
        "granitehybrid",
        "granitemoe",
        "jamba",
        "kimi-linear",
        "lfm2",
        "lfm2moe",
        "llama",
        "mamba",
        "mamba2",
        "mistral",
        "mistral3",
        "mixtral",
        "nemotron_h",
        "nemotron_h_moe",
        "phi2",
        "phi3",
        "phimoe",
        "qwen2",
        "qwen2moe",
        "qwen2vl",
        "qwen3",
        "qwen35",
        "qwen35moe",
        "qwen3moe",
        "qwen3next",
        "qwen3vl",
        "qwen3vlmoe",
        "smollm3",
    }
)
