"""The commands that the vLLM adapter adds to ``xlm``."""
