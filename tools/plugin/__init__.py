"""Packs plugin/ into kubectl-memcached: one executable file, its archive, and the manifest for krew."""
