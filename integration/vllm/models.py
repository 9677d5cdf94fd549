"""Tiny models with random weights in Hugging Face folders, and a tokenizer, made without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PretrainedConfig

VOCABULARY = 512
_SHARED: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "num_hidden_layers": 4,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    # Wider than usual, so that small errors in weights change the greedy token.
    "initializer_range": 0.1,
}


def write_model(architecture: str, folder: Path, *, dtype: str = "bfloat16", **changes: Any) -> Path:
    """Write the tiny model of ``architecture`` to ``folder`` and return it; ``changes`` are of its config."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(_config(architecture, changes), dtype=torch.float32)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    _write_tokenizer(folder)
    return folder


def _config(architecture: str, changes: dict[str, Any]) -> PretrainedConfig:
    from transformers import LlamaConfig, MixtralConfig, Qwen3MoeConfig

    if architecture == "llama":
        return LlamaConfig(**{**_SHARED, "intermediate_size": 512, **changes})
    if architecture == "mixtral":
        experts = {"num_local_experts": 8, "num_experts_per_tok": 2}
        return MixtralConfig(**{**_SHARED, "intermediate_size": 256, **experts, **changes})
    experts = {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 128, "head_dim": 32}
    return Qwen3MoeConfig(**{**_SHARED, "intermediate_size": 512, **experts, **changes})


def _write_tokenizer(folder: Path) -> None:
    """Write a tokenizer that gives each byte a token of its own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = ["<s>", "</s>", *letters]
    words += [f"<unused{number}>" for number in range(VOCABULARY - len(words))]
    tokenizer = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        chat_template="{{ messages[0].content }}",
    ).save_pretrained(folder)
