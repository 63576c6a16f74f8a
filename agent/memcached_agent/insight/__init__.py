"""Predicts the hit ratio that memcached would have with more or less memory, from the items that it evicts."""
