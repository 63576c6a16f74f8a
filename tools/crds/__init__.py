"""Writes the CRDs and the API reference from the types in `memcached_api`: `python -m crds --help`."""
