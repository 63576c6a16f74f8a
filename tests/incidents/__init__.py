"""Everyday incidents on a real cluster, and updates: what shows them, and what must stay silent."""
