"""The narrated demos of `make demo`. cache.py and olm.py are their steps, from top to bottom: commands and checks."""
