"""What runs it: devices, host memory, limits."""
