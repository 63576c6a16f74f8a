"""Deployments, Services and pods of every kind: building children, and reading their state."""
