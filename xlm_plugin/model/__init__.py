"""What runs: the shard graph of a model, read from GGUF files or Hugging Face folders."""
