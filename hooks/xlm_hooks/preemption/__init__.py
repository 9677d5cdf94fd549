"""What it costs to take a running model's VRAM, and to give it back."""
