"""Compares predicted hit ratios with those of memcacheds that really have more memory."""
