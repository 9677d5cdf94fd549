"""Which Ollamas there is a device for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_llamacpp.engine.releases import RELEASES
from xlm_ollama.layout import InstallError

if TYPE_CHECKING:
    from xlm_llamacpp.engine.releases import Release
    from xlm_ollama.layout import Layout


def supported_release(layout: Layout) -> Release:
    """Return the llama.cpp release that Ollama's engine is of. Raises InstallError for an unknown one."""
    found = layout.ggml_version()
    by_version = {release.ggml_version: release for release in RELEASES.values()}
    if found not in by_version:
        known = ", ".join(f"{release.ggml_version} ({release.version})" for release in RELEASES.values())
        raise InstallError(
            f"This Ollama's engine stands on ggml {found}, for which there is no device.",
            f"There is one for {known}: take an Ollama with one of these, or update xlm-plugin.",
        )
    return by_version[found]
