"""Generates an OLM bundle and a catalog from config/: `python -m bundle --help`."""
