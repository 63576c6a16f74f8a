"""An API server of Kubernetes 1.35 in memory: synchronous and deterministic, without any I/O."""
