"""Benchmark of the operator, compared with a client without logic on the same API server (see docs/performance.md)."""
