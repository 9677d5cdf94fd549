"""Accelerators on the PCI bus, seen without waking them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlm_plugin.machine.files import SystemFiles

NVIDIA, AMD, INTEL = 0x10DE, 0x1002, 0x8086
_VENDORS = {NVIDIA: "NVIDIA", AMD: "AMD", INTEL: "Intel"}
# PCI base classes: display controllers and processing accelerators.
_CLASSES = (0x03, 0x12)


@dataclass(frozen=True, slots=True)
class PciGpu:
    """A GPU at ``folder`` of sysfs; a ``suspended`` one must not be asked anything, that would wake it."""

    folder: str
    vendor: int
    suspended: bool

    @property
    def address(self) -> str:
        """The PCI address, such as ``0000:01:00.0``."""
        return self.folder.rpartition("/")[2]

    @property
    def title(self) -> str:
        """Vendor and address."""
        return f"{_VENDORS[self.vendor]} GPU at {self.address}"

    @property
    def is_integrated(self) -> bool:
        """Whether it is an Intel GPU on the root bus, where only those inside the CPU sit."""
        return self.vendor == INTEL and self.address.split(":")[1] == "00"


def find_gpus(files: SystemFiles) -> tuple[PciGpu, ...]:
    """Return the GPUs that could run models, in PCI order."""
    gpus = (_gpu(files, folder) for folder in files.folders("/sys/bus/pci/devices/*"))
    return tuple(gpu for gpu in gpus if gpu)


def _gpu(files: SystemFiles, folder: str) -> PciGpu | None:
    vendor = files.number(f"{folder}/vendor")
    pci_class = files.number(f"{folder}/class") or 0
    if vendor not in _VENDORS or pci_class >> 16 not in _CLASSES:
        return None
    return PciGpu(folder, vendor, files.text(f"{folder}/power/runtime_status") == "suspended")
