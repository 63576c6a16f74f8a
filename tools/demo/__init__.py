"""The narrated demo of the operator on a real cluster, which checks every step: `make demo`."""
