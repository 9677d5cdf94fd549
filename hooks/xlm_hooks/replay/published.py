"""Tables that arXiv 2604.26334's artifact publishes: RTX 5090, EPYC with 16 threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_hooks.replay.models import nemo_8b, qwen3_30b, qwen3_235b

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xlm_plugin.model.graph import ModelGraph

# The described machine of these tables; its constants are the same for all models.
MACHINE = "p1-rtx5090-epyc"

MODELS: Mapping[str, Callable[[], ModelGraph]] = {
    "nemo8b": nemo_8b,
    "qwen3-235b-a22b": qwen3_235b,
    "qwen3-30b-a3b": qwen3_30b,
}

BUDGETS_GIB = (2, 4, 6, 8, 12, 24, 32)

# With pipelined sharding, by model, context and budget.
PIPELINED_TOKENS_PER_S: Mapping[tuple[str, int], tuple[float, ...]] = {
    ("nemo8b", 1024): (7.6, 8.6, 10.0, 12.4, 21.6, 70.0, 70.1),
    ("nemo8b", 4096): (6.4, 8.2, 9.5, 11.6, 20.3, 66.7, 66.6),
    ("nemo8b", 16384): (3.3, 4.8, 8.1, 9.5, 14.5, 56.9, 56.7),
    ("qwen3-235b-a22b", 1024): (7.7, 8.7, 9.0, 9.1, 9.4, 10.6, 11.5),
    ("qwen3-235b-a22b", 4096): (7.5, 8.3, 9.0, 9.0, 9.3, 10.4, 11.1),
    ("qwen3-235b-a22b", 16384): (5.2, 6.7, 7.6, 8.6, 8.9, 9.9, 10.9),
}
PIPELINED_FIRST_TOKEN_SECONDS: Mapping[tuple[str, int], tuple[float, ...]] = {
    ("nemo8b", 1024): (0.4, 0.3, 0.3, 0.3, 0.2, 0.2, 0.2),
    ("nemo8b", 4096): (0.8, 0.8, 0.7, 0.7, 0.7, 0.6, 0.6),
    ("nemo8b", 16384): (4.1, 3.9, 3.8, 3.7, 3.4, 3.0, 2.9),
    ("qwen3-235b-a22b", 1024): (2.5, 2.4, 2.4, 2.3, 2.3, 2.1, 2.0),
    ("qwen3-235b-a22b", 4096): (6.7, 6.7, 6.7, 6.6, 6.5, 6.1, 5.9),
    ("qwen3-235b-a22b", 16384): (28.8, 28.8, 28.6, 28.4, 27.9, 26.5, 25.7),
}

# Tokens/s in decode of the stock engine with whole layers on the device.
WHOLE_LAYER_BUDGETS_GIB = (2, 4, 8, 12, 24)
WHOLE_LAYERS: Mapping[tuple[str, int], tuple[float, ...]] = {
    ("qwen3-235b-a22b", 1024): (6.11, 6.17, 6.42, 6.74, 7.69),
    ("nemo8b", 4096): (5.36, 6.13, 8.44, 13.64, 67.8),
}

# Most layers, the output head counted as one, that fit a budget in a ubatch of 1024.
LADDER_BUDGETS_MIB = (2000, 3000, 4000, 5000, 6000, 8000, 12000, 16000, 24000)
LADDER: Mapping[tuple[str, int], tuple[int, ...]] = {
    ("qwen3-30b-a3b", 1024): (3, 6, 9, 12, 14, 20, 32, 44, 49),
    ("qwen3-30b-a3b", 16384): (3, 5, 8, 11, 13, 19, 29, 40, 49),
    ("nemo8b", 1024): (1, 4, 6, 9, 12, 18, 29, 41),
}
