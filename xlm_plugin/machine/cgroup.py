"""Where the limits of this process's control group stand, in version 1 and in version 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlm_plugin.machine.files import SystemFiles

MOUNT = "/sys/fs/cgroup"


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The folders of one controller: the process's own first, then those above it, which limit it too."""

    version: int
    folders: tuple[str, ...]


def find_control_group(files: SystemFiles, controller: str) -> ControlGroup:
    """Return the group that limits this process's ``controller`` (``"memory"``, ``"cpu"``).

    It has no folders where the system has no control groups or hides them.
    """
    unified = "/"
    for line in (files.text("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            mounts = (f"{MOUNT}/{controllers}", f"{MOUNT}/{controller}")
            mount = next((mount for mount in mounts if files.is_folder(mount)), MOUNT)
            return ControlGroup(1, _upwards(files, mount, path))
        if not controllers:
            unified = path
    return ControlGroup(2, _upwards(files, MOUNT, unified))


def _upwards(files: SystemFiles, mount: str, path: str) -> tuple[str, ...]:
    # In a container the path may be the host's, which is not below the container's mount.
    parts = [part for part in path.split("/") if part]
    if ".." in parts:
        parts = []
    folders = ["/".join([mount, *parts[:depth]]) for depth in range(len(parts), -1, -1)]
    return tuple(folder for folder in folders if files.is_folder(folder))
