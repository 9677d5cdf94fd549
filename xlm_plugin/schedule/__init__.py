"""Several models on one device."""
