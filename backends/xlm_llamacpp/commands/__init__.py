"""Commands that the llama.cpp adapter adds to ``xlm``."""
