"""The commands that the Ollama adapter adds to ``xlm``."""
