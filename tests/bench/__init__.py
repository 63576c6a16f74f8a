"""The bench: how fast the operator is, beside a client without logic on the same API server (docs/performance.md)."""
