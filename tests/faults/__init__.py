"""Fault campaigns: run the operator as a process behind a proxy that injects faults, and check the result.

`python -m faults --help` lists the options (`make test-faults` runs all cases). See docs/reliability.md.
"""
