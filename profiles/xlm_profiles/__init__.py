"""Shipped machine profiles and model descriptors, as data."""
