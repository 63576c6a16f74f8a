"""Every field of both kinds, from the CRDs: set, changed, emptied, deleted, at its bounds, invalid."""
