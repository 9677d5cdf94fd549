"""Files of machines: memory, GPUs and control groups, as Linux shows them."""

from __future__ import annotations

from xlm_plugin.units import GIB, KIB


def meminfo(total_bytes: int, available_bytes: int) -> dict[str, str]:
    """Return ``/proc/meminfo``."""
    lines = (
        f"MemTotal:       {total_bytes // KIB} kB",
        f"MemFree:        {available_bytes // KIB // 2} kB",
        f"MemAvailable:   {available_bytes // KIB} kB",
    )
    return {"/proc/meminfo": "\n".join(lines) + "\n"}


HOST = meminfo(32 * GIB, 24 * GIB) | {"/proc/self/status": "Name:\tx\nCapEff:\t0\nCpus_allowed_list:\t0-3\n"}


def gpu(
    vendor: int, address: str = "0000:01:00.0", *, suspended: bool = False, **files: str | bytes
) -> dict[str, str | bytes]:
    """Return a GPU's folder in sysfs, with further ``files``."""
    folder = f"/sys/bus/pci/devices/{address}"
    return {
        f"{folder}/vendor": f"{vendor:#06x}\n",
        f"{folder}/class": "0x030000\n",
        f"{folder}/power/runtime_status": "suspended\n" if suspended else "active\n",
        **{f"{folder}/{name}": content for name, content in files.items()},
    }
