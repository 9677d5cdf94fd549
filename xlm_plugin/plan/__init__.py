"""Where every shard goes, and where every byte of VRAM goes."""
