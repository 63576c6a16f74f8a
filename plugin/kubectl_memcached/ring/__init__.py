"""The placements of client libraries, and their comparison with the slots that hold new keys. Pure functions."""
