"""Fault campaigns: the operator as a process behind a proxy that injects faults. See docs/reliability.md."""
