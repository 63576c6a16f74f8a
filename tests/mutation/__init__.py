"""Mutants of the pure code, and the tests that detect them."""
