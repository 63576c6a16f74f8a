"""Tests with `spec.cache.extstore`: items on a disk."""
