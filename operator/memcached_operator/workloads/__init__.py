"""What Deployments and pods have in common for every kind: building them, and reading their state."""
