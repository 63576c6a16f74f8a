"""Writes the CRDs, other files of config/ and the API reference from the registered kinds: `python -m crds --help`."""
