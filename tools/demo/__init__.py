"""The narrated demo of `make demo`. cache.py has its steps, from top to bottom: commands and checks."""
