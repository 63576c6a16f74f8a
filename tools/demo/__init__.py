"""The story of the operator on a real cluster, narrated and checked: `make demo`."""
