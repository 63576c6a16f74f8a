"""Finds why pods wait for their volumes."""
