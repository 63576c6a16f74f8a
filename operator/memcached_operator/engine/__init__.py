"""Reconciliation of every kind: the manager, the reconciler, its writes and the status."""
