"""A deterministic simulation: the real controller, an API server and a cluster in memory, and a virtual clock."""
