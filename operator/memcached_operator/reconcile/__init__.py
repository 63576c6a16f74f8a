"""Reconciliation: the manager, the reconciler, and the decisions about each child."""
