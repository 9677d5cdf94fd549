"""Ollama: the stock server runs chosen models on our device."""
