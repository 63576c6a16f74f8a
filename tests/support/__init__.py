"""Helpers for tests on a real cluster."""
