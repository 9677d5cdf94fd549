"""vLLM: a model loader, a weight offloader and worker classes that carry out plans."""
