"""The llama.cpp adapter: engine build, the ggml device, launch and live control."""
