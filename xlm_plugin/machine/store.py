"""The profiles of this machine, one file a device, and which of them to believe."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from xlm_plugin.cache import cache_root
from xlm_plugin.errors import ProfileError
from xlm_plugin.machine.identity import read_identity
from xlm_plugin.machine.profile_document import ProfileDocument

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.machine.identity import MachineIdentity
    from xlm_plugin.machine.profile import Profile


def profile_path(identity: MachineIdentity) -> Path:
    """Return where the profile of the machine of that name is kept."""
    slug = re.sub(r"[^a-z0-9]+", "-", identity.device.lower()).strip("-")
    digest = hashlib.sha256("\n".join(identity.name).encode()).hexdigest()[:8]
    return cache_root() / "profiles" / f"{slug[:40]}-{digest}.json"


def load(identity: MachineIdentity) -> ProfileDocument | None:
    """Return the profile that was measured on a machine of that name, or None.

    Raises ProfileError for one that cannot be used, and for one that another machine's was put in place of.
    """
    path = profile_path(identity)
    if not path.exists():
        return None
    try:
        document = ProfileDocument.read(path)
        check_same_machine(document, identity)
    except ProfileError as error:
        raise ProfileError(f"{path}: {error.message}", error.hint) from None
    return document


def save(document: ProfileDocument) -> Path:
    """Keep ``document`` as the profile of its machine and return where."""
    path = profile_path(document.identity)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise ProfileError(f"The folder {path.parent} cannot be made: {fault.strerror}.") from None
    document.write(path)
    return path


def check_same_machine(document: ProfileDocument, identity: MachineIdentity) -> None:
    """Raise ProfileError for the profile of another machine."""
    theirs, ours = document.identity.name, identity.name
    if theirs != ours:
        raise ProfileError(
            f"The profile is of another machine: {' with '.join(theirs)}, and this is {' with '.join(ours)}.",
            "Measure this one with 'xlm profile --again'.",
        )


def with_measurements(profile: Profile) -> Profile:
    """Return ``profile`` with what is stored about its machine, and what has changed since."""
    identity = read_identity(profile.machine)
    document = load(identity)
    if document is None:
        return profile
    return replace(
        profile,
        measurements=document.measurements,
        changes=identity.changes_since(document.identity),
    )
