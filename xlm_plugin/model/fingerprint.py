"""What makes two models the same to a plan."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlm_plugin.model.hyperparameters import Hyperparameters
    from xlm_plugin.model.stored import StoredModel


def fingerprint(stored: StoredModel, hyper: Hyperparameters) -> str:
    """Return the digest of architecture, hyper-parameters and tensor table.

    Weights are not read; the model's name, its tokenizer, the order of tensors and the number of files do
    not count.
    """
    table = sorted((tensor.name, tensor.type, tensor.shape) for tensor in stored.tensors)
    text = json.dumps([hyper.architecture, hyper.items(), table], separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
