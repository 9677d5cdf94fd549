"""The system's own files. Everything that is read of them goes through here."""

from __future__ import annotations

from pathlib import Path


class SystemFiles:
    """Reads ``/proc``, ``/sys`` and the like below ``root``, which stands for ``/``.

    What is missing, forbidden or not of the kind asked for reads as None: a container hides a lot.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def data(self, path: str) -> bytes | None:
        """Return the bytes of a file."""
        try:
            return self._at(path).read_bytes()
        except OSError:
            return None

    def text(self, path: str) -> str | None:
        """Return the text of a file without the space around it."""
        data = self.data(path)
        return None if data is None else data.decode(errors="replace").strip()

    def number(self, path: str) -> int | None:
        """Return the whole number that a file holds, decimal or ``0x`` hexadecimal."""
        try:
            return int(self.text(path) or "", 0)
        except ValueError:
            return None

    def field(self, path: str, name: str) -> str | None:
        """Return what follows ``name`` and a colon or space in the first line of a file that starts so."""
        for line in (self.text(path) or "").splitlines():
            if line.startswith(name):
                return line[len(name) :].lstrip(" \t:").strip()
        return None

    def is_folder(self, path: str) -> bool:
        """Whether ``path`` is a folder."""
        return self._at(path).is_dir()

    def folders(self, pattern: str) -> list[str]:
        """Return the folders that match a glob ``pattern``, sorted."""
        found = self._root.glob(pattern.lstrip("/"))
        return sorted(f"/{path.relative_to(self._root)}" for path in found if path.is_dir())

    def _at(self, path: str) -> Path:
        return self._root / path.lstrip("/")
