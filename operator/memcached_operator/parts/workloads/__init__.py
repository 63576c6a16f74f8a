"""Deployments and StatefulSets of every kind: building them, their state, and the conditions that follow."""
