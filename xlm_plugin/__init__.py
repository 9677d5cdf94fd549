"""xlm-plugin: VRAM as a managed cache of host-resident weights."""

__version__ = "0.1.0"
