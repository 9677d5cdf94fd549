"""The namespace of our operations in torch. Operations live as long as this object does."""

from __future__ import annotations

import torch

LIBRARY = torch.library.Library("xlm", "FRAGMENT")
